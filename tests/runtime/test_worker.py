"""The worker's main loop, turn by turn, where only a fault at the right moment shows what it does."""

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from queuectl import clock
from queuectl.actions.connect import Target, connect
from queuectl.actions.rescue import Rescuer
from queuectl.actions.submit import submit
from queuectl.errors import NotAStore, StoreUnreachable
from queuectl.model.after import Kind, Parent
from queuectl.model.duty import Duty
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import MAX_LOSSES, OutcomeKind
from queuectl.runtime import hand, streak
from queuectl.runtime import worker as worker_module
from queuectl.runtime.enlist import register
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.options import WorkerOptions
from queuectl.runtime.runner import PUMP_AFTER_MS
from queuectl.runtime.wording import HAND_BACK
from queuectl.runtime.worker import FAREWELLS, SETTINGS_EVERY_S, Worker
from queuectl.store import attempts, config, jobs, workers
from queuectl.store.database import Database, Tx
from queuectl.store.moves import request_cancel
from queuectl.system import launch as quick
from queuectl.system.endnotes import path_of
from queuectl.system.process import is_over
from tests.program import DEADLINE_S, wait_for
from tests.runtime.running import IN_ONE_CALL, STEP_BY_STEP, WAYS, has_printed, start_by
from tests.store.rows import add_job, get_job, get_runs

if TYPE_CHECKING:
    from queuectl.store.dialect import Question, Row

IDLE_S = 0.1
"""How long a worker without work waits in its turn, here where nobody rings for it; in earnest it is seconds."""


@pytest.fixture
def worker(target: Target) -> "Iterator[Worker]":
    """A worker that takes its turns when it is told to."""
    connect(target).close()
    options = WorkerOptions(
        worker_id=secrets.token_hex(8), supervisor_id="s", duty=Duty(), slots=1, until_idle=False, log_form=TEXT,
        log_to_file=False,
    )  # fmt: skip
    worker = Worker(target, options, Log("worker", form=TEXT, file=None), *register(target, options))
    worker._bell.poll_s = IDLE_S
    yield worker
    worker._identity.end()
    worker._database.close()


@pytest.fixture
def crowded(worker: Worker) -> Worker:
    """A worker that runs ten commands at once."""
    worker._options = worker._options.replace(slots=10)
    return worker


on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)


class Clock:
    """The clock leases are measured on, which goes on when told to."""

    def __init__(self) -> None:
        self.now = clock.boot_s()

    def __call__(self) -> float:
        """Return what it shows."""
        return self.now


@pytest.fixture
def boot_clock(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Take the clock into the test's hand, once the worker has begun."""
    hand = Clock()
    monkeypatch.setattr(clock, "boot_s", hand)
    return hand


def test_a_commit_whose_answer_was_lost_is_found_out_and_nothing_is_lost_or_repeated(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    backoff: dict[str, str | float | int] = {"strategy": "fixed", "fixed_ms": 0}
    spec = JobSpec(command="exit 1", cwd="/", max_retries=2, backoff=backoff)
    submit(db, [spec], who="me", environ={})
    commits = lose_answers(worker, monkeypatch, {1, 2, 3})

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.DEAD), "the job to be buried")

    runs = db.read(lambda tx: attempts.runs_of(tx, job))
    assert (job.attempts, [run.run for run in runs]) == (3, [1, 2, 3])
    assert commits() > 3


def test_settings_that_do_not_fit_its_environment_do_not_end_a_worker(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker._environ["QUEUECTL_LOCK_LEASE_SECONDS"] = "6"
    worker._settings_at = 0.0
    submit(db, [JobSpec(command="exit 1", cwd="/", max_retries=0)], who="me", environ={})

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.DEAD), "the job to be buried")

    assert job.error == "exit code 1"


def test_a_setting_that_was_changed_holds_for_the_next_job_that_starts(
    worker: Worker, db: Database, tmp_path: Path
) -> None:
    shell = tmp_path / "own-sh"
    shell.symlink_to("/bin/sh")
    worker._turn()
    db.write(lambda tx: config.put(tx, "shell", str(shell)))
    worker._settings_at -= SETTINGS_EVERY_S
    submit(db, [JobSpec(command="echo $0", cwd="/")], who="me", environ={})

    wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "the job to complete")

    assert [run.output_tail for run in get_runs(db, 1)] == [f"{shell}\n".encode()]


