"""Dependencies: finding the jobs that new ones are to run after. What follows when those end is in endings.py."""

from queuectl.actions.endings import Ending, answer, follow
from queuectl.actions.selection import no_such_job
from queuectl.errors import BadInput, NotFound
from queuectl.model.after import GROUP, LATEST, MAX_PARENTS, Kind, span_of
from queuectl.model.job import JobSpec
from queuectl.model.states import FINAL, State
from queuectl.store import edges, jobs, moves, parking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    from queuectl.model.after import Parent
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

    Name = TypeVar("Name")

SHOWN_OF_A_CYCLE = 12
NEW = "#"
"""Stands before the place of a job of the same batch: no id begins so."""
REWIRING = "edges"
"""Locked by name while dependencies of jobs that exist change: else two such changes could close a circle unseen."""
_IN_LINE = frozenset({State.PENDING, State.SCHEDULED, State.FAILED})


class Graph:
    """What new jobs are to run after: found and held before they are written, told how those ended after."""

    def __init__(self, tx: "Tx", specs: "Sequence[JobSpec]", aliases: "Mapping[str, int] | None" = None) -> None:
        """Find the parents, hold those that exist already, and refuse a cycle or what cannot be known any more.

        `aliases` are names of jobs that are not added because another of these, by its place, stands for them.

        They are held in the order of their numbers and read after that: else one could end, and pass its new child by.
        """
        self._tx = tx
        self._places = {spec.given_id: place for place, spec in enumerate(specs) if spec.given_id is not None}
        self._places |= aliases or {}
        specs = [self._expanded(specs, place) if spec.after else spec for place, spec in enumerate(specs)]
        self._refuse_cycles(specs)
        wanted = {parent.id for spec in specs for parent in spec.after} - self._places.keys()
        numbers = jobs.numbers_of(tx, sorted(wanted))
        self._held = {job.seq: job for job in jobs.lock(tx, sorted(set(numbers.values())))}
        self._outside = {name: number for name, number in numbers.items() if number in self._held}
        self.specs = [self._checked(spec) if spec.after else spec for spec in specs]

    def _expanded(self, specs: "Sequence[JobSpec]", place: int) -> "JobSpec":
        """Return a job with each parent named by itself: those of a range, and those of a group there is by now."""
        spec = specs[place]
        if not any(parent.id.startswith(GROUP) or span_of(parent.id) for parent in spec.after):
            return spec
        names: list[Parent] = []
        for parent in spec.after:
            names += [parent.replace(id=name) for name in self._meant(specs, place, parent.id)]
        if len(names) > MAX_PARENTS:
            raise BadInput(f"after names {len(names)} jobs; the limit is {MAX_PARENTS}", hint="wait for them in steps")
        return spec.replace(after=tuple(names))

    def _meant(self, specs: "Sequence[JobSpec]", place: int, name: str) -> list[str]:
        """Return the names of the jobs that a name means."""
        if name.startswith(GROUP):
            group = name.removeprefix(GROUP)
            new = [other for other, spec in enumerate(specs) if spec.group == group and other != place]
            self._places |= {f"{NEW}{other}": other for other in new}
            old = jobs.seqs_matching(self._tx, jobs.Filter(group=group), 0, MAX_PARENTS + 1)
            found = [*(f"{NEW}{other}" for other in new), *map(str, old)]
            what = f"no job is of group {group!r}"
        elif (span := span_of(name)) is not None:
            found = [str(seq) for seq in jobs.seqs_matching(self._tx, _numbers(*span), 0, MAX_PARENTS + 1)]
            what = f"no job has a number in {name}"
        else:
            return [name]
        if not found:
            raise NotFound(what, hint="list them with: queuectl list; nothing was changed")
        return found

    def _refuse_cycles(self, specs: "Sequence[JobSpec]") -> None:
        """Refuse jobs of one batch that wait for each other in a circle, and show it."""
        ahead = {
            place: [self._places[parent.id] for parent in spec.after if parent.id in self._places]
            for place, spec in enumerate(specs)
            if spec.after
        }
        circle = find_cycle(ahead)
        if circle:
            raise _circle(
                [specs[place].given_id or f"the job in place {place + 1}" for place in circle], "; nothing was added"
            )

    def _checked(self, spec: "JobSpec") -> "JobSpec":
        known = self._known(spec)
        return spec if known == spec.after else spec.replace(after=known)

    def _known(self, spec: "JobSpec") -> "tuple[Parent, ...]":
        """Return the parents that are there, each once, or raise; one that is gone has ended, however."""
        found: dict[object, Parent] = {}
        for parent in spec.after:
            if parent.id in self._places or parent.id in self._outside:
                place = self._places.get(parent.id)
                other = found.setdefault(("new", place) if place is not None else self._outside[parent.id], parent)
                if other.kind is not parent.kind:
                    raise BadInput(f"{other.text} and {parent.text} are the same job", hint="leave out one of them")
            elif not _was_there(self._tx, parent.id):
                raise _no_parent(self._tx, spec, parent.id)
            elif parent.kind is not Kind.ANY:
                raise NotFound(
                    f"job {parent.id} is gone: nobody knows how it ended",
                    hint=f"leave it out, or say any:{parent.id} if it does not matter",
                )
        return tuple(found.values())

    @property
    def outside(self) -> set[int]:
        """The numbers of the parents that were there before."""
        return set(self._held)

    def link(self, seqs: "Sequence[int]") -> None:
        """Write who waits for whom, once the jobs are there."""
        tx = self._tx
        rows = [
            (child, self._number(parent, seqs), parent.kind)
            for child, spec in zip(seqs, self.specs, strict=True)
            for parent in spec.after
        ]
        edges.insert(tx, rows)
        edges.mark_parents(tx, sorted({parent for _, parent, _ in rows}))

    def tell(self) -> "list[Job]":
        """Tell them of the parents that have ended already; return those that are cancelled for it at once."""
        over = [job for _, job in sorted(self._held.items()) if job.state in FINAL]
        return answer(self._tx, [Ending(seq=job.seq, id=job.id, state=job.state) for job in over])

    def _number(self, parent: "Parent", seqs: "Sequence[int]") -> int:
        place = self._places.get(parent.id)
        return self._outside[parent.id] if place is None else seqs[place]


