"""Graph: the jobs around one, and which runs after which, as people look at it. It is read in store/graphs.py."""

from enum import StrEnum

from queuectl.model.states import State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.after import EdgeState, Kind
    from queuectl.model.job import Job

    Shape = dict[str, object]

GONE = "gone"


class Side(StrEnum):
    """Where to look from a job: at those it runs after, at those that run after it, or at all that hang together."""

    UP = "up"
    DOWN = "down"
    BOTH = "both"


class Node(Value):
    """A job of a graph; one that is gone has a number alone."""

    number: int
    job: "Job | None"

    @property
    def id(self) -> str:
        """What people call the job."""
        return str(self.number) if self.job is None else self.job.id

    @property
    def state(self) -> str:
        """Where it stands."""
        return GONE if self.job is None else self.job.state.value


class Tie(Value):
    """One job running after another."""

    parent: int
    child: int
    kind: "Kind"
    edge_state: "EdgeState"


class Rest(Value):
    """How many jobs next to one are not shown, by their state."""

    states: "dict[str, int]"

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(self.states.values())

    @property
    def words(self) -> str:
        """As people say it: `9,980 more: 9,000 completed, 980 pending`."""
        order = [*State, GONE]
        parts = [f"{self.states[state]:,} {state}" for state in order if self.states.get(state)]
        return f"{self.count:,} more: {', '.join(parts)}"


class Graph(Value):
    """The jobs around one: those that are shown, who of them runs after whom, and how many are left out where."""

    asked: int
    nodes: "dict[int, Node]"
    """By number, in the order of the numbers."""
    ties: tuple[Tie, ...]
    parents_left: "dict[int, Rest]"
    """By the number of a job: those it runs after that are not shown."""
    children_left: "dict[int, Rest]"
    """By the number of a job: those that run after it and are not shown."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.parents_left and not self.children_left

    def children(self) -> "dict[int, list[Tie]]":
        """Return who runs after each job, in the order of their numbers."""
        found: dict[int, list[Tie]] = {number: [] for number in self.nodes}
        for tie in self.ties:
            found[tie.parent].append(tie)
        return found

    def roots(self) -> list[int]:
        """Return the jobs that run after none of those shown."""
        children = {tie.child for tie in self.ties}
        return [number for number in self.nodes if number not in children]


def graph_shape(graph: Graph) -> "Shape":
    """Return a graph as JSON: jobs, and by their numbers which runs after which."""
    return {
        "id": graph.nodes[graph.asked].id,
        "number": graph.asked,
        "nodes": [_node_shape(node) for node in graph.nodes.values()],
        "edges": [
            {"parent": tie.parent, "child": tie.child, "kind": tie.kind.value, "is": tie.edge_state.value}
            for tie in graph.ties
        ],
        "left_out": [
            *_rest_shapes("parents", graph.parents_left),
            *_rest_shapes("dependents", graph.children_left),
        ],
    }


def _node_shape(node: Node) -> "Shape":
    job = node.job
    return {
        "id": node.id,
        "number": node.number,
        "state": None if job is None else job.state.value,
        "queue": None if job is None else job.queue,
        "command": None if job is None else job.command,
        "argv": None if job is None else job.argv_list,
    }


def _rest_shapes(which: str, left: "Mapping[int, Rest]") -> "list[Shape]":
    return [{"of": number, "which": which, "count": rest.count, "states": rest.states} for number, rest in left.items()]
