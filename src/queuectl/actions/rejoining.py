"""Rejoining: jobs of another store that run after each other, tied together again under the numbers they have here."""

from queuectl.actions.endings import Ending, answer, follow
from queuectl.model.after import EdgeState
from queuectl.model.states import FINAL, State
from queuectl.store import edges, jobs, moves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx

PAGE = 500


class Rejoining:
    """Who waits for whom among jobs that are brought in: gathered while they are written, tied when all are there."""

    def __init__(self, tx: "Tx", wanted: "frozenset[int]") -> None:
        self._tx = tx
        self._wanted = wanted
        """The numbers, in the file, of the jobs that others run after."""
        self._numbers: dict[int, int] = {}
        self._after: dict[int, tuple[tuple[int, str, str], ...]] = {}
        self.ended: list[int] = []
        """Jobs that end by being brought in: somebody had asked to stop them."""
        self.held: list[str] = []
        """Jobs that waited for others which did not come; they wait for a person now."""

    def note(self, numbers: "Mapping[int, int]") -> None:
        """Note which numbers jobs of the file have here: their own, or those of the jobs that were there already."""
        self._numbers |= {seq: numbers[seq] for seq in numbers.keys() & self._wanted}

    def add(self, child: int, after: "tuple[tuple[int, str, str], ...]") -> None:
        """Note what a job, by its number here, is to run after, by numbers of the file."""
        self._after[child] = after

    def write(self) -> None:
        """Tie them together, hold those that lack one they waited for, and tell all others how theirs ended."""
        # Before the first is looked at: those that were here already may end meanwhile.
        over: list[Ending] = []
        for page in _pages(sorted(set(self._numbers.values()))):
            held = jobs.lock(self._tx, page)
            over += [Ending(seq=job.seq, id=job.id, state=job.state) for job in held if job.state in FINAL]
        for page in _pages(sorted(self._after)):
            self._tie(page)
        follow(self._tx, answer(self._tx, over))
        follow(self._tx, jobs.lock(self._tx, self.ended))

    def _tie(self, children: "Sequence[int]") -> None:
        tied = {
            child: [
                (self._numbers[seq], kind, state) for seq, kind, state in self._after[child] if seq in self._numbers
            ]
            for child in children
        }
        rows = [(child, parent, kind, state) for child, known in tied.items() for parent, kind, state in known]
        edges.insert_as_they_are(self._tx, rows)
        edges.mark_parents(self._tx, sorted({parent for _, parent, _, _ in rows}))
        for job in jobs.lock(self._tx, children):
            open_ones = [seq for seq, _, state in self._after[job.seq] if state != EdgeState.SATISFIED]
            if all(seq in self._numbers for seq in open_ones):
                continue
            self._leave(job)

    def _leave(self, job: "Job") -> None:
        """Let a job go on without those that did not come: a person decides whether it may run."""
        edges.recount(self._tx, job.seq)
        if job.state is State.BLOCKED and job.held_at is None:
            moves.hold_blocked(self._tx, job.seq)
            self.held.append(job.id)


def _pages(seqs: "Sequence[int]") -> "Iterator[Sequence[int]]":
    return (seqs[start : start + PAGE] for start in range(0, len(seqs), PAGE))
