"""Graphs: reading who runs after whom around some jobs, so many of each at most. Who writes it is edges.py."""

from queuectl.model.after import EdgeState, Kind
from queuectl.model.graph import GONE, Tie
from queuectl.model.value import Value
from queuectl.store.jobs import CHUNK, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx

UP = ("child_seq", "parent_seq")
DOWN = ("parent_seq", "child_seq")


class Next(Value):
    """What stands next to a job on one side: the first of them, and how many there are."""

    ties: tuple[Tie, ...]
    total: int


def next_to(tx: "Tx", seqs: "Sequence[int]", side: "tuple[str, str]", most: int) -> dict[int, Next]:
    """Return what stands next to each of some jobs on one side, so many of each at most, in the order of numbers."""
    near, far = side
    found: dict[int, Next] = {}
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        rows = tx.rows(
            f"""
            SELECT near_seq, parent_seq, child_seq, kind, state, total
              FROM (SELECT {near} AS near_seq, parent_seq, child_seq, kind, state,
                           row_number() OVER (PARTITION BY {near} ORDER BY {far}) AS place,
                           count(*) OVER (PARTITION BY {near}) AS total
                      FROM edges
                     WHERE {near} IN ({names})) AS around
             WHERE place <= :most
             ORDER BY near_seq, place
            """,
            {**params, "most": most},
        )
        for near_seq, parent, child, kind, state, total in rows:
            tie = Tie(
                parent=int(parent or 0), child=int(child or 0), kind=Kind(str(kind)), edge_state=EdgeState(str(state))
            )
            before = found.get(int(near_seq or 0))
            ties = (tie,) if before is None else (*before.ties, tie)
            found[int(near_seq or 0)] = Next(ties=ties, total=int(total or 0))
    return found


def states_next_to(tx: "Tx", seqs: "Sequence[int]", side: "tuple[str, str]") -> dict[int, dict[str, int]]:
    """Return how many jobs stand next to each of some on one side, by their state."""
    near, far = side
    found: dict[int, dict[str, int]] = {}
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        rows = tx.rows(
            f"""
            SELECT e.{near}, j.state, count(*)
              FROM edges e
              LEFT JOIN jobs j ON j.seq = e.{far}
             WHERE e.{near} IN ({names})
             GROUP BY e.{near}, j.state
            """,
            params,
        )
        for seq, state, count in rows:
            found.setdefault(int(seq or 0), {})[GONE if state is None else str(state)] = int(count or 0)
    return found
