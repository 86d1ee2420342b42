"""Jobs that run after others, from Python: named by handle, looked at, drawn, and retried together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import BadInput, JobFailed, Queue, Refused, State
from queuectl.actions.connect import Target


@pytest.fixture
def queue(target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Queue]:
    """A queue of each kind, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with Queue(None if target.sqlite_path else target.url, home=target.home.root) as queue:
        yield queue


def test_a_job_runs_after_others_named_by_handle_number_or_text(queue: Queue) -> None:
    a, b = queue.enqueue("true", id="a"), queue.enqueue("true")
    one = queue.enqueue("true", after=a)
    several = queue.enqueue("true", after=[a, b.number, f"any:{one.id}"])
    [of_many] = queue.enqueue_many([{"command": "true", "after": (a, "fail:2")}])

    assert [(parent.id, parent.kind) for parent in one.parents()] == [("a", "ok")]
    assert [(parent.id, parent.kind) for parent in several.parents()] == [("a", "ok"), ("2", "ok"), ("3", "any")]
    assert [(parent.id, parent.kind) for parent in of_many.parents()] == [("a", "ok"), ("2", "fail")]
    assert [child.number for child in a.dependents()] == [one.number, several.number, of_many.number]
    assert queue.count(states=["dependent"]) == 3


def test_an_edit_takes_handles_too(queue: Queue) -> None:
    a, b = queue.enqueue("true"), queue.enqueue("true")
    child = queue.enqueue("true", after=a)

    child.edit(after=b)

    assert [parent.number for parent in child.parents()] == [b.number]
    assert child.edit(after="none").state is State.PENDING


def test_a_job_of_another_store_is_refused(queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Queue(home=tmp_path / "other") as other:
        stranger = other.enqueue("true")

        with pytest.raises(BadInput, match="a job of another store"):
            queue.enqueue("true", after=[stranger])

    assert queue.count() == 0


def test_what_a_job_waits_for_and_what_has_become_of_it_is_seen(queue: Queue) -> None:
    parent = queue.enqueue("false", max_retries=0)
    child = queue.enqueue("true", after=parent)
    parent.cancel()

    [seen] = child.parents()

    assert (seen.number, seen.state, seen.status) == (parent.number, State.CANCELLED, "broken")
    assert child.refresh().state is State.CANCELLED
    assert str(child.why().remedy).startswith(f"queuectl retry {parent.id} ")
    with pytest.raises(Refused, match="was to run after job"):
        child.retry()
    parent.retry()
    assert child.refresh().state is State.BLOCKED


def test_the_graph_around_a_job_has_nodes_and_edges_and_counts_the_rest(queue: Queue) -> None:
    a = queue.enqueue("echo a")
    b = queue.enqueue("echo b", after=a)
    c = queue.enqueue("echo c", after=f"any:{b.id}")

    graph, cut = b.graph(), a.graph(limit=1)

    assert [(node.number, node.state, node.command) for node in graph.nodes] == [
        (a.number, State.PENDING, "echo a"), (b.number, State.BLOCKED, "echo b"), (c.number, State.BLOCKED, "echo c"),
    ]  # fmt: skip
    assert [(edge.parent, edge.child, edge.kind, edge.status) for edge in graph.edges] == [
        (a.number, b.number, "ok", "waiting"), (b.number, c.number, "any", "waiting"),
    ]  # fmt: skip
    assert (graph.left_out, len(cut.nodes), cut.left_out) == (0, 1, 1)
    with pytest.raises(BadInput, match="bad limit 0"):
        a.graph(limit=0)


def test_a_job_is_retried_with_all_that_run_after_it(queue: Queue) -> None:
    a = queue.run("true")
    b = queue.run("true", after=a)

    a.retry(with_dependents=True)

    assert [job.refresh().state for job in (a, b)] == [State.PENDING, State.BLOCKED]
    assert queue.retry(a.number, with_dependents=True) == 1


def test_a_failure_says_what_brings_the_job_back(queue: Queue) -> None:
    parent = queue.enqueue("true", id="p")
    child = queue.enqueue("true", after=parent)
    parent.cancel()

    with pytest.raises(JobFailed) as of_parent:
        parent.wait(check=True)
    with pytest.raises(JobFailed) as of_child:
        child.wait(check=True)

    assert of_parent.value.hint == "run again with: queuectl retry p"
    assert of_child.value.hint.startswith("run again with: queuectl retry p (or, without it: queuectl edit 2")