def test_a_worker_with_all_hands_full_follows_the_settings(worker: Worker, db: Database) -> None:
    submit(db, [JobSpec(command="sleep 60", cwd="/")], who="me", environ={})
    wait_for(lambda: turn(worker, db, lambda job: job.state is State.PROCESSING), "the job to run")
    db.write(lambda tx: config.put(tx, "stop_timeout", "77"))

    wait_for(lambda: turn(worker, db, lambda _: worker._settings.stop_timeout == 77), "the worker to follow")

    worker._obey(workers.NOW)
    wait_for(lambda: turn(worker, db, lambda job: job.state is State.PENDING), "the job to be handed back")


def test_a_command_that_found_no_room_is_handed_back_and_not_charged(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(db, [JobSpec(command="true", cwd="/", max_retries=0)], who="me", environ={})
    start_by(STEP_BY_STEP, monkeypatch)
    spawn, tries = os.posix_spawn, [0]

    def short_of_processes(*args: object, **named: object) -> int:
        tries[0] += 1
        if tries[0] == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return spawn(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "posix_spawn", short_of_processes)

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "the job to complete")

    assert (job.attempts, job.run) == (1, 2)


def test_a_job_reads_what_the_store_keeps_for_it_in_every_run(worker: Worker, db: Database) -> None:
    spec = JobSpec(command="md5sum; exit $((1 - QUEUECTL_ATTEMPT / 2))", cwd="/", input=bytes(range(256)) * 4096)
    submit(db, [spec.replace(backoff={"strategy": "fixed", "fixed_ms": 1})], who="me", environ={})

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "its second run")

    tails = [run.output_tail for run in get_runs(db, job.seq)]
    assert tails == [b"c35cc7d8d91728a0cb052831bc4ef372  -\n"] * 2


def test_a_job_one_loss_short_of_burial_runs_alone(crowded: Worker, db: Database) -> None:
    alone, last = (add_job(db, command="sleep 600", losses=losses) for losses in (MAX_LOSSES - 1, 0))

    for _ in range(3):
        crowded._is_looking = True
        crowded._turn()

    assert running(crowded) == [alone.seq]
    assert get_job(db, last.seq).state is State.PENDING
    stop_all(crowded)


def test_a_run_that_is_not_its_own_any_more_is_stopped(worker: Worker, db: Database) -> None:
    job = add_job(db, command="sleep 600")
    worker._turn()
    pid = worker._running[0].pid
    db.write(lambda tx: tx.changed("UPDATE jobs SET state = 'pending', worker_id = NULL", {}))

    worker._compare(time.monotonic())
    wait_for(lambda: has_ended(worker) or None, "the end of the run")

    assert not os.path.exists(f"/proc/{pid}")
    assert get_job(db, job.seq).state is State.PENDING


def test_a_job_the_database_says_is_ours_and_that_never_began_is_begun(worker: Worker, db: Database) -> None:
    job = add_job(db, State.PROCESSING, command="true", worker_id=worker._identity.id)

    worker._compare(time.monotonic())
    done = wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "the job to complete")

    assert (done.seq, done.run) == (job.seq, 1)


def test_after_an_order_to_stop_at_once_a_job_found_to_be_ours_is_handed_back(worker: Worker, db: Database) -> None:
    job = add_job(db, State.PROCESSING, command="sleep 600", worker_id=worker._identity.id)
    worker._obey(workers.NOW)
    worker._has_doubt = True

    after = wait_for(lambda: turn(worker, db, lambda job: job.state is State.PENDING), "the job to be handed back")

    assert (after.seq, after.attempts, after.losses) == (job.seq, 0, 0)


@on_postgres
def test_a_worker_that_cannot_renew_its_lease_hands_its_jobs_back_before_it_ends(
    worker: Worker, db: Database, boot_clock: Clock
) -> None:
    job = add_job(db, command="sleep 600")
    worker._turn()
    boot_clock.now = worker._heartbeat.renewed_at + 43
    worker._turn()
    before = len(worker._running)

    boot_clock.now += 2
    after = wait_for(lambda: turn(worker, db, lambda job: job.state is State.PENDING), "the job to be handed back")

    assert (before, after.seq, after.attempts, after.losses) == (1, job.seq, 0, 0)
    (run,) = db.read(lambda tx: attempts.runs_of(tx, after))
    assert (run.outcome, run.error) == (OutcomeKind.HANDED_BACK, "its worker could not renew its lease; handed back")


@on_postgres
def test_nothing_is_claimed_after_a_lapse_before_the_lease_is_renewed(
    worker: Worker, db: Database, boot_clock: Clock
) -> None:
    boot_clock.now = worker._heartbeat.renewed_at + 1000
    worker._turn()
    job = add_job(db, command="true")
    for _ in range(3):
        worker._is_looking = True
        worker._turn()
    before = get_job(db, job.seq).state

    worker._heartbeat.is_renewed = True
    wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "the job to complete")

    assert before is State.PENDING


