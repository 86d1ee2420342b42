"""Unique keys end to end: twenty processes that add a job with the same key at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuectl.actions.connect import connect
from queuectl.store.database import Database
from tests.program import Cli, wait_for
from tests.scenarios.processes import Guard

PROCESSES = 20


@pytest.fixture
def store(cli: Cli) -> Iterator[Database]:
    """The store of the program under test, set up before the race begins."""
    with closing(connect(cli.target)) as database:
        yield database


def race(cli: Cli, *words: str, codes: tuple[int, ...] = (0, 6)) -> list[tuple[int, str]]:
    """Add a job from twenty processes at once; return the exit code and the output of each.

    Each has imported the program already, so they meet in the database, not one by one as they come up.
    """
    with ThreadPoolExecutor(PROCESSES) as pool:
        calls = [pool.submit(cli.run, "enqueue", "--unique", "k", *words) for _ in range(PROCESSES)]
        done = [call.result() for call in calls]
    for each in done:
        assert each.returncode in codes, each.stderr
    return [(each.returncode, each.stdout.strip()) for each in done]


def ids(cli: Cli) -> list[str]:
    """Return the ids of all jobs, the oldest first."""
    return [str(job["id"]) for job in reversed(cli.json("list"))]


def states(cli: Cli) -> list[str]:
    """Return the states of all jobs, the oldest first."""
    return [str(job["state"]) for job in reversed(cli.json("list"))]


def test_a_key_raced_by_twenty_processes_gives_one_job_whose_id_all_get(cli: Cli) -> None:
    answers = race(cli, "true")

    (job_id,) = ids(cli)
    assert answers == [(0, job_id)] * PROCESSES


def test_a_key_raced_by_twenty_processes_that_skip_gives_one_job_and_one_id(cli: Cli) -> None:
    answers = race(cli, "--on-conflict", "skip", "true")

    (job_id,) = ids(cli)
    assert sorted(answers) == [(0, "")] * (PROCESSES - 1) + [(0, job_id)]


def test_a_key_raced_by_twenty_processes_of_which_all_insist_refuses_all_but_one(cli: Cli) -> None:
    answers = race(cli, "--on-conflict", "error", "true")

    (job_id,) = ids(cli)
    assert sorted(answers) == [(0, job_id)] + [(6, "")] * (PROCESSES - 1)


def test_of_twenty_processes_that_replace_each_others_waiting_job_one_job_is_left(cli: Cli) -> None:
    # On a busy machine the last of twenty may wait for the others longer than PostgreSQL lets it; it then says so (5).
    answers = race(cli, "--on-conflict", "replace", "true", codes=(0, 5))

    added = [answer for answer in answers if answer != (5, "")]
    assert len(added) > PROCESSES // 2
    assert sorted(added) == sorted((0, job_id) for job_id in ids(cli))
    assert sorted(states(cli)) == ["cancelled"] * (len(added) - 1) + ["pending"]


@pytest.mark.needs("flock")
@pytest.mark.parametrize("is_stubborn", [False, True], ids=["that ends", "that takes its time to stop"])
def test_of_twenty_processes_that_replace_a_running_job_no_two_run_at_once(
    cli: Cli, guards: Callable[[str], Guard], *, is_stubborn: bool
) -> None:
    guard = guards("k")
    line = guard.around("trap 'sleep 1; exit 1' TERM; sleep 600 & wait" if is_stubborn else "sleep 1")
    cli.start("worker", "start", "-n", "4")
    first = cli.enqueue("--unique", "k", line)
    guard.wait_for_run(1)

    # On a busy machine the last of twenty may wait for the others longer than PostgreSQL lets it; it then says so (5).
    race(cli, "--on-conflict", "replace", guard.around("sleep 0.2"), codes=(0, 5, 6))

    wait_for(lambda: set(states(cli)) <= {"completed", "cancelled"}, "all at their end")
    assert "OVERLAP" not in guard.lines
    assert states(cli)[-1] == "completed" or "completed" in states(cli)[1:]
    assert first == ids(cli)[0]


def test_a_key_kept_for_a_time_is_given_once_within_it_and_once_after_it(cli: Cli, store: Database) -> None:
    words = ("--unique-for", "1h", "true")
    answers = race(cli, *words)
    (first,) = ids(cli)
    cli.drain()
    again = race(cli, *words)
    assert states(cli) == ["completed"]

    store.write(lambda tx: tx.changed("UPDATE unique_keys SET expires_at = :now", {"now": tx.now}))
    later = race(cli, *words)

    assert answers + again == [(0, first)] * (2 * PROCESSES)
    assert [first, later[0][1]] == ids(cli)
    assert later == [(0, ids(cli)[-1])] * PROCESSES
