"""Gating: every gate of a job, open and shut, with who holds it and what would open it; the place in the line."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from queuectl.actions.explain import is_for_a_worker, why_waiting
from queuectl.actions.gating import foremost, gates
from queuectl.actions.scene import Gate
from queuectl.actions.snapshot import look
from queuectl.actions.standing import Place, Standing, standing
from queuectl.actions.submit import submit
from queuectl.actions.unservable import left_waiting, unservable
from queuectl.model.job import Job, JobSpec
from queuectl.model.needs import needs_text
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import claims, limits, lines, queues, workers
from queuectl.store.database import Database, Tx
from queuectl.store.gates import UNITS_PATIENCE_MS
from queuectl.store.parking import PATIENCE_MS
from queuectl.store.takers import Taker
from tests.store.rows import NOW, FakeClock, add_history, add_job, add_worker, claim_one, get, settle_run
from tests.store.test_plans import assert_walks_nothing, plans_of

if TYPE_CHECKING:
    from queuectl.store.dialect import Params, Row

MINUTE = 60_000
GPU = needs_text(["gpu"], None)
TWO_GPUS = needs_text([], {"gpu": 2})
DB = json.dumps(["mutex:db"])
API = json.dumps(["limit:api"])
START = "queuectl worker start -d --queue default"


@pytest.fixture(autouse=True)
def _still(db: Database) -> None:
    db.read_clock = FakeClock()


def gates_of(db: Database, job: Job) -> dict[str, Gate]:
    return {gate.name: gate for gate in db.read(lambda tx: gates(tx, get(tx, job.seq)))}


def standing_of(db: Database, job: Job) -> Standing:
    return db.read(lambda tx: standing(tx, get(tx, job.seq)))


def set_queue(db: Database, **values: int | None) -> None:
    db.write(lambda tx: queues.create(tx, "default"))
    db.write(lambda tx: queues.change(tx, "default", values))


def shut_time(db: Database) -> Job:
    return add_job(db, State.SCHEDULED, run_at=NOW + MINUTE)


def shut_retry(db: Database) -> Job:
    return add_job(db, State.FAILED, run_at=NOW + MINUTE)


def shut_hold(db: Database) -> Job:
    return add_job(db, State.BLOCKED, held_at=NOW)


def shut_deadline(db: Database) -> Job:
    return add_job(db, deadline_ms=MINUTE, deadline_at=NOW)


def shut_queue(db: Database) -> Job:
    set_queue(db)
    db.write(lambda tx: queues.set_paused(tx, "default", tx.now))
    return add_job(db)


def shut_concurrency(db: Database) -> Job:
    set_queue(db, concurrency=1)
    add_job(db, State.PROCESSING, given_id="holder", worker_id="other")
    return add_job(db)


def shut_rate(db: Database) -> Job:
    set_queue(db, rate_count=1, rate_period_ms=MINUTE)
    db.write(lambda tx: queues.set_next_start(tx, "default", NOW + MINUTE))
    return add_job(db)


def shut_mutex(db: Database) -> Job:
    add_job(db, State.PROCESSING, given_id="holder", worker_id="other", limits=DB)
    return add_job(db, State.BLOCKED, limits=DB, parked_for="mutex:db")


def shut_limit(db: Database) -> Job:
    db.write(lambda tx: limits.put(tx, "api", 1))
    add_job(db, State.PROCESSING, given_id="holder", worker_id="other", limits=API)
    return add_job(db, limits=API)


def shut_labels(db: Database) -> Job:
    return add_job(db, needs=GPU)


def shut_resources(db: Database) -> Job:
    add_worker(db, "w2", resources=json.dumps({"gpu": 2}), slots=2)
    add_job(db, State.PROCESSING, given_id="holder", worker_id="w2", units=json.dumps({"gpu": [0]}))
    return add_job(db, needs=TWO_GPUS)


def shut_slot(db: Database) -> Job:
    add_job(db, State.PROCESSING, given_id="holder")
    return add_job(db)


def shut_alone(db: Database) -> Job:
    add_worker(db, "w2", slots=2)
    add_job(db, State.PROCESSING, given_id="holder")
    add_job(db, State.PROCESSING, given_id="another", worker_id="w2")
    return add_job(db, losses=2)


SHUT: dict[str, tuple[Callable[[Database], Job], str, str | None, tuple[str, ...]]] = {
    "time": (shut_time, "its time", "queuectl retry {id}", ()),
    "time ": (shut_retry, "its next retry", "queuectl retry {id}", ()),
    "hold": (shut_hold, "being released: a person holds it since ", "queuectl release {id}", ()),
    "deadline": (shut_deadline, "being buried: its deadline has passed", "queuectl edit {id} --deadline none", ()),
    "queue": (shut_queue, "its queue: default is paused", "queuectl queue resume default", ()),
    "concurrency": (
        shut_concurrency,
        "room in its queue: 1 of 1 of queue default run",
        "queuectl queue set default --concurrency 2",
        ("holder",),
    ),
    "rate": (
        shut_rate,
        "the rate of its queue: default lets 1/m start, the next one at ",
        "queuectl queue set default --rate none",
        (),
    ),
    "mutex db": (shut_mutex, "mutex db: 1 of 1 taken by job holder", None, ("holder",)),
    "limit api": (shut_limit, "limit api: 1 of 1 taken by job holder", "queuectl limit set api 2", ("holder",)),
    "labels": (shut_labels, "what no running worker has: gpu", f"{START} --label gpu", ()),
    "resources": (
        shut_resources,
        "gpu=2: 1 of 2 gpu free on worker w2; taken by job holder",
        f"{START} --resource gpu=2",
        ("holder",),
    ),
    "slot": (shut_slot, "a free worker", None, ("holder",)),
    "alone": (
        shut_alone,
        "an idle worker: it has lost 2 workers, and runs alone now",
        None,
        ("holder", "another"),
    ),
}


@pytest.mark.parametrize("case", SHUT)
def test_the_gate_that_is_shut_says_who_holds_it_and_what_opens_it_and_all_others_are_open(
    db: Database, case: str
) -> None:
    make, reason, remedy, holders = SHUT[case]
    add_worker(db, "w1")
    job = make(db)

    found = gates_of(db, job)

    shut = {name for name, gate in found.items() if not gate.is_open} - {"slot"}
    gate = found[case.strip()]
    assert shut | {case.strip()} == {case.strip()}
    assert not gate.is_open
    assert gate.reason.startswith(reason)
    assert gate.remedy == (remedy and remedy.format(id=job.id))
    assert gate.jobs == holders
    assert foremost(db.read(lambda tx: gates(tx, get(tx, job.seq)))) == gate


@pytest.mark.parametrize(
    "slots, running, ends, remedy",
    [
        (1, 2, "when both of them have ended", "3"),
        (2, 3, "when 2 of them have ended", "4"),
        (1, 3, "when all of them have ended", "4"),
        (2, 2, "when one of them ends", "3"),
        (0, 1, None, "2"),
        (0, 0, None, "1"),
    ],
)
def test_a_limit_lowered_below_what_runs_says_how_many_must_end_and_a_number_that_helps(
    db: Database, slots: int, running: int, ends: str | None, remedy: str
) -> None:
    db.write(lambda tx: limits.put(tx, "api", slots))
    for _ in range(running):
        add_job(db, State.PROCESSING, worker_id="other", limits=API)
    job = add_job(db, limits=API)

    gate = gates_of(db, job)["limit api"]

    assert (gate.is_open, gate.ends, gate.remedy) == (False, ends, f"queuectl limit set api {remedy}")


def test_a_concurrency_lowered_below_what_runs_says_how_many_must_end_and_a_number_that_helps(db: Database) -> None:
    set_queue(db, concurrency=1)
    for _ in range(2):
        add_job(db, State.PROCESSING, worker_id="other")

    gate = gates_of(db, add_job(db))["concurrency"]

    assert gate.ends == "when both of them have ended"
    assert gate.remedy == "queuectl queue set default --concurrency 3"


def test_every_gate_of_a_job_that_asks_for_everything_is_told_open_in_a_fixed_order(db: Database) -> None:
    set_queue(db, concurrency=2, rate_count=1, rate_period_ms=MINUTE)
    db.write(lambda tx: limits.put(tx, "api", 2))
    add_worker(db, "w1", labels='["gpu"]', resources='{"mem": 4096}', slots=2, queues='["default"]')
    add_job(db, State.PROCESSING, given_id="holder", limits=API)
    job = add_job(
        db, needs=needs_text(["gpu"], {"mem": 2048}), limits='["limit:api", "limit:nobody", "mutex:db"]',
        deadline_ms=MINUTE, deadline_at=NOW + MINUTE, losses=1,
    )  # fmt: skip

    found = db.read(lambda tx: gates(tx, get(tx, job.seq)))

    assert [gate.name for gate in found] == [
        "after", "time", "hold", "deadline", "queue", "concurrency", "rate", "limit api", "limit nobody", "mutex db",
        "worker", "labels", "resources", "slot", "alone",
    ]  # fmt: skip
    assert all(gate.is_open for gate in found), [gate for gate in found if not gate.is_open]
    words = {gate.name: gate.words for gate in found}
    assert words["deadline"].endswith(", within 1m00s, or is buried")
    assert words["concurrency"] == "1 of the 2 that default lets run at once"
    assert words["rate"] == "default lets 1/m start, and the next one now"
    assert words["limit api"] == "1 of 2 taken by job holder"
    assert words["limit nobody"] == "nobody made it, so it holds nothing back"
    assert words["mutex db"] == "0 of 1 taken"
    assert words["worker"] == "worker w1 serves queue default"
    assert words["labels"] == "worker w1 has gpu"
    assert words["resources"] == "mem=2KiB: 4KiB of 4KiB mem free on worker w1"
    assert words["slot"] == "1 free: worker w1"


def test_without_any_worker_a_job_waits_for_one_that_has_what_it_needs(db: Database) -> None:
    plain, special = add_job(db), add_job(db, needs=GPU)

    waits = db.read(lambda tx: [why_waiting(tx, get(tx, job.seq)) for job in (plain, special)])

    assert [wait and wait.reason for wait in waits] == ["a worker: none is running for queue default"] * 2
    assert [wait and wait.remedy for wait in waits] == [START, f"{START} --label gpu"]
    assert [wait and is_for_a_worker(wait) for wait in waits] == [True, False]


def test_a_job_that_waits_for_a_time_says_so_also_where_no_worker_runs(db: Database) -> None:
    job = shut_time(db)

    wait = db.read(lambda tx: why_waiting(tx, get(tx, job.seq)))

    assert wait is not None
    assert wait.reason == "its time"


def test_workers_that_cannot_take_it_say_what_each_lacks(db: Database) -> None:
    add_worker(db, "ssd", labels='["ssd"]')
    add_worker(db, "gpu", labels='["gpu"]', resources='{"mem": 1}')
    add_worker(db, "elsewhere", labels='["gpu", "ssd"]', queues='["mail"]')
    add_worker(db, "leaving", labels='["gpu", "ssd"]', stop="drain")
    job = add_job(db, needs=needs_text(["gpu", "ssd"], {"mem": 2}))

    found = gates_of(db, job)

    assert found["labels"].words == "no running worker has gpu, ssd; worker gpu lacks ssd; worker ssd lacks gpu"
    assert set(found["labels"].workers) == {"ssd", "gpu"}
    assert found["resources"].words == "no running worker has mem=2; worker gpu lacks mem=2; worker ssd lacks mem=2"
    assert found["slot"].words == "nobody is there who could run it"


def test_a_slot_counts_only_on_workers_that_have_enough_left(db: Database) -> None:
    add_worker(db, "full", resources='{"gpu": 1}', slots=5)
    add_worker(db, "busy", resources='{"gpu": 1}', slots=1)
    add_job(db, State.PROCESSING, given_id="a", worker_id="full", units='{"gpu": [0]}')
    add_job(db, State.PROCESSING, given_id="b", worker_id="busy")
    job = add_job(db, needs=needs_text([], {"gpu": 1}))

    found = gates_of(db, job)

    assert found["resources"].is_open
    assert found["resources"].workers == ("busy",)
    assert not found["slot"].is_open
    assert found["slot"].words == "none of 1 free: worker busy runs job b"


def test_workers_of_one_start_share_what_they_have_and_are_told_as_one(db: Database) -> None:
    for name in ("one", "two"):
        add_worker(db, name, supervisor_id="chief", resources='{"gpu": 2}')
    add_job(db, State.PROCESSING, given_id="a", worker_id="one", units='{"gpu": [0, 1]}')
    job = add_job(db, needs=needs_text([], {"gpu": 1}))

    gate = gates_of(db, job)["resources"]

    assert not gate.is_open
    assert gate.words.startswith("gpu=1: 0 of 2 gpu free on worker ")
    assert gate.words.count("on worker") == 1


def test_units_that_are_kept_for_a_job_that_waited_too_long_are_not_free_for_others(db: Database) -> None:
    add_worker(db, resources='{"gpu": 2}', slots=5)
    add_job(db, State.PROCESSING, given_id="holder", units='{"gpu": [0]}')
    add_job(db, given_id="patient", needs=TWO_GPUS, priority=-1)
    job = add_job(db, needs=needs_text([], {"gpu": 1}))
    assert gates_of(db, job)["resources"].is_open

    db.read_clock = FakeClock(now=NOW + UNITS_PATIENCE_MS)
    gate = gates_of(db, job)["resources"]

    assert not gate.is_open
    assert gate.words == "gpu=1: 1 of 2 gpu free on worker w1; kept for job patient, waiting for longer"
    assert gate.jobs == ("holder", "patient")
    worker = db.read(lambda tx: workers.live(tx)[0])
    assert db.write(lambda tx: claims.claim(tx, Taker.of_worker(worker), 1).claims) == ()


def test_a_job_parked_for_a_limit_that_is_free_names_the_ready_one_before_it(db: Database) -> None:
    first, second = submit(db, [JobSpec(command="true", mutexes=("db",))] * 2, who="me", environ={})
    parked = db.read(lambda tx: get(tx, int(second)))
    assert parked.state is State.BLOCKED

    gate = gates_of(db, parked)["mutex db"]

    assert gate.words == f"0 of 1 taken; job {first} is ready and before it"
    assert (gate.ends, gate.remedy) == ("when its turn comes", None)


def test_the_place_in_line_is_counted_by_priority_then_number(db: Database) -> None:
    add_worker(db, queues='["default"]')
    low = add_job(db, priority=-1)
    first, second = add_job(db), add_job(db)
    high = add_job(db, priority=9)
    add_job(db, queue="other", priority=99)

    places = [standing_of(db, job).place for job in (high, first, second, low)]

    assert places == [Place(ahead=ahead, line="queue default") for ahead in range(4)]
    assert [place and place.words for place in places[:2]] == [
        "first in line of queue default",
        "number 2 in line of queue default",
    ]


def test_of_jobs_that_name_one_limit_one_alone_is_first_in_its_line(db: Database) -> None:
    names = submit(db, [JobSpec(command="true", mutexes=("db",))] * 3, who="me", environ={})
    _, *parked = db.read(lambda tx: [get(tx, int(name)) for name in names])

    places = [standing_of(db, job).place for job in parked]

    assert places == [Place(ahead=1, line="mutex db"), Place(ahead=2, line="mutex db")]


def test_a_line_that_is_not_all_of_its_queue_is_named_by_what_its_jobs_need(db: Database) -> None:
    add_worker(db)
    plain, needy = add_job(db), add_job(db, needs=GPU)
    apart = [standing_of(db, job).place for job in (plain, needy)]
    add_worker(db, "w2", labels='["gpu"]')

    shared = [standing_of(db, job).place for job in (plain, needy)]

    assert apart == [Place(ahead=0, line="queue default"), Place(ahead=0, line="queue default for gpu")]
    assert shared == [Place(ahead=0, line="queue default"), Place(ahead=1, line="queue default")]


def test_the_order_of_the_line_is_the_order_in_which_a_worker_takes_them(db: Database) -> None:
    add_worker(db, labels='["gpu"]')
    jobs = [add_job(db, priority=number % 3, needs=GPU if number % 2 else None) for number in range(6)]
    told = sorted(jobs, key=lambda job: getattr(standing_of(db, job).place, "ahead", -1))

    taker = db.read(lambda tx: Taker.of_worker(workers.live(tx)[0]))
    taken = [db.write(lambda tx: claims.claim(tx, taker, 1).claims)[0].job.seq for _ in jobs]

    assert taken == [job.seq for job in told]


def test_what_no_worker_can_take_is_not_before_anybody(db: Database) -> None:
    add_worker(db)
    unservable_one = add_job(db, needs=GPU, priority=9)
    job = add_job(db)

    assert standing_of(db, job).place == Place(ahead=0, line="queue default")
    assert standing_of(db, unservable_one).place == Place(ahead=0, line="queue default for gpu")


def test_parked_jobs_stand_in_the_line_of_their_limit_and_those_that_wait_for_a_time_in_none(db: Database) -> None:
    add_worker(db)
    add_job(db, State.BLOCKED, limits=DB, parked_for="mutex:db", queue="other", priority=5)
    parked = add_job(db, State.BLOCKED, limits=DB, parked_for="mutex:db")
    add_job(db, State.BLOCKED, limits=API, parked_for="limit:api", priority=5)

    assert standing_of(db, parked).place == Place(ahead=1, line="mutex db")
    assert standing_of(db, shut_time(db)).place is None
    assert standing_of(db, shut_hold(db)).place is None


def test_a_running_job_says_where_since_when_and_what_it_holds(db: Database) -> None:
    add_worker(db, "w1", host="elsewhere")
    job = add_job(db, State.PROCESSING, limits=DB, units='{"gpu": [0, 1], "mem": 4294967296}')

    found = standing_of(db, job)

    assert found.summary.startswith("runs on elsewhere, by worker w1, since 20")
    assert found.holds == ("mutex db", "gpu 0,1", "mem 4GiB")
    assert (found.gates, found.place) == ((), None)


def test_a_job_that_is_over_says_how_it_ended(db: Database) -> None:
    done = add_job(db, State.COMPLETED, exit_code=0)
    buried = add_job(db, State.DEAD, error="exit code 3", attempts=1, max_retries=0)

    assert standing_of(db, done).summary.endswith(": exit code 0")
    assert standing_of(db, buried).summary.endswith(": exit code 3; 1 run used, none left")
    assert (standing_of(db, done).gates, standing_of(db, done).wait) == ((), None)


def test_ready_jobs_that_no_worker_could_ever_take_are_counted_by_what_they_need(db: Database) -> None:
    add_worker(db, "plain", queues='["render"]')
    add_worker(db, "leaving", queues='["render"]', labels='["gpu"]', stop="drain")
    for _ in range(3):
        add_job(db, queue="render", needs=GPU)
    add_job(db, queue="render", needs=needs_text([], {"mem": 64 << 30}))
    add_job(db, queue="render")
    add_job(db, State.SCHEDULED, queue="render", needs=needs_text(["later"], None))
    add_job(db, queue="unserved", needs=GPU)

    found = db.read(lambda tx: unservable(tx, workers.live(tx)))

    assert sorted(one.words for one in found) == [
        "3 jobs of queue render wait for what no worker has: gpu",
        "a job of queue render waits for what no worker has: mem=64GiB",
    ]
    assert {one.remedy for one in found} == {
        "queuectl worker start -d --queue render --label gpu",
        "queuectl worker start -d --queue render --resource mem=64GiB",
    }


def test_without_any_worker_all_that_needs_something_is_told_with_what_starts_one(db: Database) -> None:
    add_job(db, queue="render", needs=GPU)
    add_job(db, queue="mail")

    found = db.read(lambda tx: unservable(tx, []))

    assert [(one.words, one.remedy) for one in found] == [
        (
            "a job of queue render waits for what no worker has: gpu",
            "queuectl worker start -d --queue render --label gpu",
        )
    ]


def test_a_snapshot_tells_the_same_of_what_nobody_can_take_and_walks_the_ready_jobs_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker(db, "plain", queues='["render"]')
    for needs in (GPU, GPU, None, needs_text(["arm"], None)):
        add_job(db, queue="render", needs=needs)
    asked: list[str] = []
    rows = db.dialect.rows

    def recorded(sql: str, params: "Params") -> "list[Row]":
        asked.append(sql)
        return rows(sql, params)

    monkeypatch.setattr(db.dialect, "rows", recorded)

    found = db.read(look)

    assert sum("state = 'pending'" in sql for sql in asked) == 1
    assert found.unservable == db.read(lambda tx: unservable(tx, workers.live(tx)))
    assert [one.jobs for one in found.unservable] == [1, 2]
    assert found.counts["render"] == {State.PENDING: 4}


def test_only_what_the_nearest_worker_lacks_is_told_as_missing(db: Database) -> None:
    add_worker(db, "bare")
    add_worker(db, "near", labels='["gpu"]', resources='{"gpu": 2, "mem": 8192}')
    job = add_job(db, needs=needs_text(["gpu", "linux"], {"gpu": 1, "mem": 4096}))

    found = gates_of(db, job)
    told = db.read(lambda tx: unservable(tx, workers.live(tx)))

    assert found["labels"].reason == "what no running worker has: linux"
    assert found["resources"].is_open
    assert found["resources"].workers == ("near",)
    assert [one.words for one in told] == ["a job of queue default waits for what no worker has: linux"]


def test_units_count_only_on_a_worker_that_has_the_labels_where_there_is_one(db: Database) -> None:
    add_worker(db, "labelled", labels='["gpu"]')
    add_worker(db, "equipped", resources='{"mem": 8192}')
    job = add_job(db, needs=needs_text(["gpu"], {"mem": 4096}))

    found = gates_of(db, job)

    assert found["labels"].is_open
    assert found["resources"].words == "no running worker has mem=4KiB; worker labell lacks mem=4KiB"


def test_a_worker_that_leaves_names_what_waits_in_its_queues(db: Database) -> None:
    add_job(db, State.SCHEDULED, run_at=NOW + MINUTE)
    add_job(db, State.BLOCKED, held_at=NOW)
    add_job(db, queue="other")
    assert db.read(lambda tx: left_waiting(tx, ["default"])) is None
    add_job(db, given_id="needy", needs=GPU)
    add_job(db, State.BLOCKED, given_id="parked", limits=DB, parked_for="mutex:db")

    two, all_queues = db.read(lambda tx: (left_waiting(tx, ["default"]), left_waiting(tx, None)))
    for _ in range(5):
        add_job(db)
    many = db.read(lambda tx: left_waiting(tx, ["default"]))

    assert two == "2 jobs still wait that no worker here could take now; see: queuectl why needy parked"
    assert all_queues is not None
    assert all_queues.startswith("3 jobs still wait ")
    assert many is not None
    assert many.startswith("more than 5 jobs still wait ")


def test_why_reads_no_history(db: Database) -> None:
    add_history(db)
    add_worker(db, labels='["gpu"]', resources='{"mem": 1}')
    db.write(lambda tx: queues.change(tx, "default", {"concurrency": 3}))
    add_job(db, State.PROCESSING, limits=DB, needs=needs_text([], {"mem": 1}), units='{"mem": [0]}')
    waiting = add_job(db, needs=needs_text(["gpu"], {"mem": 1}), limits=DB)
    parked = add_job(db, State.BLOCKED, limits=DB, parked_for="mutex:db")

    def look(tx: Tx) -> None:
        for job in (waiting, parked):
            standing(tx, job)
        lines.ready_with(tx, "mutex:db", 5)
        lines.limits_named(tx)
        lines.ready_counts(tx, [waiting.lane_id, 1])
        lines.left(tx, [waiting.lane_id, 1], 5)

    for plan in plans_of(db, look):
        assert_walks_nothing(plan)


def test_a_claim_after_the_gates_open_takes_the_job(db: Database) -> None:
    add_worker(db)
    job = shut_queue(db)
    assert not gates_of(db, job)["queue"].is_open

    db.write(lambda tx: queues.set_paused(tx, "default", None))

    assert all(gate.is_open for gate in gates_of(db, job).values())
    assert claim_one(db).job.seq == job.seq


def test_a_deadline_that_has_passed_is_told_before_a_worker_that_would_only_bury_it(db: Database) -> None:
    job = shut_deadline(db)

    wait = db.read(lambda tx: why_waiting(tx, get(tx, job.seq)))

    assert wait is not None
    assert (wait.reason, wait.remedy) == (
        "being buried: its deadline has passed",
        f"queuectl edit {job.id} --deadline none",
    )


def test_what_no_worker_has_is_told_before_what_ends_by_itself(db: Database) -> None:
    set_queue(db, rate_count=1, rate_period_ms=MINUTE, next_start_at=NOW + MINUTE)
    db.read_clock = FakeClock()
    add_worker(db, "w1")
    submit(db, [JobSpec(command="true", needs=("gpu",))], who="me", environ={})

    gate = foremost(db.read(lambda tx: gates(tx, get(tx, 1))))

    assert gate is not None
    assert (gate.name, gate.remedy) == ("labels", "queuectl worker start -d --queue default --label gpu")


def test_a_limit_that_is_kept_for_one_that_needs_two_says_for_whom(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db, "w1")
    submit(db, [JobSpec(command="true", mutexes=(name,)) for name in "ab"], who="me", environ={})
    first, _ = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 2)).claims
    submit(db, [JobSpec(given_id="both", command="true", mutexes=("a", "b"))], who="me", environ={})
    submit(db, [JobSpec(command="true", mutexes=("a",))], who="me", environ={})
    db.read_clock = FakeClock(now=NOW + PATIENCE_MS)
    settle_run(db, first, Outcome.exited(0))
    taken = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 2)).claims

    assert taken == ()
    gate = foremost(db.read(lambda tx: gates(tx, get(tx, 4))))

    assert gate is not None
    assert (gate.name, gate.jobs, gate.ends) == ("mutex a", ("both",), "in half a minute")
