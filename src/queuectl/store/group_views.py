"""Group views: groups as a person asks for them: where they stand, how quickly they go on, what failed. Reads alone."""

import json

from queuectl.model.group import Group
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store import groups, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

FAILED = (State.DEAD, State.CANCELLED)
KINDS = 20
"""How many kinds of failures are told apart; of those beyond, only the number is known."""
SAMPLES = 3
NEIGHBOURS = 200
LOOKED_AT = 50
"""How many of the newest groups are looked at for those under way."""
RECENT_MS = 60_000
LEAST_SPAN_MS = 1_000


class Failures(Value):
    """Jobs of a group that ended in the same state with the same error."""

    state: State
    error: str | None
    count: int
    samples: "tuple[Job, ...]"
    """The first few of them."""


class GroupView(Value):
    """A group and where its jobs stand at one moment."""

    name: str
    group: Group
    counts: "dict[State, int]"
    started_at: int | None
    """When the first of them began, of the runs that are each job's last."""
    finished_at: int | None
    """When the last of them ended."""
    recent: int
    """How many ended within the last minute."""
    failures: tuple[Failures, ...]
    now: int

    @property
    def total(self) -> int:
        """How many jobs there are."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """How many have ended."""
        return sum(number for state, number in self.counts.items() if state in FINAL)

    @property
    def is_over(self) -> bool:
        """Whether all have ended."""
        return self.ended == self.total

    @property
    def failed(self) -> int:
        """How many ended and did not complete."""
        return sum(self.counts.get(state, 0) for state in FAILED)

    @property
    def may_fail(self) -> int | None:
        """How many may die before the rest is cancelled; None means any number."""
        return self.group.most_failures

    @property
    def closing_command(self) -> str | None:
        """The command that is added as a job when all have ended."""
        return None if self.group.on_done is None else str(json.loads(self.group.on_done)["command"])

    @property
    def per_s(self) -> float | None:
        """How many ended a second within the last minute; None when none did, or all have ended."""
        if not self.recent or self.is_over or self.started_at is None:
            return None
        return self.recent * 1000 / min(RECENT_MS, max(LEAST_SPAN_MS, self.now - self.started_at))

    @property
    def left_ms(self) -> int | None:
        """How long the rest takes if it goes on as in the last minute."""
        return None if self.per_s is None else round((self.total - self.ended) / self.per_s * 1000)

    @property
    def took_ms(self) -> int | None:
        """How long it took from the first start to the last end; None while it goes on, or if nothing ran."""
        if not self.is_over or self.started_at is None or self.finished_at is None:
            return None
        return max(0, self.finished_at - self.started_at)


def view(tx: "Tx", name: str) -> GroupView | None:
    """Return all that is known of a group; None means there is none of the name."""
    counts = groups.counts(tx, name)
    group = groups.get(tx, name)
    if group is None and not counts:
        return None
    row = tx.row(
        """
        SELECT min(started_at), max(finished_at), count(CASE WHEN finished_at > :since THEN 1 END)
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name
        """,
        {"name": name, "since": tx.now - RECENT_MS},
    )
    started_at, finished_at, recent = row or (None, None, 0)
    return GroupView(
        name=name,
        group=group or _unkept(name, sum(counts.values())),
        counts=counts,
        started_at=None if started_at is None else int(started_at),
        finished_at=None if finished_at is None else int(finished_at),
        recent=int(recent or 0),
        failures=tuple(failures(tx, name)) if any(counts.get(state) for state in FAILED) else (),
        now=tx.now,
    )


def is_known(tx: "Tx", name: str) -> bool:
    """Whether there is a group of this name."""
    return groups.get(tx, name) is not None or has_any(tx, name, tuple(State))


def under_way(tx: "Tx", most: int) -> list[str]:
    """Return the groups, of the newest ones, that have jobs which have not ended; a probe of jobs_group for each.

    Spelt with LIMIT: PostgreSQL would else read all jobs of all groups into a table of its own.
    """
    states = ", ".join(f"'{state}'" for state in groups.UNFINISHED)
    rows = tx.rows(
        f"""
        SELECT name
          FROM (SELECT name, created_at FROM job_groups ORDER BY created_at DESC, name LIMIT :newest) AS newest
         WHERE (SELECT 1
                  FROM jobs
                 WHERE group_name IS NOT NULL AND group_name = newest.name AND state IN ({states})
                 LIMIT 1) IS NOT NULL
         ORDER BY created_at DESC, name
         LIMIT :most
        """,
        {"newest": LOOKED_AT, "most": most},
    )
    return [str(row[0]) for row in rows]


def has_any(tx: "Tx", name: str, states: tuple[State, ...]) -> bool:
    """Whether a job of a group is in one of the states: a probe of jobs_group for each."""
    listed = ", ".join(f"'{state}'" for state in states)
    row = tx.row(
        f"SELECT seq FROM jobs WHERE group_name IS NOT NULL AND group_name = :name AND state IN ({listed}) LIMIT 1",
        {"name": name},
    )
    return row is not None


def failures(tx: "Tx", name: str) -> list[Failures]:
    """Return what failed in a group, those of the same error together: the dead first, the most frequent first."""
    states = ", ".join(f"'{state}'" for state in FAILED)
    rows = tx.rows(
        f"""
        SELECT state, error, count(*) AS number
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name AND state IN ({states})
         GROUP BY state, error
         ORDER BY state DESC, number DESC, min(seq)
         LIMIT :most
        """,
        {"name": name, "most": KINDS},
    )
    return [
        Failures(
            state=State(str(state)),
            error=None if error is None else str(error),
            count=int(number or 0),
            samples=tuple(_samples(tx, name, str(state), None if error is None else str(error))),
        )
        for state, error, number in rows
    ]


def failed_seqs(tx: "Tx", name: str) -> list[int]:
    """Return the numbers of the jobs of a group that ended and did not complete: the dead first."""
    states = ", ".join(f"'{state}'" for state in FAILED)
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name AND state IN ({states})
         ORDER BY state DESC, seq
        """,
        {"name": name},
    )
    return [int(row[0] or 0) for row in rows]


def stopping(tx: "Tx", name: str) -> int:
    """Return how many jobs of a group run though they are to be cancelled."""
    row = tx.row(
        """
        SELECT count(*)
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name AND state = 'processing' AND cancel_requested = 1
        """,
        {"name": name},
    )
    return int(row[0] or 0) if row else 0


def _samples(tx: "Tx", name: str, state: str, error: str | None) -> "list[Job]":
    same = "error IS NULL" if error is None else "error = :error"
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name AND state = :state AND {same}
         ORDER BY seq
         LIMIT :most
        """,
        {"name": name, "state": state, "most": SAMPLES, **({} if error is None else {"error": error})},
    )
    return jobs.by_seqs(tx, [int(row[0] or 0) for row in rows])


def _unkept(name: str, number: int) -> Group:
    """Stand in for a group that is gone but for its jobs."""
    return Group(name=name, jobs=number, max_failures=None, on_done=None, stopped_at=None, done_at=None, created_at=0)
