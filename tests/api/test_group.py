"""Groups as Python sees them, against real stores and real workers."""

import pytest

from queuectl import Group, JobFailed, NotFound, Queue, State, WaitTimedOut
from tests.api.test_queue import queue
from tests.program import Cli

__all__ = ["queue"]  # the fixture


def filled(queue: Queue, *lines: str, **fields: object) -> Group:
    """Add a job per line to a group, and return it."""
    queue.enqueue_many([{"command": line, "group": "scans", "max_retries": 0, **fields} for line in lines])
    return queue.group("scans")


def test_a_group_is_waited_for_and_its_jobs_are_counted(queue: Queue, cli: Cli) -> None:
    group = filled(queue, "true", "exit 3", "sleep 0.2")
    cli.ok("worker", "start", "-d")

    assert group.wait(timeout=100) is group

    counts = group.counts()
    assert (counts[State.COMPLETED], counts[State.DEAD], counts[State.PENDING]) == (2, 1, 0)
    assert [(job.id, job.exit_code) for job in group.failures()] == [("2", 3)]
    assert (group.name, group.is_over, repr(group)) == ("scans", True, "<Group scans>")


def test_a_wait_that_checks_raises_for_a_failure(queue: Queue, cli: Cli) -> None:
    group = filled(queue, "true", "false")
    cli.drain()

    with pytest.raises(JobFailed, match="1 job of group 'scans' did not complete"):
        group.wait(check=True)


def test_a_wait_that_takes_too_long_raises(queue: Queue) -> None:
    group = filled(queue, "true", "true", delay="1h")

    with pytest.raises(WaitTimedOut, match="2 jobs of group 'scans' not over in time"):
        group.wait(timeout=0.1)
    assert not group.is_over


def test_a_group_is_cancelled_and_retried(queue: Queue) -> None:
    group = filled(queue, "true", "true")

    assert group.cancel() == 2
    assert group.cancel() == 0
    assert group.retry() == 2
    assert group.counts()[State.PENDING] == 2


def test_a_group_that_was_stopped_says_so_until_it_is_retried(queue: Queue, cli: Cli) -> None:
    group = filled(queue, "false", "true", "true", max_failures=0)
    cli.drain()
    assert group.is_stopped

    assert group.retry() == 3

    assert not group.is_stopped


def test_a_group_nobody_knows_and_one_that_was_deleted_are_not_found(queue: Queue) -> None:
    with pytest.raises(NotFound, match="no group 'scans'"):
        queue.group("scans")
    group = filled(queue, "true")
    queue.delete("1")

    with pytest.raises(NotFound, match="no job of group 'scans' is left"):
        group.wait()


def test_failures_are_gone_through_page_by_page(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.api.group.PAGE", 2)
    group = filled(queue, *["true"] * 5)
    group.cancel()

    assert [job.number for job in group.failures()] == [1, 2, 3, 4, 5]