@on_postgres
def test_a_worker_frozen_for_less_than_its_lease_gets_a_moment_to_renew_it(
    worker: Worker, db: Database, boot_clock: Clock
) -> None:
    add_job(db, command="sleep 600")
    worker._turn()

    boot_clock.now += 50
    answers = [worker._is_lapsing()]
    boot_clock.now += 2.5
    answers.append(worker._is_lapsing())
    worker._heartbeat.renewed_at = boot_clock.now
    answers.append(worker._is_lapsing())
    stop_all(worker)

    assert answers == [False, True, False]


@on_postgres
def test_a_job_claimed_before_a_freeze_that_outlasted_the_lease_is_not_started(
    worker: Worker, db: Database, boot_clock: Clock
) -> None:
    job = add_job(db, State.PROCESSING, command="true", worker_id=worker._identity.id)
    claim = Claim(job=job)

    boot_clock.now += 61
    worker._start(claim)

    assert worker._running == []
    assert [report.outcome.kind for _, report in worker._ended] == [OutcomeKind.HANDED_BACK]


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_on_sqlite_no_silence_is_too_long(worker: Worker, db: Database, boot_clock: Clock) -> None:
    add_job(db, command="sleep 600")
    worker._turn()

    boot_clock.now += 100_000
    worker._turn()
    running_on = len(worker._running)
    stop_all(worker)

    assert running_on == 1


@pytest.mark.parametrize(
    "code, retries, state",
    [(0, 3, State.COMPLETED), (3, 3, State.CANCELLED), (3, 0, State.DEAD)],
    ids=["success", "failure", "last-failure"],
)
def test_a_cancel_that_is_read_before_the_exit_is_seen_leaves_the_command_its_outcome(
    worker: Worker, db: Database, tmp_path: Path, code: int, retries: int, state: State
) -> None:
    command = f"while ! test -e {tmp_path}/go; do sleep 0.01; done; exit {code}"
    job = add_job(db, command=command, max_retries=retries)
    worker._turn()
    pid = worker._running[0].pid

    (tmp_path / "go").touch()
    wait_for(lambda: is_over(pid) or None, "the command to end")
    db.write(lambda tx: request_cancel(tx, job.seq))
    worker._take_orders(time.monotonic())
    after = wait_for(lambda: turn(worker, db, lambda job: job.state is not State.PROCESSING), "the settle")

    (run,) = get_runs(db, job.seq)
    assert (after.state, after.attempts) == (state, 1)
    assert (run.outcome, run.exit_code) == (OutcomeKind.EXITED, code)


def let_it_be_quick(worker: Worker) -> None:
    """Let a worker believe that commands are short."""
    for _ in range(20):
        worker._hand.note_pace(0.0005)


def in_hand(worker: Worker) -> list[int]:
    """Return the numbers of the jobs a worker holds and has not begun."""
    return [claim.job.seq for claim in worker._hand.claims]


def test_a_worker_with_short_commands_settles_and_takes_several_at_once(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [add_job(db, command="echo $QUEUECTL_JOB_ID").seq for _ in range(60)]
    let_it_be_quick(worker)
    monkeypatch.setattr(worker._hand, "note_pace", lambda _ran_s: None)  # however slow this machine is
    for module in (hand, worker_module):
        monkeypatch.setattr(module, "HOLD_S", 600.0)
    monkeypatch.setattr(worker, "_is_rehearsed", True)
    commits = lose_answers(worker, monkeypatch, set())

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, jobs[-1]).state is State.COMPLETED), "the last job")

    assert commits() < 10
    for seq in jobs:
        (run,) = get_runs(db, seq)
        assert (get_job(db, seq).state, run.output_tail) == (State.COMPLETED, b"%d\n" % seq)
    assert not worker._has_work()


@pytest.mark.parametrize("order, leaves", [(workers.NOW, True), (workers.DRAIN, False)])
def test_a_store_that_stays_away_holds_up_a_drain_and_not_a_stop_at_once(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch, order: str, leaves: bool
) -> None:
    job = add_job(db, command="sleep 600" if leaves else "true")
    worker._turn()
    for module, name in ((worker_module, "FAREWELL_S"), (worker_module, "TROUBLE_PAUSE_S")):
        monkeypatch.setattr(module, name, 0.01)
    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)

        worker._obey(order)
        while not worker._is_over and worker._failed_farewells < 20:
            worker._turn()

    assert worker._is_over is leaves
    assert get_job(db, job.seq).state is State.PROCESSING
    assert not running(worker)


