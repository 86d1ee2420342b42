"""Many at once from Python."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import BadInput, Queue, State
from queuectl.actions.connect import Target
from tests.program import Cli, lines_of


@pytest.fixture
def queue(target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Queue]:
    """A queue of each kind, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with Queue(None if target.sqlite_path else target.url, home=target.home.root) as queue:
        yield queue


def test_a_job_is_added_for_each_value_and_runs_it_literally(queue: Queue, cli: Cli) -> None:
    names = ["a b", "it's", "$(touch ran)"]

    jobs = queue.map("echo {#} {} >>log", names, priority=3, tags=["t"])
    cli.drain()

    assert sorted(lines_of(Path("log"))) == ["1 a b", "2 it's", "3 $(touch ran)"]
    assert [(job.number, job.priority, job.wait().state) for job in jobs] == [
        (number, 3, State.COMPLETED) for number in (1, 2, 3)
    ]
    assert not Path("ran").exists()


def test_lists_may_be_of_paths_and_numbers_and_are_combined(queue: Queue) -> None:
    jobs = queue.map("scale {1/} {2}", (Path("x") / name for name in "ab"), range(2), id="{1/.}-{2}")

    assert [(job.id, job.command) for job in jobs] == [
        ("a-0", "scale 'a' '0'"),
        ("a-1", "scale 'a' '1'"),
        ("b-0", "scale 'b' '0'"),
        ("b-1", "scale 'b' '1'"),
    ]


def test_words_are_run_without_a_shell(queue: Queue) -> None:
    [job] = queue.map(["touch", "{.}.x"], ["a b.c"])

    assert job._row.argv_list == ["touch", "a b.x"]


def test_an_array_is_a_first_list_of_numbers(queue: Queue, cli: Cli) -> None:
    jobs = queue.map("echo $QUEUECTL_ARRAY_INDEX >>log", array="1-5:2%2")
    cli.drain()

    assert [job._row.env_map for job in jobs] == [{"QUEUECTL_ARRAY_INDEX": each} for each in "135"]
    [[key]] = {tuple(job._row.limit_list) for job in jobs}
    assert key.startswith("at-most:map-")
    assert key.endswith(":2")
    assert sorted(lines_of(Path("log"))) == ["1", "3", "5"]


def test_another_string_can_be_replaced(queue: Queue) -> None:
    [job] = queue.map("find ,, -exec ls {} +", ["a"], mark=",,")

    assert job.command == "find 'a' -exec ls {} +"


def test_no_values_make_no_jobs(queue: Queue) -> None:
    assert queue.map("ls {}", []) == []
    assert queue.count() == 0


def test_what_cannot_be_mapped_is_refused(queue: Queue) -> None:
    with pytest.raises(BadInput, match="list 1 is one text, not a list of values"):
        queue.map("ls {}", "abc")
    with pytest.raises(BadInput, match=r"value 2 of list 1 must be text, not 1\.5"):
        queue.map("ls {}", ["a", 1.5])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="no values given"):
        queue.map("ls {}")
    with pytest.raises(BadInput, match="id 'x' would be that of every job"):
        queue.map("ls {}", ["a"], id="x")
    with pytest.raises(BadInput, match="values are quoted for a POSIX shell, and 'fish'"):
        queue.map("ls {}", ["a"], shell="/usr/bin/fish")
    assert queue.count() == 0
