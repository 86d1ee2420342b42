"""Graph: which jobs run after which, as Python sees it. How it is found is in actions/graphs.py."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.graph import Graph
    from queuectl.model.states import State
    from queuectl.store.edges import Link


class Dependency(Value):
    """A job that another runs after, or that runs after it, as it was when it was looked at."""

    id: str
    number: int
    state: "State | None"
    """None for a job that is gone."""
    kind: str
    """`ok`, `any` or `fail`: how the one must end for the other to run."""
    status: str
    """`waiting`, `satisfied` or `broken`: what has become of that."""


class GraphNode(Value):
    """A job of a graph."""

    id: str
    number: int
    state: "State | None"
    """None for a job that is gone."""
    command: str | None


class GraphEdge(Value):
    """One job running after another, both by number."""

    parent: int
    child: int
    kind: str
    status: str


class GraphInfo(Value):
    """The jobs around one and which of them runs after which, as it was when it was looked at."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    left_out: int
    """How many dependencies lead to jobs that are not among the nodes."""


def dependency(link: "Link") -> Dependency:
    """Return one end of an edge of the store."""
    return Dependency(
        id=link.id, number=link.seq, state=link.job_state, kind=link.kind.value, status=link.edge_state.value
    )


def graph_info(graph: "Graph") -> GraphInfo:
    """Return a graph of the store."""
    left = (*graph.parents_left.values(), *graph.children_left.values())
    return GraphInfo(
        nodes=tuple(
            GraphNode(
                id=node.id,
                number=node.number,
                state=None if node.job is None else node.job.state,
                command=None if node.job is None else node.job.line,
            )
            for node in graph.nodes.values()
        ),
        edges=tuple(
            GraphEdge(parent=tie.parent, child=tie.child, kind=tie.kind.value, status=tie.edge_state.value)
            for tie in graph.ties
        ),
        left_out=sum(rest.count for rest in left),
    )