def test_a_store_that_came_back_is_not_taken_for_one_that_stays_away(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(db, command="trap '' TERM; echo deaf; while :; do sleep 600; done")
    worker._turn()
    (runner,) = worker._running
    wait_for(lambda: has_ended(worker) or has_printed(runner) or None, "the command to be deaf")
    for module, name in ((worker_module, "FAREWELL_S"), (worker_module, "TROUBLE_PAUSE_S")):
        monkeypatch.setattr(module, name, 0.01)

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        worker._obey(workers.NOW)
        turn_until(worker, lambda: worker._failed_farewells >= FAREWELLS)
    turn_until(worker, lambda: not worker._has_doubt)
    os.killpg(runner.pid, signal.SIGKILL)
    turn_until(worker, lambda: worker._is_over)

    found = get_job(db, job.seq)
    assert (found.state, found.losses) == (State.PENDING, 0)
    assert [run.outcome for run in get_runs(db, job.seq)] == [OutcomeKind.HANDED_BACK]


def test_what_a_worker_owes_when_it_leaves_is_rescued_as_it_ended_and_nothing_is_charged(
    crowded: Worker, db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = crowded
    slow, good = (add_job(db, command=command).seq for command in ("sleep 600", "echo good"))
    monkeypatch.setattr(worker_module, "FAREWELL_S", 0.01)
    monkeypatch.setattr(worker_module, "TROUBLE_PAUSE_S", 0.01)
    worker._turn()

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        turn_until(worker, lambda: running(worker) == [slow])
        worker._obey(workers.NOW)
        turn_until(worker, lambda: worker._is_over)
    leave(worker, monkeypatch)
    Rescuer(db, target.home, {}).look()

    assert [get_job(db, seq).state for seq in (slow, good)] == [State.PENDING, State.COMPLETED]
    assert [run.outcome for run in get_runs(db, slow)] == [OutcomeKind.HANDED_BACK]
    assert [run.output_tail for run in get_runs(db, good)] == [b"good\n"]
    assert get_job(db, slow).losses == 0


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mutexes": ("db",)},
        {"unique_key": "k"},
        {"group": "g"},
        {"policy": {"success_codes": [0, 3]}},
        {"launch": {"nice": 1}},
    ],
    ids=str,
)
def test_a_short_run_that_ended_well_is_not_repeated_when_its_worker_leaves_whatever_waits_for_it(
    worker: Worker, db: Database, target: Target, monkeypatch: pytest.MonkeyPatch, given: dict[str, object]
) -> None:
    after = (Parent(kind=Kind.OK, id="1"),)
    monkeypatch.setattr(worker_module, "FAREWELL_S", 0.01)
    monkeypatch.setattr(worker_module, "TROUBLE_PAUSE_S", 0.01)
    submit(db, [JobSpec(command="true", cwd="/", **given)], who="me", environ={})  # type: ignore[arg-type]
    submit(db, [JobSpec(command="true", cwd="/", after=after)], who="me", environ={})
    worker._turn()

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        turn_until(worker, lambda: bool(worker._ended))
        worker._obey(workers.NOW)
        turn_until(worker, lambda: worker._is_over)
    leave(worker, monkeypatch)
    Rescuer(db, target.home, {}).look()

    assert [get_job(db, seq).state for seq in (1, 2)] == [State.COMPLETED, State.PENDING]
    assert [(run.outcome, run.exit_code) for run in get_runs(db, 1)] == [(OutcomeKind.EXITED, 0)]


def test_a_job_whose_input_the_store_does_not_give_now_waits_for_it_and_so_does_what_is_in_hand(
    crowded: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = crowded
    slow = add_job(db, command="sleep 600")
    worker._turn()
    submit(db, [JobSpec(command="cat", cwd="/", input=b"kept")] * 3, who="me", environ={})
    monkeypatch.setattr(worker_module, "TROUBLE_PAUSE_S", 0.01)
    monkeypatch.setattr(hand, "HOLD_S", 600.0)
    worker._is_looking = True
    first, *others = held = take_in_hand(worker, monkeypatch)

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        worker._retry_at = time.monotonic() + DEADLINE_S  # a settle has failed just now
        worker._turn()
        begun, returned = running(worker), [claim.job.seq for claim in worker._hand.returned]
    turn_until(worker, lambda: all(get_job(db, seq).state is State.COMPLETED for seq in held))

    assert (begun, returned) == ([slow.seq], others)
    assert [run.outcome for run in get_runs(db, first)] == [OutcomeKind.HANDED_BACK, OutcomeKind.EXITED]
    assert [[run.output_tail for run in get_runs(db, seq)][-1] for seq in held] == [b"kept"] * 3
    assert [get_job(db, seq).attempts for seq in held] == [1] * 3
    assert running(worker) == [slow.seq]
    assert get_job(db, slow.seq).losses == 0
    stop_all(worker)


def test_a_job_whose_input_cannot_be_read_ends_in_the_dlq_and_holds_up_no_other(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(db, [JobSpec(command="cat", cwd="/", input=b"kept", max_retries=0)], who="me", environ={})
    submit(db, [JobSpec(command="true", cwd="/")], who="me", environ={})

    def be_damaged(*_: object) -> None:
        raise NotAStore("database disk image is malformed")

    monkeypatch.setattr(worker, "_kept_input", be_damaged)
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, 2).state is State.COMPLETED), "the other one")

    assert get_job(db, 1).state is State.DEAD
    (run,) = get_runs(db, 1)
    assert (run.outcome, run.exit_code) == (OutcomeKind.NOT_STARTED, 126)
    assert run.error == "its input cannot be read: database disk image is malformed"


