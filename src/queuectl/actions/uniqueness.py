"""Uniqueness: of jobs with the same key, which are added, and what becomes of the others."""

from queuectl.actions.endings import follow
from queuectl.errors import Refused
from queuectl.model.after import Kind, Parent
from queuectl.model.states import FINAL, State
from queuectl.model.unique import OnConflict
from queuectl.model.value import Value
from queuectl.store import edges, jobs, moves, parking, unique_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job, JobSpec
    from queuectl.store.database import Tx

TRIES = 10
REPLACED_WORDS = "cancelled: another job with the same key took its place"


class Conflict(Value):
    """A job that is not added because another has its key: the number of that one, and whether it stands for this."""

    seq: int
    is_attached: bool


class Keys:
    """The keys of new jobs: looked at before they get numbers, taken after."""

    def __init__(self, tx: "Tx", specs: "Sequence[JobSpec]") -> None:
        self._tx = tx
        self._specs = specs
        self.conflicts: dict[int, Conflict] = {}
        """Those that are not added, by their place."""
        self.twins: dict[int, int] = {}
        """Those that have the key of another in the same batch, by their place, and the place of that."""
        self.replaced: dict[int, Job] = {}
        """What those that replace another took the place of, as it was, by their place."""
        self._look()

    def _look(self) -> None:
        places: dict[str, list[int]] = {}
        for place, spec in enumerate(self._specs):
            if spec.unique_key is not None:
                places.setdefault(spec.unique_key, []).append(place)
        for key, rivals in places.items():
            chosen = self._chosen(key, rivals)
            self.twins |= {place: chosen for place in rivals if place != chosen}
            replaces = _policy(self._specs[chosen]) is OnConflict.REPLACE
            if not replaces and (seq := unique_keys.holder(self._tx, key)) is not None:
                self._meet(chosen, seq)

    def _chosen(self, key: str, rivals: "Sequence[int]") -> int:
        """Return which of the jobs of one batch with the same key is added: the first, or the last that replaces it."""
        chosen = rivals[0]
        for place in rivals[1:]:
            policy = _policy(self._specs[place])
            if policy is OnConflict.ERROR:
                raise Refused(f"two of these jobs have the key {key!r}", hint="nothing was added")
            if policy is OnConflict.REPLACE:
                chosen = place
        return chosen

    def take(self, places: "Sequence[int]", seqs: "Sequence[int]") -> "dict[int, tuple[Parent, ...]]":
        """Take the keys of those that are left, in one order for all; return what replacements must wait for."""
        waits: dict[int, tuple[Parent, ...]] = {}
        mine = {
            place: seq for place, seq in zip(places, seqs, strict=True) if self._specs[place].unique_key is not None
        }
        for place in sorted(mine, key=lambda place: str(self._specs[place].unique_key)):
            waits[place] = self._take(place, mine[place])
        return waits

    def _take(self, place: int, seq: int) -> "tuple[Parent, ...]":
        tx, spec = self._tx, self._specs[place]
        key = spec.unique_key or ""
        replaces = _policy(spec) is OnConflict.REPLACE
        for _ in range(TRIES):
            # Who ends a job holds it and then its key: so does who replaces one.
            holder = unique_keys.holder(tx, key) if replaces else None
            old = jobs.lock(tx, [holder]) if holder is not None else []
            if unique_keys.take(tx, key, seq, spec.unique_for_ms, from_=holder):
                if old and old[0].state not in FINAL:
                    self.replaced[place] = old[0]
                return tuple(wait for job in old for wait in _replace(tx, job))
            holder = unique_keys.holder(tx, key)
            if holder is not None and not replaces:  # else it was let go, or changed hands, just now
                self._meet(place, holder)
                return ()
        raise Refused(f"the key {key!r} changes hands too fast", hint="try again; nothing was added")

    def _meet(self, place: int, holder: int) -> None:
        spec = self._specs[place]
        policy = _policy(spec)
        if policy is OnConflict.ERROR:
            job = jobs.get(self._tx, holder)
            name = str(holder) if job is None else job.id
            raise Refused(
                f"job {name} has the key {spec.unique_key!r}", hint=f"see: queuectl show {name}; nothing was added"
            )
        self.conflicts[place] = Conflict(seq=holder, is_attached=policy is OnConflict.ATTACH)


def _policy(spec: "JobSpec") -> OnConflict:
    return OnConflict.ATTACH if spec.on_conflict is None else OnConflict(spec.on_conflict)


def _replace(tx: "Tx", old: "Job") -> "list[Parent]":
    """Cancel a job whose place another takes; return what that one must wait for: a running command ends first."""
    if old.state in FINAL:
        return []
    if old.state is State.PROCESSING:
        moves.request_cancel(tx, old.seq)
        tx.wake()
        return [Parent(kind=Kind.ANY, id=str(old.seq))]
    before = jobs.by_seqs(tx, [link.seq for link in edges.open_parents(tx, old.seq)]) if old.waits_for else []
    waits = [job for job in before if job.unique_key == old.unique_key and job.state not in FINAL]
    cancelled = moves.cancel(tx, [old.seq], REPLACED_WORDS)
    tx.try_lock(old.limit_list)
    parking.left_line(tx, [old])
    follow(tx, cancelled)
    return [Parent(kind=Kind.ANY, id=str(job.seq)) for job in waits]
