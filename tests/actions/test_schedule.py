"""Schedules that are due: each instant once whoever ticks, what was missed, jobs that meet an earlier one."""

import random
from collections import Counter
from itertools import count

import pytest

from queuectl.actions import disuse, scheduling
from queuectl.actions.connect import Target, connect
from queuectl.actions.control import set_setting
from queuectl.actions.doctor import examine
from queuectl.actions.gatekeeping import delete_limit, set_limit
from queuectl.actions.schedule import MOST_AT_ONCE, Tick, tick
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.finding import Finding, Level
from queuectl.model.schedule import Fire, FireOutcome, Schedule
from queuectl.model.states import State
from queuectl.model.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, iso_text
from queuectl.model.verdict import Outcome
from queuectl.store import jobs, schedules
from queuectl.store.database import Database
from tests.actions.bells import Begins, Bell
from tests.store.rows import NOW, FakeClock, add_worker, claim_one, get_job, last_act, settle_run

WHO = "ann@here"
ZONE = "Europe/Oslo"


@pytest.fixture(autouse=True)
def _standing_clock(db: Database) -> None:
    db.read_clock = FakeClock()


def add(db: Database, name: str = "s", job: "dict[str, object] | None" = None, /, **asked: object) -> Schedule:
    """Add a schedule that comes every ten minutes, unless something else is said."""
    when = {} if "cron" in asked or "every" in asked else {"every": "10m"}
    fields = {"command": "true", "cwd": "/", **(job or {})}
    return scheduling.add(db, name, {"tz": ZONE, **when, **asked}, fields, who=WHO)


def tick_at(db: Database, now: int) -> Tick:
    """Let time pass and somebody look."""
    db.read_clock = FakeClock(now=now)
    return tick(db)


def tick_all_at(db: Database, now: int) -> None:
    """Let time pass and somebody look until nothing is due."""
    while tick_at(db, now).fired:
        pass


def get(db: Database, name: str = "s") -> Schedule:
    found = db.read(lambda tx: schedules.get(tx, name))
    assert found is not None
    return found


def fires(db: Database, name: str = "s") -> list[Fire]:
    """Return the fires on record, oldest first."""
    return [each.fire for each in reversed(db.read(lambda tx: schedules.fires(tx, name, 10_000)))]


def job_seqs(db: Database) -> list[int]:
    return sorted(job.seq for job in db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 100_000)))


def test_a_schedule_fires_at_its_time_and_not_before(db: Database) -> None:
    schedule = add(db, every="10m")
    due = schedule.next_at or 0

    before = tick_at(db, due - 1)
    after = tick_at(db, due)

    assert (before.fired, after.fired) == (0, 1)
    [fired] = fires(db)
    assert (fired.instant, fired.outcome, fired.fired_at) == (due, FireOutcome.FIRED, due)
    job = get_job(db, fired.job_seq or 0)
    assert (job.command, job.state, job.cwd) == ("true", State.PENDING, "/")
    assert get(db).next_at == due + 10 * MINUTE_MS


def test_whoever_ticks_again_finds_nothing_to_do(db: Database, target: Target) -> None:
    due = add(db).next_at or 0
    other = connect(target)

    results = [tick_at(each, due + place) for place, each in enumerate((db, other, db, other))]

    assert [done.fired for done in results] == [1, 0, 0, 0]
    assert len(job_seqs(db)) == 1
    other.close()


def test_an_instant_on_record_is_never_fired_again_also_when_the_clock_is_set_back(db: Database) -> None:
    due = add(db).next_at or 0
    tick_at(db, due)

    db.read_clock = FakeClock(now=due - 5 * MINUTE_MS)
    scheduling.pause(db, ["s"], who=WHO)
    scheduling.resume(db, ["s"], who=WHO)
    again = get(db).next_at
    tick_at(db, due)

    assert again == due
    assert [fired.instant for fired in fires(db)] == [due]
    assert len(job_seqs(db)) == 1
    assert get(db).next_at == due + 10 * MINUTE_MS