def test_what_a_worker_may_have_been_given_without_hearing_of_it_is_not_charged_when_it_leaves(
    worker: Worker,
    db: Database,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    job = add_job(db, command="true")
    monkeypatch.setattr(worker_module, "TROUBLE_PAUSE_S", 0.01)
    lose_answers(worker, monkeypatch, {1})
    worker._turn()

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        worker._obey(workers.DRAIN)
        turn_until(worker, lambda: worker._is_over)
    leave(worker, monkeypatch)
    held = get_job(db, job.seq).state
    Rescuer(db, target.home, {}).look()

    found = get_job(db, job.seq)
    assert (held, found.state, found.losses) == (State.PROCESSING, State.PENDING, 0)
    assert get_runs(db, job.seq) == []
    assert "leaving what it may have been given meanwhile to whoever rescues" in "".join(capfd.readouterr())


def test_how_long_the_store_was_away_is_no_part_of_how_long_a_command_ran(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    away_s = 2.0
    job = add_job(db, command="true")
    monkeypatch.setattr(worker_module, "TROUBLE_PAUSE_S", 0.01)
    worker._turn()

    with monkeypatch.context() as away:
        for name in ("read", "write"):
            away.setattr(worker._database, name, _refuse)
        turn_until(worker, lambda: bool(worker._ended))
        ended = time.monotonic()
        turn_until(worker, lambda: time.monotonic() > ended + away_s)
    turn_until(worker, lambda: not worker._has_work())

    (run,) = get_runs(db, job.seq)
    assert run.outcome is OutcomeKind.EXITED
    assert (run.finished_at or 0) - run.started_at < away_s * 1000


@on_postgres
def test_an_idle_worker_has_its_claim_planned_before_the_first_job_comes(worker: Worker) -> None:
    sql = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%WITH head AS%' AND generic_plans > 0"

    before = worker._database.read(lambda tx: tx.rows(sql))
    worker._turn()

    assert (before, worker._database.read(lambda tx: tx.rows(sql))) == ([(0,)], [(1,)])


def test_a_command_that_is_not_short_lets_the_others_go(worker: Worker, db: Database) -> None:
    first, *others = (add_job(db, command=command).seq for command in ("sleep 600", "true", "true"))
    let_it_be_quick(worker)

    worker._turn()
    held = in_hand(worker)
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, others[0]).state is State.PENDING), "them to go back")

    assert (held, running(worker), in_hand(worker)) == (others, [first], [])
    assert [(get_job(db, seq).state, get_runs(db, seq)) for seq in others] == [(State.PENDING, [])] * 2
    stop_all(worker)


def test_a_job_that_is_cancelled_in_hand_never_begins(worker: Worker, db: Database) -> None:
    first, cancelled, other = (add_job(db, command=command).seq for command in ("sleep 600", "true", "true"))
    let_it_be_quick(worker)
    worker._turn()
    held = in_hand(worker)

    db.write(lambda tx: request_cancel(tx, cancelled))
    worker._take_orders(time.monotonic())
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, cancelled).state is not State.PROCESSING), "its settle")

    assert held == [cancelled, other]
    assert get_job(db, cancelled).state is State.CANCELLED
    assert running(worker) == [first]
    stop_all(worker)


@pytest.mark.parametrize("way", WAYS)
def test_an_end_is_noted_before_the_next_command_begins(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    start_by(way, monkeypatch)
    look = f"sed 's/^.//; s/,.*//' {path_of(worker._identity.lock.path)}"
    jobs = [add_job(db, command=look).seq for _ in range(9)]
    let_it_be_quick(worker)
    for module in (hand, worker_module):
        monkeypatch.setattr(module, "HOLD_S", 600.0)

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, jobs[-1]).state is State.COMPLETED), "the last one")

    noted = [get_runs(db, seq)[0].output_tail or b"" for seq in jobs]
    assert [list(map(int, lines.split())) for lines in noted] == [jobs[:place] for place in range(len(jobs))]


