"""Schedules from Python: added, looked at, changed and fired."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from queuectl import BadInput, NotFound, Queue, Refused
from queuectl.actions.connect import Target
from queuectl.api.schedules import Schedules


@pytest.fixture
def schedules(target: Target) -> Iterator[Schedules]:
    with Queue(target.url, home=None if target.url else target.home.root) as queue:
        yield queue.schedules


def test_a_schedule_by_a_cron_line_is_kept_with_its_job(schedules: Schedules) -> None:
    added = schedules.add(
        "nightly", "30 2 * * *", ["./backup.sh", "--all"], tz="Europe/Oslo", priority=5,
        timeout=timedelta(minutes=5), tags=("a", "b"), cwd="/", misfire="all", misfire_cap=7, overlap="skip",
    )  # fmt: skip

    assert added == schedules.get("nightly") == schedules.all()[0]
    assert (added.cron, added.every, added.tz, added.jitter) == ("30 2 * * *", None, "Europe/Oslo", 0)
    assert (added.misfire, added.misfire_cap, added.overlap) == ("all", 7, "skip")
    assert added.job == {
        "argv": ["./backup.sh", "--all"], "cwd": "/", "priority": 5, "timeout": 300.0, "tags": ["a", "b"],
    }  # fmt: skip
    assert added.next_at is not None
    assert added.next_at > datetime.now(UTC)
    assert (added.last, added.is_paused) == (None, False)


def test_a_schedule_by_a_period_is_counted_from_its_start(schedules: Schedules) -> None:
    start = datetime(2099, 1, 1, tzinfo=UTC)

    added = schedules.add("beat", None, "true", every=timedelta(minutes=10), start=start, jitter="30s")

    assert (added.every, added.anchor, added.jitter) == (600.0, start, 30.0)
    assert schedules.preview("beat", 2) == [start, start + timedelta(minutes=10)]


def test_run_fires_now_and_the_fire_is_on_record(schedules: Schedules) -> None:
    schedules.add("beat", "@daily", "true", overlap="skip")

    job = schedules.run("beat")

    [fired] = schedules.fires("beat")
    assert (fired.job_number, fired.is_manual, fired.outcome, fired.result) == (job.number, True, "fired", "pending")
    assert schedules.get("beat").last == fired
    with pytest.raises(Refused):
        schedules.run("beat")
    job.delete()
    assert schedules.fires("beat")[0].result == "removed"


def test_edit_changes_what_is_named_and_takes_back_what_is_none(schedules: Schedules) -> None:
    schedules.add("beat", "@daily", "true", tz="UTC", mutex="db", cwd="/")

    changed = schedules.edit("beat", every="1h", mutex="none", command="false", overlap="queue")

    assert (changed.cron, changed.every, changed.overlap) == (None, 3600.0, "queue")
    assert changed.job == {"command": "false", "cwd": "/"}
    with pytest.raises(BadInput, match="nothing to change"):
        schedules.edit("beat")


def test_pause_resume_and_remove_are_for_many_all_or_none(schedules: Schedules) -> None:
    schedules.add("a", "@daily", "true")
    schedules.add("b", "@daily", "true")

    assert schedules.pause("a") == ["a"]
    assert schedules.pause("a", "b") == ["b"]
    assert schedules.get("a").next_at is None
    assert schedules.resume("a", "b") == ["a", "b"]
    with pytest.raises(NotFound):
        schedules.remove("a", "c")
    schedules.remove("a", "b")
    assert schedules.all() == []


def test_bad_input_is_refused(schedules: Schedules) -> None:
    with pytest.raises(BadInput, match="when"):
        schedules.add("a", None, "true")
    with pytest.raises(BadInput, match="cron line"):
        schedules.add("a", "* * *", "true")
    with pytest.raises(BadInput, match="delay"):
        schedules.add("a", "@daily", "true", delay=5)
    with pytest.raises(BadInput, match="which"):
        schedules.pause()
    with pytest.raises(NotFound):
        schedules.get("a")
