"""Graphs: walking from a job to all that hang together with it, the nearest first, so many at most."""

from queuectl.model.graph import Graph, Node, Rest, Side
from queuectl.store import graphs, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.graph import Tie
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

DEFAULT_LIMIT = 200
LEAST_NEIGHBOURS = 20
SHARE_OF_ONE = 10
"""Of all that are shown, one job may bring a tenth along on each side: else a wide one would leave no room."""

_SIDES = {Side.UP: (graphs.UP,), Side.DOWN: (graphs.DOWN,), Side.BOTH: (graphs.UP, graphs.DOWN)}


def graph_around(tx: "Tx", job: "Job", side: Side = Side.BOTH, limit: int = DEFAULT_LIMIT) -> Graph:
    """Return the jobs around one: all that it runs after, all that run after it, near and far, or both and theirs."""
    most = max(LEAST_NEIGHBOURS, limit // SHARE_OF_ONE)
    numbers = {job.seq}
    ties: dict[tuple[int, int], Tie] = {}
    totals: dict[tuple[str, str], dict[int, int]] = {way: {} for way in _SIDES[side]}
    edge = [job.seq]
    while edge:
        reached: dict[int, None] = {}
        for way in _SIDES[side]:
            for seq, found in graphs.next_to(tx, edge, way, 2 * most).items():
                totals[way][seq] = found.total
                # A few more than that are shown all the same, rather than counted.
                for tie in found.ties if found.total <= 2 * most else found.ties[:most]:
                    other = tie.parent if way is graphs.UP else tie.child
                    if other not in numbers and len(numbers) < limit:
                        numbers.add(other)
                        reached[other] = None
                    if other in numbers:
                        ties[tie.parent, tie.child] = tie
        edge = sorted(reached)
    rows = {row.seq: row for row in jobs.by_seqs(tx, sorted(numbers))}
    nodes = {number: Node(number=number, job=rows.get(number)) for number in sorted(numbers)}
    left = {way: _left_out(tx, way, of_way, nodes, ties) for way, of_way in totals.items()}
    return Graph(
        asked=job.seq,
        nodes=nodes,
        ties=tuple(ties[pair] for pair in sorted(ties)),
        parents_left=left.get(graphs.UP, {}),
        children_left=left.get(graphs.DOWN, {}),
    )


def _left_out(
    tx: "Tx",
    way: "tuple[str, str]",
    totals: "Mapping[int, int]",
    nodes: "Mapping[int, Node]",
    ties: "Mapping[tuple[int, int], Tie]",
) -> dict[int, Rest]:
    """Return by the number of a job what stands next to it on one side and is not shown."""
    shown: dict[int, list[str]] = {}
    for parent, child in ties:
        near, far = (child, parent) if way is graphs.UP else (parent, child)
        shown.setdefault(near, []).append(nodes[far].state)
    lacking = [seq for seq, total in sorted(totals.items()) if total > len(shown.get(seq, ()))]
    left: dict[int, Rest] = {}
    for seq, states in graphs.states_next_to(tx, lacking, way).items():
        for state in shown.get(seq, ()):
            states[state] -= 1
        left[seq] = Rest(states={state: count for state, count in states.items() if count})
    return dict(sorted(left.items()))
