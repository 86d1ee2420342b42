"""Graphs: what is found around a job, on which side, how much of it, and what is said of the rest."""

import pytest

from queuectl.actions import control
from queuectl.actions.graphs import graph_around
from queuectl.model.graph import Graph, Side
from queuectl.model.states import Hindrance, State
from queuectl.store import jobs
from queuectl.store.database import Database
from tests.actions.graphing import FAILED, add, job_of, run, spec
from tests.store.rows import add_worker

DIAMOND = (spec("top"), spec("left", "top"), spec("right", "any:top"), spec("end", "left,fail:right"))


def around(db: Database, job_id: str, side: Side = Side.BOTH, limit: int = 200) -> Graph:
    """Return the graph around a job."""
    job = job_of(db, job_id)
    return db.read(lambda tx: graph_around(tx, job, side, limit))


def names(graph: Graph) -> list[str]:
    """Return what the jobs of a graph are called."""
    return [node.id for node in graph.nodes.values()]


def arrows(graph: Graph) -> list[str]:
    """Return who runs after whom."""
    return [f"{graph.nodes[tie.parent].id}>{tie.kind}>{graph.nodes[tie.child].id}" for tie in graph.ties]


@pytest.mark.parametrize("asked", ["top", "left", "end"])
def test_all_that_hangs_together_is_found_from_each_of_it(db: Database, asked: str) -> None:
    add(db, *DIAMOND, spec("stranger"))

    graph = around(db, asked)

    assert names(graph) == ["top", "left", "right", "end"]
    assert arrows(graph) == ["top>ok>left", "top>any>right", "left>ok>end", "right>fail>end"]
    assert (graph.nodes[graph.asked].id, graph.is_whole) == (asked, True)


def test_one_side_shows_only_what_is_above_or_below(db: Database) -> None:
    add(db, *DIAMOND)

    assert names(around(db, "left", Side.UP)) == ["top", "left"]
    assert names(around(db, "left", Side.DOWN)) == ["left", "end"]
    assert names(around(db, "end", Side.UP)) == ["top", "left", "right", "end"]


def test_a_job_without_others_is_a_graph_of_one(db: Database) -> None:
    add(db, spec("alone"))

    assert (names(around(db, "alone")), arrows(around(db, "alone"))) == (["alone"], [])


def test_of_a_wide_fan_the_first_are_shown_and_the_rest_counted_by_state(db: Database) -> None:
    add_worker(db)
    children = [spec(f"c{number}", "hub") for number in range(500)]
    add(db, spec("hub"), *children)
    run(db, "hub", *(f"c{number}" for number in range(100, 110)))
    run(db, "c200", outcome=FAILED)

    graph = around(db, "hub")

    assert len(graph.nodes) == 21
    [rest] = graph.children_left.values()
    assert rest.words == "480 more: 469 pending, 10 completed, 1 dead"
    assert (graph.parents_left, graph.is_whole) == ({}, False)
    assert len(around(db, "hub", limit=2_000).nodes) == 201
    assert around(db, "hub", limit=6_000).is_whole


def test_of_a_wide_join_the_same_is_said_of_what_is_above(db: Database) -> None:
    parents = [f"p{number}" for number in range(100)]
    add(db, *(spec(name) for name in parents), spec("join", parents))

    graph = around(db, "join")

    assert len(graph.nodes) == 21
    assert graph.parents_left[graph.asked].words == "80 more: 80 pending"


def test_a_few_more_than_that_are_shown_rather_than_counted(db: Database) -> None:
    add(db, spec("hub"), *(spec(f"c{number}", "hub") for number in range(40)))

    assert around(db, "hub").is_whole


def test_the_nearest_come_first_when_there_is_no_room_for_all(db: Database) -> None:
    add(db, spec("j0"), *(spec(f"j{number}", f"j{number - 1}") for number in range(1, 30)))

    graph = around(db, "j15", limit=5)

    assert names(graph) == ["j13", "j14", "j15", "j16", "j17"]
    above, below = graph.parents_left, graph.children_left
    assert {graph.nodes[seq].id: rest.words for seq, rest in above.items()} == {"j13": "1 more: 1 blocked"}
    assert {graph.nodes[seq].id: rest.words for seq, rest in below.items()} == {"j17": "1 more: 1 blocked"}


def test_a_parent_that_is_gone_is_a_number(db: Database) -> None:
    add_worker(db)
    add(db, spec("p"), spec("c", "p"))
    number = job_of(db, "p").seq
    run(db, "p", "c")
    control.delete(db, ["p"], who="me")

    graph = around(db, "c")

    assert (names(graph), graph.nodes[number].state) == ([str(number), "c"], "gone")


def test_what_became_of_each_dependency_is_told(db: Database) -> None:
    add_worker(db)
    add(db, spec("p"), spec("c", "p"), spec("f", "fail:p"), spec("k", "p", on_dead_dependency="keep"))
    run(db, "p", outcome=FAILED)

    graph = around(db, "p")

    found = {graph.nodes[tie.child].id: tie.edge_state.value for tie in graph.ties}
    assert found == {"c": "broken", "f": "satisfied", "k": "waiting"}


def test_dependent_is_a_name_for_jobs_that_wait_for_others(db: Database) -> None:
    add(db, spec("p"), spec("c", "p"), spec("held", hold=True), spec("both", "p", hold=True))

    def found(*hindrances: Hindrance) -> list[str]:
        wanted = jobs.Filter(states=(State.BLOCKED,), hindrances=hindrances)
        return [job.id for job in db.read(lambda tx: jobs.newest(tx, wanted, 9)) if wanted.means(job)]

    assert found(Hindrance.DEPENDENT) == ["both", "c"]
    assert found(Hindrance.HELD) == ["both", "held"]
    assert found(Hindrance.DEPENDENT, Hindrance.HELD) == ["both", "held", "c"]
