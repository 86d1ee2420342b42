"""Edges: which job waits for which, and what has become of that. When each is looked at is decided in actions/.

An edge changes while its parent's row is held, and its child's after it: so each is satisfied once, and the number the
child waits for falls by the edges that changed (docs/adr/0018-dependencies.md).
"""

from collections import Counter

from queuectl.model.after import EdgeState, Kind
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.store.jobs import CHUNK, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue

_COLUMNS = ("child_seq", "parent_seq", "kind", "state")


class Edge(Value):
    """One job waiting for another."""

    child_seq: int
    parent_seq: int
    kind: Kind
    state: EdgeState


class Link(Value):
    """One end of an edge as the other sees it: the job, which may be gone, and how it is waited for."""

    seq: int
    given_id: str | None
    job_state: State | None
    kind: Kind
    edge_state: EdgeState

    @property
    def id(self) -> str:
        """What people call the job."""
        return self.given_id or str(self.seq)


def insert(tx: "Tx", edges: "Iterable[tuple[int, int, str]]") -> None:
    """Let children wait for parents: the number of each, and how it must end. The caller holds the parents."""
    tx.insert_many("edges", _COLUMNS, ((child, parent, kind, "waiting") for child, parent, kind in edges))


def insert_as_they_are(tx: "Tx", edges: "Iterable[tuple[int, int, str, str]]") -> None:
    """Let children wait for parents as they did in another store. The caller holds the parents."""
    tx.insert_many("edges", _COLUMNS, edges)


def mark_parents(tx: "Tx", seqs: "Sequence[int]") -> None:
    """Note in jobs that others wait for them. The caller holds them."""
    for names, params in _chunks(seqs):
        tx.changed(f"UPDATE jobs SET has_dependents = 1 WHERE has_dependents = 0 AND seq IN ({names})", params)


def waiting_children(tx: "Tx", parent: int) -> list[tuple[int, Kind]]:
    """Return who waits for a job, in the order of their numbers, and how it must end for them."""
    rows = tx.rows(
        """
        SELECT child_seq, kind
          FROM edges
         WHERE parent_seq = :parent AND state <> 'satisfied' AND state = 'waiting'
         ORDER BY child_seq
        """,
        {"parent": parent},
    )
    return [(int(child or 0), Kind(str(kind))) for child, kind in rows]


def policies(tx: "Tx", children: "Sequence[int]") -> dict[int, str | None]:
    """Take jobs by their numbers, in order, and return what each does when one it waits for ends otherwise."""
    found: dict[int, str | None] = {}
    for names, params in _chunks(children):
        sql = f"SELECT seq, on_dead FROM jobs WHERE seq IN ({names}) ORDER BY seq {tx.dialect.for_update}"
        found |= {int(seq or 0): None if on_dead is None else str(on_dead) for seq, on_dead in tx.rows(sql, params)}
    return found


def satisfy(tx: "Tx", parent: int, children: "Sequence[int]") -> list[int]:
    """Let children wait for one job less, and return those that did wait for it. The caller holds them."""
    changed = _change(tx, parent, children, EdgeState.SATISFIED)
    for names, params in _chunks(changed):
        tx.changed(f"UPDATE jobs SET waits_for = waits_for - 1 WHERE seq IN ({names})", params)
    return changed


def satisfy_gone(tx: "Tx", children: "Sequence[int]") -> None:
    """Let jobs no longer wait for the end of those that are gone. The caller holds them.

    Nobody deletes a job that another waits for, but one that was itself over then may come to wait again.
    """
    for names, params in _chunks(children):
        rows = tx.rows(
            f"""
            UPDATE edges
               SET state = 'satisfied'
             WHERE child_seq IN ({names}) AND state = 'waiting' AND kind = 'any'
               AND NOT EXISTS (SELECT 1 FROM jobs p WHERE p.seq = edges.parent_seq)
            RETURNING child_seq
            """,
            params,
        )
        for child, fewer in Counter(int(row[0] or 0) for row in rows).items():
            tx.changed(
                "UPDATE jobs SET waits_for = waits_for - :fewer WHERE seq = :child", {"child": child, "fewer": fewer}
            )


def break_off(tx: "Tx", parent: int, children: "Sequence[int]") -> list[int]:
    """Note that a job ended otherwise than children asked, and return those that did wait for it."""
    return _change(tx, parent, children, EdgeState.BROKEN)


def disappointed(tx: "Tx", parents: "Sequence[int]") -> list[int]:
    """Return those that waited for some jobs which ended otherwise than they asked, in the order of their numbers."""
    found: set[int] = set()
    for names, params in _chunks(parents):
        rows = tx.rows(
            f"""
            SELECT child_seq
              FROM edges
             WHERE parent_seq IN ({names}) AND state <> 'satisfied' AND state = 'broken'
            """,
            params,
        )
        found.update(int(row[0] or 0) for row in rows)
    return sorted(found)