def test_one_command_that_does_not_do_well_is_told_apart_from_the_row_it_ended(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    commands = ["true"] * 7 + ["exit 3"] + ["true"] * 3 + ["sleep 0.05"] + ["true"] * 5
    jobs = [add_job(db, command=command, max_retries=0).seq for command in commands]
    let_it_be_quick(worker)
    monkeypatch.setattr(worker._hand, "note_pace", lambda _ran_s: None)  # however slow this machine is
    for module in (hand, worker_module):
        monkeypatch.setattr(module, "HOLD_S", 600.0)

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, jobs[-1]).state is State.COMPLETED), "the last one")

    runs = [get_runs(db, seq) for seq in jobs]
    assert [[run.exit_code for run in each] for each in runs] == [[3 if seq == jobs[7] else 0] for seq in jobs]
    assert runs[11][0].finished_at - runs[11][0].started_at >= 50  # type: ignore[operator]
    assert noted(worker) == set()


def test_a_row_of_commands_ends_when_there_is_something_else_to_see_to(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    for _ in range(40):
        add_job(db, command="true")
    worker._hand._in_a_row = hand.MOST
    held = take_in_hand(worker, monkeypatch)

    worker._loop.ring()
    worker._run_through(time.monotonic(), time.monotonic() + 600.0)

    assert len(held) > 2
    assert in_hand(worker) == held[1:]
    worker._loop.turn(0)
    stop_all(worker)


@pytest.mark.parametrize("fault", ["lapsing", "not renewed"])
def test_no_row_begins_while_the_lease_is_in_doubt(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    add_job(db, command="true")
    held = take_in_hand(worker, monkeypatch)
    if fault == "lapsing":
        monkeypatch.setattr(worker, "_is_lapsing", lambda: True)
    else:
        worker._heartbeat.is_renewed = False

    has_begun = worker._run_through(time.monotonic(), time.monotonic() + 600.0)

    assert (has_begun, in_hand(worker)) == (False, held)


def test_what_went_well_in_a_row_is_settled_within_a_moment_and_the_next_row_is_longer(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    monkeypatch.setattr(streak, "PUMP_AFTER_MS", 20_000)  # however slow this machine is
    for _ in range(6):
        add_job(db, command="true")
    held = take_in_hand(worker, monkeypatch)
    begun = time.monotonic()
    worker._hand._pace_s = 600.0

    sizes = []
    for _ in range(2):
        worker._run_through(begun, begun + 600.0)
        sizes.append(len(worker._hand.next_in_a_row))

    assert sizes == [2, 3]  # of the four that may, no more are left
    assert [claim.job.seq for claim, _ in worker._ended] == held[:3]
    assert worker._settle_by <= begun + hand.HOLD_S
    assert worker._hand.late == set()
    assert worker._hand._pace_s < 600.0 / 4


def test_a_row_that_is_broken_off_makes_the_next_one_short(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    monkeypatch.setattr(streak, "PUMP_AFTER_MS", 20_000)  # however slow this machine is
    for command in ("true", "exit 3", "true", "true"):
        add_job(db, command=command)
    held = take_in_hand(worker, monkeypatch)
    worker._hand._in_a_row = 4

    worker._run_through(time.monotonic(), time.monotonic() + 600.0)

    assert in_hand(worker) == held[2:]
    assert len(worker._hand.next_in_a_row) == 1


def test_one_given_up_for_dead_begins_nothing_of_its_hand_when_it_learns_of_it_first(
    worker: Worker, db: Database, tmp_path: Path
) -> None:
    for command in ("sleep 600", f"touch {tmp_path}/a", f"touch {tmp_path}/b"):
        add_job(db, command=command)
    let_it_be_quick(worker)
    worker._turn()
    held = in_hand(worker)

    def close_its_row(tx: Tx) -> bool:
        row = workers.get(tx, worker._identity.id)
        return row is not None and workers.give_up(tx, row)

    is_given_up = db.write(close_its_row)
    with pytest.raises(SystemExit):
        worker._take_orders(time.monotonic())

    assert (len(held), is_given_up) == (2, True)
    assert list(tmp_path.glob("?")) == []


def take_in_hand(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a worker take what there is and begin none of it; return the numbers."""
    let_it_be_quick(worker)
    with monkeypatch.context() as waiting:
        waiting.setattr(worker, "_begin", lambda *_, **__: None)
        worker._turn()
    return in_hand(worker)


def test_a_worker_that_is_frozen_after_it_looked_at_its_lease_begins_no_row(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(IN_ONE_CALL, monkeypatch)
    for _ in range(3):
        add_job(db, command="true")
    held = take_in_hand(worker, monkeypatch)
    until = time.monotonic() + 0.05

    def be_frozen() -> bool:
        wait_for(lambda: time.monotonic() > until, "the time to be up")
        return False

    monkeypatch.setattr(worker, "_is_lapsing", be_frozen)
    has_begun = worker._run_through(time.monotonic(), until)

    assert (has_begun, in_hand(worker)) == (False, held)


def test_the_pid_of_one_that_ended_is_struck_out_when_the_store_cannot_be_asked(
    worker: Worker, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_go = f"while ! test -e {tmp_path}/go; do sleep 0.01; done"
    _, _, *left = (add_job(db, command=command).seq for command in (until_go, until_go, "sleep 600", "sleep 600"))
    worker._options = worker._options.replace(slots=3)
    let_it_be_quick(worker)
    for module in (hand, worker_module):
        monkeypatch.setattr(module, "HOLD_S", 600.0)
    worker._turn()
    first, second, _ = (runner.pid for runner in worker._running)
    (tmp_path / "go").touch()
    wait_for(lambda: (is_over(first) and is_over(second)) or None, "their ends")
    worker._poll(time.monotonic())
    noted_before = noted(worker)

    with monkeypatch.context() as store:
        store.setattr(worker_module, "settle_and_claim", unreachable)
        worker._turn()

    assert (running(worker), in_hand(worker)) == (left, [])
    assert len(noted_before) == 3
    assert noted(worker) == set(left)
    stop_all(worker)


def noted(worker: Worker) -> set[int]:
    """Return the numbers of the jobs whose pids stand in a worker's lock, whatever is noted elsewhere."""
    lines = Path(worker._identity.lock.path).read_text().splitlines()[1:]
    return {int(line.split()[2]) for line in lines if line.strip()}


def unreachable(*_: object, **__: object) -> None:
    """Fail as a store does that cannot be reached."""
    raise StoreUnreachable("no store")


@pytest.mark.parametrize("slots, patiences", [(1, {0, PUMP_AFTER_MS}), (2, {0})])
def test_a_command_is_waited_for_only_where_no_other_could_run_meanwhile(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch, slots: int, patiences: set[int]
) -> None:
    jobs = [add_job(db, command="true").seq for _ in range(20)]
    worker._options = worker._options.replace(slots=slots)
    let_it_be_quick(worker)
    for module in (hand, worker_module):
        monkeypatch.setattr(module, "HOLD_S", 600.0)
    seen, launch = set(), quick.launch

    def see_and_launch(*args: object) -> object:
        seen.add(args[5])
        return launch(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(quick, "launch", see_and_launch)

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, jobs[-1]).state is State.COMPLETED), "the last job")

    assert seen == patiences


@pytest.mark.parametrize("order", [workers.DRAIN, workers.NOW])
def test_an_order_to_stop_lets_go_what_has_not_begun(worker: Worker, db: Database, order: str) -> None:
    first, *others = (add_job(db, command=command).seq for command in ("sleep 600", "true", "true"))
    let_it_be_quick(worker)
    worker._turn()
    held = in_hand(worker)

    worker._obey(order)
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, others[1]).state is State.PENDING), "them to go back")

    assert held == others
    assert [get_runs(db, seq) for seq in others] == [[], []]
    worker._obey(workers.NOW)
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, first).state is State.PENDING), "the first one, too")


