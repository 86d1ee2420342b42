"""Retrying what died of the same: one job of a group of errors as a canary, or all of them."""

from queuectl.actions import control
from queuectl.actions.acts import MAX_TARGET, refuse_more, words_of
from queuectl.errors import NotFound
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.store import jobs
from queuectl.store.error_groups import meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.acts import Done
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx


MOST_SEQS = (1 << 63) - 1


class Canary(Value):
    """The one job of a group that was given a fresh life, and how many are left."""

    done: "Done"
    rest: int


def count(tx: "Tx", wanted: jobs.Filter) -> int:
    """Return how many dead jobs are meant."""
    return sum(jobs.count_matching(tx, each) for each in meant(tx, wanted))


def latest(tx: "Tx", wanted: jobs.Filter, limit: int) -> "list[Job]":
    """Return the dead jobs that are meant, the latest death first."""
    found = [job for each in meant(tx, wanted) for job in jobs.latest_dead(tx, each, limit)]
    return sorted(found, key=lambda job: (job.finished_at or 0, job.seq), reverse=True)[:limit]


def retry(database: "Database", wanted: jobs.Filter, *, who: str, most: int | None = None) -> int:
    """Give every dead job that is meant a fresh life; return how many got one. Raises where they are more than `most`.

    With `most`, those that are counted are those that are acted on: one that dies while this is done is left alone.
    """
    parts, only = database.read(lambda tx: _agreed(tx, wanted, most))
    target = _target(wanted)
    return sum(control.revive_all_dead(database, each, who=who, target=target, only=only) for each in parts)


def purge(database: "Database", wanted: jobs.Filter, *, who: str, most: int | None = None) -> int:
    """Remove every dead job that is meant; return how many are gone. `most` is what it is to `retry`."""
    parts, only = database.read(lambda tx: _agreed(tx, wanted, most))
    target = _target(wanted)
    return sum(control.purge_dead(database, each, who=who, target=target, only=only) for each in parts)


def _agreed(tx: "Tx", wanted: jobs.Filter, most: int | None) -> "tuple[list[jobs.Filter], frozenset[int] | None]":
    """Return what finds the dead jobs that are meant and, where somebody agreed to so many, which they are just now."""
    parts = [each.replace(states=(State.DEAD,)) for each in meant(tx, wanted)]
    if most is None:
        return parts, None
    only = frozenset(seq for each in parts for seq in jobs.seqs_matching(tx, each, 0, MOST_SEQS))
    refuse_more(len(only), most)
    return parts, only


def _target(wanted: jobs.Filter) -> str:
    error = [] if wanted.error is None else [f"with error {wanted.error}"]
    return " ".join(["all", *error, *words_of(wanted.replace(error=None, states=()))])[:MAX_TARGET]


def canary(database: "Database", wanted: jobs.Filter, *, who: str, most: int | None = None) -> Canary:
    """Give the one dead job that died last of those meant a fresh life, to see whether the cause is gone."""

    def look(tx: "Tx") -> "tuple[list[Job], int]":
        number = count(tx, wanted)
        refuse_more(number, most)
        return latest(tx, wanted, 1), number

    found, number = database.read(look)
    if not found:
        raise NotFound("no dead job matches", hint="see what there is with: queuectl dlq groups")
    (done,) = control.revive_dead(database, [found[0].id], who=who)
    return Canary(done=done, rest=number - 1)