def mend(tx: "Tx", parents: "Sequence[int]") -> set[int]:
    """Let those wait again whom some jobs that are revived had disappointed; return them. The caller holds them."""
    changed: set[int] = set()
    for names, params in _chunks(parents):
        rows = tx.rows(
            f"""
            UPDATE edges
               SET state = 'waiting'
             WHERE parent_seq IN ({names}) AND state <> 'satisfied' AND state = 'broken'
            RETURNING child_seq
            """,
            params,
        )
        changed.update(int(row[0] or 0) for row in rows)
    return changed


def mend_child(tx: "Tx", child: int) -> None:
    """Let a job wait again for those that had disappointed it. The caller holds it, and them."""
    tx.changed("UPDATE edges SET state = 'waiting' WHERE child_seq = :child AND state = 'broken'", {"child": child})


def _change(tx: "Tx", parent: int, children: "Sequence[int]", to: EdgeState) -> list[int]:
    """Change what has become of those edges of a job that are waiting; return their children."""
    changed: list[int] = []
    for names, params in _chunks(children):
        rows = tx.rows(
            f"""
            UPDATE edges
               SET state = :to
             WHERE parent_seq = :parent AND state = 'waiting' AND child_seq IN ({names})
            RETURNING child_seq
            """,
            {**params, "parent": parent, "to": to.value},
        )
        changed += [int(row[0] or 0) for row in rows]
    return sorted(changed)


def reset(tx: "Tx", parents: "Sequence[int]", children: "Sequence[int]") -> None:
    """Let all that run after some jobs wait for them again, however they ended before. The caller holds them all."""
    for names, params in _chunks(parents):
        tx.changed(f"UPDATE edges SET state = 'waiting' WHERE parent_seq IN ({names}) AND state <> 'waiting'", params)
    for names, params in _chunks(children):
        tx.changed(
            f"""
            UPDATE jobs
               SET waits_for = (SELECT count(*) FROM edges e WHERE e.child_seq = jobs.seq AND e.state <> 'satisfied')
             WHERE seq IN ({names})
            """,
            params,
        )


def hopeless(tx: "Tx", children: "Sequence[int]") -> "list[tuple[int, int]]":
    """Return which of some jobs wait for one that ended otherwise than they asked, or is gone, each with that one."""
    found: list[tuple[int, int]] = []
    for names, params in _chunks(children):
        rows = tx.rows(
            f"""
            SELECT e.child_seq, e.parent_seq
              FROM edges e
              LEFT JOIN jobs p ON p.seq = e.parent_seq
             WHERE e.child_seq IN ({names})
               AND (e.state = 'broken' OR (e.state = 'waiting' AND e.kind <> 'any' AND p.seq IS NULL))
            """,
            params,
        )
        found += [(int(child or 0), int(parent or 0)) for child, parent in rows]
    return found


def unmet_parents(tx: "Tx", children: "Sequence[int]") -> list[int]:
    """Return the numbers of those that some jobs wait for, or did when they ended, in order."""
    found: set[int] = set()
    for names, params in _chunks(children):
        rows = tx.rows(f"SELECT parent_seq FROM edges WHERE child_seq IN ({names}) AND state <> 'satisfied'", params)
        found.update(int(row[0] or 0) for row in rows)
    return sorted(found)


def recount(tx: "Tx", child: int) -> int:
    """Write into a job how many it waits for, and return it. The caller holds it."""
    row = tx.row("SELECT count(*) FROM edges WHERE child_seq = :child AND state <> 'satisfied'", {"child": child})
    number = int(row[0] or 0) if row else 0
    tx.changed("UPDATE jobs SET waits_for = :number WHERE seq = :child", {"number": number, "child": child})
    return number


def of_child(tx: "Tx", child: int) -> list[Edge]:
    """Return what a job waits for, or waited for."""
    rows = tx.rows(f"SELECT {', '.join(_COLUMNS)} FROM edges WHERE child_seq = :child", {"child": child})
    return [_edge(row) for row in rows]


def open_parents(tx: "Tx", child: int) -> list[Link]:
    """Return the jobs that have not yet ended as this one asked, or ended otherwise, or are gone."""
    return [link for link in parents_of(tx, child) if link.edge_state is not EdgeState.SATISFIED]


def parents_of(tx: "Tx", child: int, most: int = 1 << 30) -> list[Link]:
    """Return the jobs that one runs after, in the order of their numbers; also those that are gone."""
    return _links(tx, "child_seq", "parent_seq", child, most)


def children_of(tx: "Tx", parent: int, most: int = 1 << 30) -> list[Link]:
    """Return the jobs that run after one, in the order of their numbers."""
    return _links(tx, "parent_seq", "child_seq", parent, most)


def count_children(tx: "Tx", parent: int) -> int:
    """Return how many jobs run after one."""
    row = tx.row("SELECT count(*) FROM edges WHERE parent_seq = :parent", {"parent": parent})
    return int(row[0] or 0) if row else 0


def between(tx: "Tx", children: "Sequence[int]") -> list[Edge]:
    """Return all that some jobs wait for, or waited for."""
    found: list[Edge] = []
    for names, params in _chunks(children):
        rows = tx.rows(f"SELECT {', '.join(_COLUMNS)} FROM edges WHERE child_seq IN ({names})", params)
        found += [_edge(row) for row in rows]
    return found