def test_a_run_that_failed_does_not_wait_for_the_others(worker: Worker, db: Database) -> None:
    failing, *others = (add_job(db, command=command).seq for command in ("exit 3", "sleep 600", "true"))
    let_it_be_quick(worker)

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, failing).state is State.FAILED), "its settle")

    assert get_job(db, others[0]).state is State.PROCESSING
    stop_all(worker)


def test_after_a_lost_answer_what_is_in_hand_is_begun_once_and_settled_once(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [add_job(db, command="echo x").seq for _ in range(2 * hand.MOST)]
    let_it_be_quick(worker)
    commits = lose_answers(worker, monkeypatch, {1, 2, 3})

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, jobs[-1]).state is State.COMPLETED), "the last job")

    assert commits() > 3
    assert [[run.outcome for run in get_runs(db, seq)] for seq in jobs] == [[OutcomeKind.EXITED]] * len(jobs)


@on_postgres
def test_what_is_in_hand_when_the_lease_cannot_be_renewed_is_not_begun(
    worker: Worker, db: Database, boot_clock: Clock
) -> None:
    first, second = (add_job(db, command=command).seq for command in ("sleep 600", "true"))
    let_it_be_quick(worker)
    worker._turn()
    held = in_hand(worker)
    boot_clock.now = worker._heartbeat.renewed_at + 43
    worker._turn()
    boot_clock.now += 2

    wait_for(lambda: turn(worker, db, lambda _: get_job(db, first).state is State.PENDING), "the hand-back")
    wait_for(lambda: turn(worker, db, lambda _: get_job(db, second).state is State.PENDING), "the other one")

    assert held == [second]
    assert get_runs(db, second) == []


