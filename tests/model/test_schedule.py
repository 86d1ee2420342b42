"""Schedules: what is due of one by its rules, and when it comes next, with jitter and by a period."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.asked import edited_schedule, job_spec, new_schedule, paused, resumed, taken_back
from queuectl.model.rhythm import MOST_COUNTED, Rhythm, check_every
from queuectl.model.schedule import GRACE_MS, NEVER_MISSED_MS, Due, Schedule, check_schedule_name, what_is_due
from queuectl.model.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

NOW = 1_780_000_020_000  # 20 seconds past a minute
JOB = {"command": "true", "cwd": "/"}


def a_schedule(job: "dict[str, object] | None" = None, /, **asked: object) -> Schedule:
    given_when = {} if "cron" in asked or "every" in asked else {"every": "10m"}
    return new_schedule("nightly", {**given_when, **asked}, job or JOB, zone="UTC", now=NOW)


def test_a_period_is_counted_from_its_anchor() -> None:
    rhythm = Rhythm(every_ms=10 * SECOND_MS, anchor=1_005_000, tz="UTC")

    assert [rhythm.next_after(after) for after in (0, 1_004_999, 1_005_000, 1_014_999, 1_015_000)] == [
        1_005_000, 1_005_000, 1_015_000, 1_015_000, 1_025_000,
    ]  # fmt: skip


@given(
    st.sampled_from(["*/7 * * * *", "0 0 1 1 *", "15 3 * * mon", "every"]),
    st.integers(0, 40 * DAY_MS),
    st.integers(1, 5),
)
@settings(deadline=None, max_examples=50)
def test_the_newest_instants_are_the_last_of_all(line: str, span: int, most: int) -> None:
    rhythm = a_schedule(**({"every": "97m"} if line == "every" else {"cron": line})).rhythm
    until = NOW + span
    every = []
    for instant in rhythm.instants(NOW - 1):
        if instant > until:
            break
        every.append(instant)

    assert rhythm.newest(NOW - 1, until, most) == every[-most:]
    assert rhythm.count(NOW - 1, until) == min(MOST_COUNTED, len(every))


@pytest.mark.parametrize("every", ["0", "500ms", "1.5s", "-1", "x", "", "200y"])
def test_what_is_no_period_of_whole_seconds_is_refused(every: str) -> None:
    with pytest.raises(BadInput):
        check_every("every", every)


def test_a_new_one_fires_first_one_period_from_now_or_at_its_start() -> None:
    assert a_schedule(every="10m").next_at == NOW + 10 * MINUTE_MS
    assert a_schedule(every="10m", start="+1h").next_at == NOW + HOUR_MS
    assert a_schedule(every="10m", start="2020-01-01T00:00:00Z").next_at == NOW // 600_000 * 600_000 + 600_000


def test_an_instant_noticed_within_the_grace_is_fired_though_late() -> None:
    schedule = a_schedule(every="1h")
    late = (schedule.next_at or 0) + GRACE_MS - 1

    assert what_is_due(schedule, late) == Due(instant=schedule.next_at)


@pytest.mark.parametrize(
    "misfire, due",
    [
        ("skip", Due(given_up=NOW + 30 * MINUTE_MS, given_up_before=2)),
        ("once", Due(instant=NOW + 30 * MINUTE_MS, missed_before=2)),
        ("all", Due(instant=NOW + 10 * MINUTE_MS)),
    ],
)
def test_what_was_missed_follows_the_rule(misfire: str, due: Due) -> None:
    schedule = a_schedule(every="10m", misfire=misfire)

    assert what_is_due(schedule, NOW + 35 * MINUTE_MS) == due
    assert schedule.planned(due.last).next_instant == due.last + 10 * MINUTE_MS


def all_due(schedule: Schedule, now: int) -> list[Due]:
    """Return what is done about a schedule at one moment until nothing of it is due, though more than that at most."""
    found: list[Due] = []
    while (schedule.next_at or 0) <= now and len(found) < 2000:
        found.append(what_is_due(schedule, now))
        schedule = schedule.planned(found[-1].last)
    return found


@pytest.mark.parametrize("every, down", [("10s", HOUR_MS), ("1s", 59 * SECOND_MS), ("1s", DAY_MS), ("30s", 70_000)])
@pytest.mark.parametrize("misfire", ["skip", "once"])
def test_a_short_period_is_missed_by_the_same_rule_as_a_long_one(every: str, down: int, misfire: str) -> None:
    schedule = a_schedule(every=every, misfire=misfire)
    newest = schedule.rhythm.newest(NOW, NOW + down, 2)

    missed, usual = all_due(schedule, NOW + down)

    assert missed.last == newest[0]
    assert (missed.given_up, missed.instant)[misfire == "once"] == newest[0]
    assert (missed.given_up is None, missed.instant is None) == (misfire == "once", misfire == "skip")
    assert usual == Due(instant=newest[1])


@pytest.mark.parametrize("misfire", ["skip", "once", "all"])
def test_who_is_busy_for_some_seconds_loses_no_instant_of_a_short_period(misfire: str) -> None:
    schedule = a_schedule(every="1s", misfire=misfire)
    now = (schedule.next_at or 0) + NEVER_MISSED_MS - 1

    assert all_due(schedule, now) == [Due(instant=NOW + second * SECOND_MS) for second in range(1, 6)]


def test_an_instant_of_a_period_shorter_than_the_grace_is_missed_when_the_next_is_due() -> None:
    schedule = a_schedule(every="20s", misfire="skip")

    assert all_due(schedule, NOW + 40 * SECOND_MS - 1) == [Due(instant=NOW + 20 * SECOND_MS)]
    assert all_due(schedule, NOW + 40 * SECOND_MS) == [
        Due(given_up=NOW + 20 * SECOND_MS),
        Due(instant=NOW + 40 * SECOND_MS),
    ]


def test_of_too_many_missed_the_newest_get_a_job_and_the_rest_is_counted() -> None:
    schedule = a_schedule(every="10m", misfire="all", misfire_cap=2)

    due = what_is_due(schedule, NOW + 55 * MINUTE_MS)

    assert due == Due(
        given_up=NOW + 30 * MINUTE_MS,
        given_up_before=2,
        instant=NOW + 40 * MINUTE_MS,
    )
    assert what_is_due(schedule.planned(due.last), NOW + 55 * MINUTE_MS) == Due(instant=NOW + 50 * MINUTE_MS)


@pytest.mark.parametrize("misfire", ["skip", "once", "all"])
@pytest.mark.parametrize("when", [{"every": "1s"}, {"cron": "* * * * *"}])
def test_a_year_without_anybody_is_not_walked_through(
    misfire: str, when: "dict[str, object]", monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = a_schedule(**when, misfire=misfire, misfire_cap=1000)
    seen = 0
    walk = Rhythm.instants

    def counted(rhythm: Rhythm, after: int):  # type: ignore[no-untyped-def]
        nonlocal seen
        for instant in walk(rhythm, after):
            seen += 1
            yield instant

    monkeypatch.setattr(Rhythm, "instants", counted)
    due = what_is_due(schedule, NOW + 365 * DAY_MS)

    [newest] = schedule.rhythm.newest(NOW, NOW + 365 * DAY_MS - GRACE_MS, 1)
    if misfire == "all":
        assert schedule.rhythm.count(due.last - 1, newest) >= 1000 - GRACE_MS // SECOND_MS
    else:
        assert due.last >= newest
    assert (due.instant is None) == (misfire == "skip")
    assert seen < 10_000


def test_jitter_is_the_same_whoever_asks_and_spreads_over_all_of_it() -> None:
    schedule = a_schedule(every="1m", jitter="30s")
    instants = [NOW + step * MINUTE_MS for step in range(500)]

    delays = [schedule.jitter_of(instant) for instant in instants]

    assert delays == [a_schedule(every="5m", jitter="30s").jitter_of(instant) for instant in instants]
    assert all(0 <= delay < 30 * SECOND_MS for delay in delays)
    assert (min(delays) < 2 * SECOND_MS, max(delays) > 28 * SECOND_MS) == (True, True)
    assert delays != [schedule.replace(name="other").jitter_of(instant) for instant in instants]


def test_with_jitter_the_grace_of_an_instant_begins_when_it_was_to_be_fired() -> None:
    schedule = a_schedule(every="1h", jitter="10m", misfire="skip")
    instant, fires_at = schedule.next_instant or 0, schedule.next_at or 0

    assert instant < fires_at < instant + 10 * MINUTE_MS
    assert what_is_due(schedule, fires_at + GRACE_MS - 1) == Due(instant=instant)
    assert what_is_due(schedule, fires_at + GRACE_MS) == Due(given_up=instant)


@pytest.mark.parametrize("misfire", ["skip", "once"])
@pytest.mark.parametrize("now", [NOW + 3 * DAY_MS + minute * MINUTE_MS for minute in range(0, 60, 7)])
def test_with_a_long_jitter_what_was_missed_gets_one_job_or_none(misfire: str, now: int) -> None:
    schedule = a_schedule(cron="0 * * * *", jitter="59m", misfire=misfire)

    missed, *usual = all_due(schedule, now)

    assert (missed.instant is None) == (misfire == "skip")
    assert len(usual) <= 1
    assert all(now - schedule.fires_at(each.instant or 0) < GRACE_MS for each in usual)


@pytest.mark.parametrize(
    "asked, gap",
    [
        ({"every": "1m", "jitter": "1m"}, "1m"),
        ({"every": "1m", "jitter": "7d"}, "1m"),
        ({"cron": "0 * * * *", "jitter": "12h"}, "1h"),
        ({"cron": "0,5 2 * * *", "jitter": "10m"}, "5m"),
    ],
)
def test_jitter_that_reaches_the_next_instant_is_refused(asked: dict[str, object], gap: str) -> None:
    with pytest.raises(BadInput, match=f"come {gap} apart") as raised:
        a_schedule(**asked)

    assert raised.value.hint == f"give less than {gap}"
    with pytest.raises(BadInput, match="apart"):
        edited_schedule(a_schedule(every="30d"), asked, {}, now=NOW)


def test_a_period_that_becomes_as_short_as_the_jitter_is_refused() -> None:
    with pytest.raises(BadInput, match="jitter 5m is too long"):
        edited_schedule(a_schedule(every="10m", jitter="5m"), {"every": "5m"}, {}, now=NOW)


def test_pause_takes_the_next_time_away_and_resume_leaves_out_what_came_meanwhile() -> None:
    rests = paused(a_schedule(every="10m"), NOW)

    goes_on = resumed(rests, NOW + 25 * MINUTE_MS)

    assert (rests.next_at, rests.paused_at) == (None, NOW)
    assert (goes_on.next_at, goes_on.paused_at) == (NOW + 30 * MINUTE_MS, None)


def test_an_edit_of_the_job_alone_leaves_the_next_time_as_it_is() -> None:
    before = a_schedule(every="10m")

    after = edited_schedule(before, {}, {"priority": 5}, now=NOW + HOUR_MS)

    assert (after.next_at, after.fields) == (before.next_at, {**JOB, "priority": 5})
    assert edited_schedule(before, {}, {"command": "true"}, now=NOW + 1) is before


def test_an_edit_of_the_time_plans_anew_and_takes_the_other_kind_back() -> None:
    by_line = edited_schedule(a_schedule(every="10m"), {"cron": "@daily", "tz": "Europe/Oslo"}, {}, now=NOW)
    by_period = edited_schedule(by_line, {"every": "1h"}, {}, now=NOW)

    assert (by_line.every_ms, by_line.anchor, by_line.cron) == (None, None, "@daily")
    assert (by_period.cron, by_period.every_ms, by_period.next_at) == (None, HOUR_MS, NOW + HOUR_MS)


def test_a_new_command_takes_the_place_of_the_old_one_whatever_its_form() -> None:
    before = a_schedule()

    after = edited_schedule(before, {}, {"argv": ["ls", "-l"]}, now=NOW)

    assert after.fields == {"cwd": "/", "argv": ["ls", "-l"]}


def test_none_takes_a_field_back_but_not_a_queue_of_that_name() -> None:
    assert taken_back({"mutex": "none", "timeout": "default", "queue": "none", "priority": "3"}) == {
        "mutex": None, "timeout": None, "queue": "none", "priority": "3",
    }  # fmt: skip


@pytest.mark.parametrize("field", ["id", "run_at", "delay", "after", "hold"])
def test_what_is_for_a_single_job_is_refused_with_a_hint(field: str) -> None:
    with pytest.raises(BadInput, match=field) as raised:
        a_schedule({**JOB, field: "5s"})

    assert raised.value.hint


@pytest.mark.parametrize(
    "asked",
    [
        {"cron": "@daily", "every": "5m"},
        {"cron": "@daily", "start": "now"},
        {"every": "5m", "tz": "Nowhere/Land"},
        {"every": "5m", "misfire": "never"},
        {"every": "5m", "misfire_cap": 0},
        {"every": "5m", "misfire_cap": 1001},
        {"every": "5m", "overlap": "kill"},
        {"every": "5m", "jitter": "8d"},
        {"every": "5m", "start": "someday"},
    ],
)
def test_what_cannot_be_asked_is_refused(asked: "dict[str, object]") -> None:
    with pytest.raises(BadInput):
        a_schedule(**asked)


def test_one_without_a_time_or_without_a_command_is_refused() -> None:
    with pytest.raises(BadInput, match="when"):
        new_schedule("x", {}, JOB, zone="UTC", now=NOW)
    with pytest.raises(BadInput, match="command"):
        new_schedule("x", {"every": "5m"}, {"priority": 3}, zone="UTC", now=NOW)


@pytest.mark.parametrize("name", ["", "-x", "a b", "none", "x" * 101])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_schedule_name(name)


def test_its_job_is_told_which_schedule_and_instant_it_is_for() -> None:
    spec = job_spec(a_schedule({**JOB, "env": {"A": "b"}}), NOW, NOW)

    assert spec.env == {
        "A": "b", "QUEUECTL_SCHEDULE": "nightly", "QUEUECTL_SCHEDULED_FOR": "2026-05-28T20:27:00.000Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    "overlap, mutexes",
    [
        ("allow", ("db",)),
        ("skip", ("db",)),
        ("queue", ("db", "schedule.nightly")),
        ("replace", ("db", "schedule.nightly")),
    ],
)
def test_jobs_that_must_not_meet_share_a_mutex(overlap: str, mutexes: tuple[str, ...]) -> None:
    assert job_spec(a_schedule({**JOB, "mutex": "db"}, overlap=overlap), NOW, NOW).mutexes == mutexes