def children_seqs(tx: "Tx", parents: "Sequence[int]") -> set[int]:
    """Return the numbers of the jobs that run after any of some."""
    return _ends(tx, "parent_seq", "child_seq", parents)


def needed(tx: "Tx", parents: "Sequence[int]") -> set[int]:
    """Return those of some jobs that others wait for."""
    found: set[int] = set()
    for names, params in _chunks(parents):
        rows = tx.rows(
            f"""
            SELECT DISTINCT e.parent_seq
              FROM edges e
              JOIN jobs j ON j.seq = e.child_seq
             WHERE e.state <> 'satisfied' AND e.parent_seq IN ({names})
               AND j.state NOT IN ('completed', 'dead', 'cancelled')
            """,
            params,
        )
        found.update(int(row[0] or 0) for row in rows)
    return found


def waited_for(tx: "Tx", parents: "Sequence[int]") -> "list[tuple[int, int]]":
    """Return those of some jobs that others wait for, each with every one that does."""
    found: list[tuple[int, int]] = []
    for names, params in _chunks(parents):
        rows = tx.rows(
            f"""
            SELECT e.parent_seq, e.child_seq
              FROM edges e
              JOIN jobs j ON j.seq = e.child_seq
             WHERE e.state <> 'satisfied' AND e.parent_seq IN ({names})
               AND j.state NOT IN ('completed', 'dead', 'cancelled')
            """,
            params,
        )
        found += [(int(parent or 0), int(child or 0)) for parent, child in rows]
    return found


def waiting_ids(tx: "Tx", parent: int, most: int = 100) -> list[str]:
    """Return what people call the jobs that wait for one."""
    rows = tx.rows(
        """
        SELECT j.seq, j.given_id
          FROM edges e
          JOIN jobs j ON j.seq = e.child_seq
         WHERE e.parent_seq = :parent AND e.state <> 'satisfied' AND j.state NOT IN ('completed', 'dead', 'cancelled')
         ORDER BY e.child_seq
         LIMIT :most
        """,
        {"parent": parent, "most": most},
    )
    return [str(given_id or seq) for seq, given_id in rows]


def stranded(tx: "Tx", most: int) -> list[str]:
    """Return what people call jobs that are blocked and wait for nothing: there should be none."""
    rows = tx.rows(
        """
        SELECT seq, given_id
          FROM jobs
         WHERE state = 'blocked' AND waits_for = 0 AND held_at IS NULL AND parked_for IS NULL
         LIMIT :most
        """,
        {"most": most},
    )
    return [str(given_id or seq) for seq, given_id in rows]


def kept(tx: "Tx", most: int) -> list[str]:
    """Return what people call jobs that wait for one which is over, or gone."""
    rows = tx.rows(
        """
        SELECT DISTINCT c.seq, c.given_id
          FROM edges e
          JOIN jobs c ON c.seq = e.child_seq AND c.state = 'blocked'
          LEFT JOIN jobs p ON p.seq = e.parent_seq
         WHERE e.state <> 'satisfied' AND (p.seq IS NULL OR p.state IN ('completed', 'dead', 'cancelled'))
         LIMIT :most
        """,
        {"most": most},
    )
    return [str(given_id or seq) for seq, given_id in rows]


def drop(tx: "Tx", children: "Sequence[int]") -> None:
    """Forget what some jobs waited for."""
    for names, params in _chunks(children):
        tx.changed(f"DELETE FROM edges WHERE child_seq IN ({names})", params)


def _ends(tx: "Tx", near: str, far: str, seqs: "Sequence[int]") -> set[int]:
    found: set[int] = set()
    for names, params in _chunks(seqs):
        found.update(int(row[0] or 0) for row in tx.rows(f"SELECT {far} FROM edges WHERE {near} IN ({names})", params))
    return found


def _links(tx: "Tx", near: str, far: str, seq: int, most: int) -> list[Link]:
    rows = tx.rows(
        f"""
        SELECT e.{far}, j.given_id, j.state, e.kind, e.state
          FROM edges e
          LEFT JOIN jobs j ON j.seq = e.{far}
         WHERE e.{near} = :seq
         ORDER BY e.{far}
         LIMIT :most
        """,
        {"seq": seq, "most": most},
    )
    return [
        Link(
            seq=int(number or 0),
            given_id=None if given_id is None else str(given_id),
            job_state=None if state is None else State(str(state)),
            kind=Kind(str(kind)),
            edge_state=EdgeState(str(edge_state)),
        )
        for number, given_id, state, kind, edge_state in rows
    ]


def _edge(row: "Row") -> Edge:
    child, parent, kind, state = row
    return Edge(
        child_seq=int(child or 0), parent_seq=int(parent or 0), kind=Kind(str(kind)), state=EdgeState(str(state))
    )


def _chunks(seqs: "Sequence[int]") -> "Iterator[tuple[str, dict[str, SqlValue]]]":
    """Return the placeholders and values of an IN list, so many at a time as a statement takes well."""
    for start in range(0, len(seqs), CHUNK):
        yield listed("seq", seqs[start : start + CHUNK])