def running(worker: Worker) -> list[int]:
    """Return the numbers of the jobs a worker runs."""
    return [runner.claim.job.seq for runner in worker._running]


def test_one_given_up_for_dead_begins_nothing_more_of_its_hand(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_by(STEP_BY_STEP, monkeypatch)  # in one call the bell of the heartbeat ends the row
    jobs = [add_job(db, command="true").seq for _ in range(4)]
    let_it_be_quick(worker)
    begun: list[int] = []
    start = worker._start

    def start_and_be_given_up(claim: Claim, *, is_patient: bool) -> bool:
        begun.append(claim.job.seq)
        worker._heartbeat.is_given_up = len(begun) == 2
        return start(claim, is_patient=is_patient)

    monkeypatch.setattr(worker, "_start", start_and_be_given_up)

    worker._turn()
    wait_for(lambda: has_ended(worker) and worker._heartbeat.is_given_up, "it is given up")
    worker._begin(time.monotonic(), is_patient=True)

    assert begun == jobs[:2]
    worker._heartbeat.is_given_up = False
    stop_all(worker)


def test_a_worker_that_was_idle_does_not_ask_for_orders_right_after_it_took_a_job(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_job(db, command="sleep 600")
    asked: list[float] = []
    monkeypatch.setattr(worker, "_take_orders", asked.append)
    worker._on_bell()

    wait_for(lambda: turn(worker, db, lambda job: job.state is State.PROCESSING), "the job to run")
    worker._turn()

    assert asked == []
    worker._next_orders = 0.0
    worker._turn()
    assert len(asked) == 1
    stop_all(worker)


def stop_all(worker: Worker) -> None:
    """End what a worker runs."""
    for runner in worker._running:
        runner.stop(HAND_BACK, grace_s=0.0)
    wait_for(lambda: has_ended(worker) or None, "the end of the runs")


def has_ended(worker: Worker) -> bool:
    """Look after the commands for a moment; tell whether all have ended."""
    worker._poll(time.monotonic() + 0.02)
    return not worker._running


def turn(worker: Worker, db: Database, is_reached: Callable[[Job], bool]) -> Job | None:
    """Let the worker take a turn and return the one job once it is where it should be."""
    worker._next_look = min(worker._next_look, 1e-9) if not worker._running else worker._next_look
    worker._turn()
    job = db.read(lambda tx: jobs.get(tx, 1))
    return job if job is not None and is_reached(job) else None


def turn_until(worker: Worker, is_reached: Callable[[], bool]) -> None:
    """Let the worker take one turn after the other, without a rest, as it does in earnest."""
    until = time.monotonic() + DEADLINE_S
    while not is_reached():
        assert time.monotonic() < until, "the worker did not get there in time"
        worker._turn()


def leave(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker leave as if its process ended then, which never began to beat."""
    with monkeypatch.context() as begun:
        for owner, name in ((worker._heartbeat, "stop"), (worker._database, "close"), (worker._pad, "close")):
            begun.setattr(owner, name, lambda: None)  # the others are needed when the test is over
        worker._leave()
    os.dup2(worker._pad.devnull, worker._identity.lock._fd)  # as the kernel lets go of the lock of a dead process


def lose_answers(worker: Worker, monkeypatch: pytest.MonkeyPatch, numbers: set[int]) -> Callable[[], int]:
    """Let some of the worker's writing commits succeed and their answers get lost."""
    dialect = worker._database.dialect
    begin, begin_asking, commit = dialect.begin, dialect.begin_asking, dialect.commit
    count, is_writing = [0], [False]

    def note_begin(*, writing: bool) -> int:
        is_writing[0] = writing
        return begin(writing=writing)

    def note_asking(question: "Question") -> "tuple[int, list[Row] | None]":
        is_writing[0] = True
        return begin_asking(question)

    def lose(*_: object) -> None:
        commit()
        count[0] += is_writing[0]
        if is_writing[0] and count[0] in numbers:
            raise StoreUnreachable("the answer was lost")

    monkeypatch.setattr(dialect, "begin", note_begin)
    monkeypatch.setattr(dialect, "begin_asking", note_asking)
    monkeypatch.setattr(dialect, "commit", lose)
    return lambda: count[0]


def _refuse(*_: object) -> None:
    raise StoreUnreachable("nobody answers")