@pytest.mark.parametrize(
    "misfire, jobs_made, outcomes",
    [
        ("skip", 0, [(3, "missed", 2)]),
        ("once", 1, [(3, "fired", 2)]),
        ("all", 3, [(1, "fired", 0), (2, "fired", 0), (3, "fired", 0)]),
    ],
)
def test_a_fleet_that_was_down_follows_the_rule_and_goes_on(
    db: Database, misfire: str, jobs_made: int, outcomes: list[tuple[int, str, int]]
) -> None:
    add(db, misfire=misfire)

    tick_at(db, NOW + 35 * MINUTE_MS)

    assert [((one.instant - NOW) // (10 * MINUTE_MS), one.outcome, one.missed) for one in fires(db)] == outcomes
    assert len(job_seqs(db)) == jobs_made
    tick_at(db, NOW + 40 * MINUTE_MS)
    assert len(job_seqs(db)) == jobs_made + 1
    assert fires(db)[-1].instant == NOW + 40 * MINUTE_MS


def test_beyond_the_cap_the_newest_are_kept_and_the_rest_is_one_row(db: Database) -> None:
    add(db, every="1s", misfire="all", misfire_cap=5)

    tick_at(db, NOW + DAY_MS)

    given_up, *fired = fires(db)
    assert (given_up.outcome, given_up.missed) == (FireOutcome.MISSED, 1000)
    # Five for those that were missed, and the one that is due now.
    assert [one.instant for one in fired] == [NOW + DAY_MS - ago * SECOND_MS for ago in (5, 4, 3, 2, 1, 0)]
    assert {one.outcome for one in fired} == {FireOutcome.FIRED}


def test_a_schedule_of_each_second_that_was_down_for_a_year_is_back_in_one_transaction_each(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(db, every="1s", misfire="skip")
    db.read_clock = FakeClock(now=NOW + 365 * DAY_MS)
    begins = Begins(db, monkeypatch)

    done = tick(db)

    assert begins.writes == done.fired + 1
    assert done.fired == 2  # the row of what was missed, and the instant that is due now
    assert get(db).next_at == NOW + 365 * DAY_MS + SECOND_MS


def test_skip_leaves_an_instant_out_while_an_earlier_job_is_not_over(db: Database) -> None:
    add_worker(db)
    add(db, overlap="skip")
    tick_at(db, NOW + 10 * MINUTE_MS)
    claim = claim_one(db)

    tick_at(db, NOW + 20 * MINUTE_MS)
    settle_run(db, claim, Outcome.exited(0))
    tick_at(db, NOW + 30 * MINUTE_MS)

    assert [one.outcome for one in fires(db)] == ["fired", "skipped", "fired"]
    assert fires(db)[1].why == f"job {claim.job.seq} is not over"
    assert len(job_seqs(db)) == 2


def test_queue_lets_the_jobs_of_a_schedule_run_one_after_the_other(db: Database) -> None:
    add_worker(db)
    add(db, overlap="queue")
    tick_at(db, NOW + 10 * MINUTE_MS)
    first = claim_one(db)
    tick_at(db, NOW + 20 * MINUTE_MS)
    [_, second] = job_seqs(db)

    assert get_job(db, second).state is State.BLOCKED

    settle_run(db, first, Outcome.exited(0))

    assert claim_one(db).job.seq == second


def test_replace_cancels_earlier_jobs_and_the_new_one_waits_until_they_are_gone(db: Database) -> None:
    add_worker(db)
    add(db, overlap="replace")
    tick_at(db, NOW + 10 * MINUTE_MS)
    running = claim_one(db)
    tick_at(db, NOW + 20 * MINUTE_MS)
    tick_at(db, NOW + 30 * MINUTE_MS)
    first, second, third = job_seqs(db)

    assert get_job(db, first).cancel_requested == 1
    assert get_job(db, second).state is State.CANCELLED
    assert get_job(db, third).state is State.BLOCKED

    settle_run(db, running, Outcome.cancelled())

    assert get_job(db, first).state is State.CANCELLED
    assert claim_one(db).job.seq == third
    assert get_job(db, second).error == "cancelled before it ran: replaced by a newer job of schedule s"
    # The first was still there when the third came.
    assert [one.why for one in fires(db)] == [f"replaced by job {third}", f"replaced by job {third}", None]
    assert [one.was_replaced for one in fires(db)] == [True, True, False]


def test_a_job_that_cannot_be_added_is_on_record_and_the_schedule_goes_on(db: Database) -> None:
    set_limit(db, "api", 2, who=WHO)
    add(db, "s", {"limits": ["api"]})
    add(db, "other")
    delete_limit(db, "api", who=WHO)

    done = tick_at(db, NOW + 10 * MINUTE_MS)

    assert done.fired == 2
    assert "no limit 'api'" in done.notes[0]
    assert [(one.outcome, one.job_seq) for one in fires(db)] == [("refused", None)]
    assert "api" in (fires(db)[0].why or "")
    assert fires(db, "other")[0].outcome == "fired"
    set_limit(db, "api", 2, who=WHO)
    tick_at(db, NOW + 20 * MINUTE_MS)
    assert fires(db)[-1].outcome == "fired"


def test_of_many_that_were_missed_only_the_refused_ones_get_no_job(db: Database) -> None:
    add(db, "s", {"unique": "k", "on_conflict": "error"}, every="1h", misfire="all")

    done = tick_at(db, NOW + 10 * HOUR_MS + 30 * MINUTE_MS)

    [first, *others] = fires(db)
    assert (first.outcome, first.instant) == (FireOutcome.FIRED, NOW + HOUR_MS)
    assert [one.outcome for one in others] == [FireOutcome.REFUSED] * 9
    assert {one.why for one in others} == {f"job {first.job_seq} has the key 'k'"}
    assert (len(done.notes), job_seqs(db)) == (9, [first.job_seq])
    assert get(db).next_at == NOW + 11 * HOUR_MS


def test_each_of_many_that_were_missed_has_a_transaction_of_its_own_and_others_have_their_turn(db: Database) -> None:
    add(db, "many", every="1m", misfire="all", misfire_cap=1000)
    now = NOW + 5 * HOUR_MS
    db.read_clock = FakeClock(now=now - 4 * SECOND_MS)
    add(db, "quick", every="1s")
    clock = count(now)
    db.read_clock = lambda _: next(clock)

    done = tick(db)

    assert done.fired == MOST_AT_ONCE
    assert len(fires(db, "quick")) == 4
    assert len(fires(db, "many")) == MOST_AT_ONCE - 4
    assert get(db, "many").next_instant == NOW + (MOST_AT_ONCE - 3) * MINUTE_MS
    tick_all_at(db, now + SECOND_MS)
    assert [one.instant for one in fires(db, "many")] == [NOW + step * MINUTE_MS for step in range(1, 301)]


def test_a_schedule_in_a_zone_this_host_does_not_know_is_left_for_another_and_holds_nobody_up(db: Database) -> None:
    add(db, "strange", every="10m")
    add(db, "other", every="10m")
    db.write(lambda tx: tx.changed("UPDATE schedules SET cron = '@daily', tz = 'Mars/Base' WHERE name = 'strange'"))

    done = tick_at(db, NOW + 10 * MINUTE_MS)

    assert done.notes == ("schedule strange is left for another host: this host knows no zone 'Mars/Base'",)
    assert [fired.outcome for fired in fires(db, "other")] == ["fired"]
    left = get(db, "strange")
    assert (fires(db, "strange"), left.next_instant) == ([], NOW + 10 * MINUTE_MS)
    assert (left.next_at or 0) > NOW + 10 * MINUTE_MS


def test_all_fields_of_a_job_reach_it(db: Database) -> None:
    job: dict[str, object] = {
        "queue": "mail", "priority": 7, "tags": ["a"], "timeout": "5m", "max_retries": 1, "env": {"A": "b"},
        "mutex": ["db"], "memory": "1G", "deadline": "2h", "success_codes": [0, 3], "input": "hello",
    }  # fmt: skip
    add(db, "s", job)

    tick_at(db, NOW + 10 * MINUTE_MS)

    made = get_job(db, job_seqs(db)[0])
    assert (made.queue, made.priority, made.tag_list, made.timeout_ms, made.max_retries) == (
        "mail",
        7,
        ["a"],
        300_000,
        1,
    )
    assert made.env_map == {
        "A": "b", "QUEUECTL_SCHEDULE": "s", "QUEUECTL_SCHEDULED_FOR": "2027-01-15T08:10:00.000Z",
    }  # fmt: skip
    assert (made.limit_list, made.deadline_ms, made.state) == (["mutex:db"], 2 * HOUR_MS, State.PENDING)
    assert made.policy_map == {"success_codes": [0, 3]}
    assert made.launch_map == {"memory_bytes": 1 << 30, "has_input": True}


@pytest.mark.parametrize(
    "on_conflict, outcomes, made",
    [("skip", ["fired", "skipped"], 1), ("attach", ["fired", "fired"], 1), ("error", ["fired", "refused"], 1)],
)
def test_a_key_that_an_earlier_job_has_decides_whether_there_is_another(
    db: Database, on_conflict: str, outcomes: list[str], made: int
) -> None:
    add(db, "s", {"unique": "k", "on_conflict": on_conflict})

    tick_at(db, NOW + 10 * MINUTE_MS)
    tick_at(db, NOW + 20 * MINUTE_MS)

    assert [one.outcome for one in fires(db)] == outcomes
    assert len(job_seqs(db)) == made
    assert "'k'" in (fires(db)[1].why or "")
    assert get(db).next_at == NOW + 30 * MINUTE_MS


def test_settings_in_force_when_it_fires_are_those_of_its_jobs(db: Database) -> None:
    add(db)
    set_setting(db, "max_retries", "9", who=WHO)

    tick_at(db, NOW + 10 * MINUTE_MS)

    assert get_job(db, job_seqs(db)[0]).max_retries == 9


def test_run_fires_now_and_does_not_disturb_the_next_instant(db: Database) -> None:
    schedule = add(db)

    first = scheduling.run_now(db, "s", who=WHO)
    second = scheduling.run_now(db, "s", who=WHO)

    assert last_act(db)[1:3] == ("schedule run", f"s (job {second})")
    assert [(one.job_seq, one.is_manual, one.instant % SECOND_MS) for one in fires(db)] == [
        (first, 1, 1),
        (second, 1, 2),
    ]
    assert get(db) == schedule
    tick_at(db, schedule.next_at or 0)
    assert len(job_seqs(db)) == 3


def test_run_is_refused_where_an_earlier_job_makes_it_skip(db: Database) -> None:
    add(db, overlap="skip")
    seq = scheduling.run_now(db, "s", who=WHO)

    with pytest.raises(Refused, match=f"job {seq}"):
        scheduling.run_now(db, "s", who=WHO)


def test_while_paused_nothing_fires_and_what_came_meanwhile_is_not_missed(db: Database) -> None:
    add(db, misfire="all")

    assert scheduling.pause(db, ["s"], who=WHO) == ["s"]
    assert scheduling.pause(db, ["s"], who=WHO) == []
    tick_at(db, NOW + DAY_MS)
    assert scheduling.resume(db, ["s"], who=WHO) == ["s"]
    tick_at(db, NOW + DAY_MS + 9 * MINUTE_MS)

    assert fires(db) == []
    tick_at(db, NOW + DAY_MS + 10 * MINUTE_MS)
    assert len(fires(db)) == 1


def test_remove_leaves_the_jobs_and_a_new_one_of_the_name_begins_afresh(db: Database) -> None:
    add(db)
    tick_at(db, NOW + 10 * MINUTE_MS)

    assert scheduling.remove(db, ["s"], who=WHO) == ["s"]

    assert (fires(db), len(job_seqs(db))) == ([], 1)
    add(db)
    assert get(db).created_at == NOW + 10 * MINUTE_MS


def test_a_schedule_that_is_not_there_is_named_with_the_nearest_and_nothing_is_changed(db: Database) -> None:
    add(db, "nightly")
    add(db, "weekly")

    for act in (scheduling.pause, scheduling.resume, scheduling.remove):
        with pytest.raises(NotFound, match="did you mean 'nightly'"):
            act(db, ["weekly", "nightli"], who=WHO)
    with pytest.raises(NotFound):
        scheduling.run_now(db, "nowhere", who=WHO)

    assert {get(db, name).paused_at for name in ("nightly", "weekly")} == {None}


def test_a_name_that_is_taken_and_a_limit_nobody_made_are_refused(db: Database) -> None:
    add(db)

    with pytest.raises(Refused, match="exists already"):
        add(db)
    with pytest.raises(BadInput, match="no limit 'api'"):
        add(db, "t", {"limits": "api"})
    with pytest.raises(BadInput, match="no limit 'api'"):
        scheduling.edit(db, "s", lambda _: ({}, {"limits": ["api"]}), who=WHO)

    assert db.read(schedules.names) == ["s"]


def test_each_act_is_on_record_without_the_values_of_the_job(db: Database) -> None:
    add(db)
    assert last_act(db) == (WHO, "schedule add", "s (every 10m Europe/Oslo)", 1)

    scheduling.edit(db, "s", lambda _: ({"overlap": "skip"}, {"command": "secret"}), who=WHO)
    assert last_act(db) == (WHO, "schedule edit", "s (overlap, command)", 1)
    scheduling.pause(db, ["s"], who=WHO)
    assert last_act(db) == (WHO, "schedule pause", "s", 1)
    scheduling.resume(db, ["s"], who=WHO)
    assert last_act(db) == (WHO, "schedule resume", "s", 1)
    scheduling.remove(db, ["s"], who=WHO)
    assert last_act(db) == (WHO, "schedule remove", "s", 1)


def test_those_who_sleep_until_the_next_instant_are_woken_when_it_may_be_another(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bell = Bell(db, monkeypatch)

    add(db)
    assert bell.taken() == 1
    scheduling.edit(db, "s", lambda _: ({"every": "5m"}, {}), who=WHO)
    assert bell.taken() == 1
    scheduling.pause(db, ["s"], who=WHO)
    scheduling.resume(db, ["s"], who=WHO)
    assert bell.taken() == 2
    tick_at(db, NOW + 5 * MINUTE_MS)
    assert bell.taken() == 1


def test_a_look_that_finds_nothing_due_writes_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add(db)
    bell = Bell(db, monkeypatch)

    assert tick(db) == Tick(fired=0)

    assert bell.taken() == 0


def test_old_fires_are_forgotten_but_for_those_of_jobs_that_are_not_over(db: Database) -> None:
    add_worker(db)
    add(db, every="1s", overlap="skip", misfire="all", misfire_cap=1000)
    tick_at(db, NOW + SECOND_MS)
    claim = claim_one(db)
    tick_all_at(db, NOW + 400 * SECOND_MS)

    gone = disuse.forget_fires(db)

    kept = fires(db)
    assert (gone, len(kept)) == (400 - 101, 101)
    assert kept[0].job_seq == claim.job.seq
    settle_run(db, claim, Outcome.exited(0))
    tick_all_at(db, NOW + 460 * SECOND_MS)
    disuse.forget_fires(db)
    assert len(fires(db)) == 100


def told(target: Target) -> list[Finding]:
    return [each for each in examine(target, {}) if each.check == "schedules"]


def test_doctor_tells_of_what_is_due_while_nobody_is_there_to_fire_it(db: Database, target: Target) -> None:
    assert [each.what for each in told(target)] == ["0 schedules, none waits to be fired"]
    db.read_clock = FakeClock(now=NOW // 2)

    add(db, "nightly")

    [finding] = told(target)
    assert finding.level is Level.WARNING
    assert "no worker is running to fire what has been due for" in finding.what
    assert "nightly" in finding.what
    assert "queuectl worker start -d" in finding.mend
    scheduling.pause(db, ["nightly"], who=WHO)
    assert [each.level for each in told(target)] == [Level.OK]


def test_doctor_tells_of_a_schedule_whose_job_cannot_be_added(db: Database, target: Target) -> None:
    set_limit(db, "api", 2, who=WHO)
    add(db, "s", {"limits": ["api"]})
    delete_limit(db, "api", who=WHO)
    tick_at(db, NOW + 10 * MINUTE_MS)

    [finding] = told(target)

    assert "schedule s got no job the last time: no limit 'api'" in finding.what


class Killed(BaseException):
    """Ends whoever ticks in the middle of it."""


@pytest.mark.parametrize("seed", range(2))
def test_two_that_are_killed_at_random_for_a_month_fire_each_instant_once(
    db: Database, target: Target, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    # So many instants that those who are killed fire most of them: what is left is fired by one who lives.
    lines = {"daily": "17 */8 * * *", "nightly": "30 2 * * *", "often": "*/40 9,17 * * mon-fri"}
    for name, line in lines.items():
        add(db, name, cron=line, misfire="all", misfire_cap=1000)
    add(db, "period", every="473m", misfire="all", misfire_cap=1000, jitter="20m")
    end = NOW + 30 * DAY_MS
    wanted = {
        (name, instant)
        for name in (*lines, "period")
        for instant in get(db, name).rhythm.newest(NOW, end, 100_000)
        if instant + get(db, name).jitter_of(instant) <= end
    }

    now = NOW
    while now < end:
        # Most of the time somebody looks every few minutes; at times nobody does for a day.
        now = min(end, now + dice.choice([MINUTE_MS, 7 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS, DAY_MS]))
        victim = connect(target)
        _kill_at_statement(victim, dice.randrange(1, 40), monkeypatch)
        victim.read_clock = FakeClock(now=now)
        try:
            tick(victim, most=dice.randrange(1, 4))
        except Killed:
            pass
        victim.close()
    tick_all_at(db, end)

    made = Counter(
        (job.env_map["QUEUECTL_SCHEDULE"], job.env_map["QUEUECTL_SCHEDULED_FOR"])
        for job in db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 100_000))
    )
    assert set(made) == {(name, iso_text(instant)) for name, instant in wanted}
    assert set(made.values()) == {1}
    recorded = {(one.schedule, one.instant) for name in (*lines, "period") for one in fires(db, name)}
    assert recorded == wanted


def _kill_at_statement(database: Database, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever uses a database die at one of its statements: before it, or at a COMMIT, before or after."""
    dialect = database.dialect
    left = number

    def counted(name: str) -> None:
        plain = getattr(dialect, name)

        def call(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left == 0 and name != "commit":
                raise Killed
            result = plain(*args, **options)
            if left == 0:
                raise Killed  # committed, and nobody is left to know
            return result

        monkeypatch.setattr(dialect, name, call)

    for name in ("rows", "changed", "insert_many", "begin", "commit"):
        counted(name)