def rewire(tx: "Tx", job: "Job", after: "tuple[Parent, ...]") -> "Job":
    """Let a job that exists, and that the caller holds, run after others than before; return it as it is then."""
    edges.drop(tx, [job.seq])
    graph = Graph(tx, [JobSpec(after=after)])
    _refuse_circle(tx, job, graph.outside)
    graph.link([job.seq])
    waits_for = edges.recount(tx, job.seq)
    if waits_for:
        leave_line(tx, job)
        follow(tx, graph.tell())
    elif job.state is State.BLOCKED and moves.free(tx, [job.seq]):
        tx.wake()
    return jobs.get(tx, job.seq) or job


def leave_line(tx: "Tx", job: "Job") -> None:
    """Let a job that was ready, or waited for a time or a limit, wait for others instead."""
    if job.parked_for is not None:
        moves.unpark(tx, [job.seq])
    if job.parked_for is not None or job.state in _IN_LINE:
        moves.wait_again(tx, job.seq)
        tx.try_lock(job.limit_list)
        parking.left_line(tx, [job])


def reconsider(tx: "Tx", job: "Job") -> "Job":
    """Tell a job again how those ended that it waits for: it may make something else of it now."""
    parents = jobs.lock(tx, [edge.parent_seq for edge in edges.of_child(tx, job.seq)])
    edges.mend_child(tx, job.seq)
    over = [Ending(seq=parent.seq, id=parent.id, state=parent.state) for parent in parents if parent.state in FINAL]
    follow(tx, answer(tx, over))
    return jobs.get(tx, job.seq) or job


def _refuse_circle(tx: "Tx", job: "Job", parents: "set[int]") -> None:
    """Refuse to let a job run after one that itself runs after it, near or far."""
    reached_from: dict[int, int] = dict.fromkeys(parents, job.seq)
    edge = parents
    while edge and job.seq not in reached_from:
        steps = {each.parent_seq: each.child_seq for each in edges.between(tx, sorted(edge))}
        edge = steps.keys() - reached_from.keys()
        reached_from |= {parent: steps[parent] for parent in edge}
    if job.seq not in reached_from:
        return
    path = [job.seq]
    while len(path) == 1 or path[-1] != job.seq:
        path.append(reached_from[path[-1]])
    names = {each.seq: each.id for each in jobs.by_seqs(tx, path)}
    raise _circle([names.get(seq, str(seq)) for seq in reversed(path)])


def _circle(names: "Sequence[str]", end: str = "") -> BadInput:
    shown = names if len(names) <= SHOWN_OF_A_CYCLE else [*names[: SHOWN_OF_A_CYCLE - 1], "...", names[0]]
    return BadInput(
        f"jobs would wait for each other in a circle: {' -> '.join(shown)}",
        hint=f"each runs after the one its arrow points to; leave out one of them{end}",
    )


def find_cycle(ahead: "Mapping[Name, Sequence[Name]]") -> "list[Name]":
    """Return a circle among names that each point to others, its first again at its end; empty: there is none."""
    over: set[Name] = set()
    for start in ahead:
        if start in over:
            continue
        path: dict[Name, None] = {start: None}
        turns = [iter(ahead[start])]
        while turns:
            following = next(turns[-1], None)
            if following is None:
                turns.pop()
                over.add(path.popitem()[0])
            elif following in path:
                names = list(path)
                return [*names[names.index(following) :], following]
            elif following not in over:
                path[following] = None
                turns.append(iter(ahead.get(following, ())))
    return []


def _numbers(first: int, last: int) -> jobs.Filter:
    if first > last:
        raise BadInput(f"range {first}-{last} ends before it begins", hint=f"write {last}-{first}")
    return jobs.Filter(first=first, last=last)


def _no_parent(tx: "Tx", spec: "JobSpec", name: str) -> NotFound:
    missing = no_such_job(tx, name)
    what = f"{missing.message}, which {spec.given_id} is to run after" if spec.given_id is not None else missing.message
    return NotFound(what, hint=f"{missing.hint}; nothing was changed")


def _was_there(tx: "Tx", name: str) -> bool:
    """Whether a name is a number that was given out: its job was pruned or deleted."""
    return name != LATEST and name.isdigit() and 0 < int(name) <= tx.dialect.last_number("jobs", "seq")
