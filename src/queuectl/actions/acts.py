"""Acts: doing something to jobs, to those named all or none, or to many at once. What each verb does is in verbs.py."""

import time

from queuectl.actions import pace, selection
from queuectl.actions.endings import hold_groups
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.states import State
from queuectl.model.units import counted, iso_text
from queuectl.model.value import Value
from queuectl.store import audit, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from queuectl.actions.selection import Selection
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

    OnOne = Callable[[Tx, Job], "Done"]

PAGE = 1000
SAMPLES = 3
MAX_DETAIL = 500
MAX_TARGET = 900
"""How many letters of what was meant go on record."""
MOST_LOCKED = 100


class Done(Value):
    """What an act did to one job: as it was, in a few words, and as it is now where that is more than its state."""

    job: "Job"
    note: str
    after: "Job | None" = None


class Act(Value):
    """A verb: what it does to one job, and which jobs it applies to where many are meant at once."""

    name: str
    done: str
    """What is said of the jobs it was done to."""
    states: frozenset[State]
    """Where it applies; jobs in another state are passed by."""
    unasked: frozenset[State] | None = None
    """Where it applies when neither numbers nor states were named; None means all of `states`."""
    on_one: "OnOne"
    takes_groups: bool = False
    """Whether a group may be named as a whole, as a job is: nobody is asked then."""
    before: "Callable[[Tx, Sequence[Job]], None] | None" = None
    """What is done to all of some jobs before it is done to each; where it is refused, it has written nothing."""
    limits: frozenset[str] = frozenset()
    """The limits it gives to jobs, by key, and what else is locked by name while it is done."""
    is_last: "Callable[[Job], bool] | None" = None
    """Of which jobs it is done after the others."""
    detail: "Callable[[Sequence[Done]], str] | None" = None
    """What more there is to put on record of what was done."""
    is_left_to_workers: bool = False
    """Whether the worker of a running job is told to do it."""

    def ordered(self, meant: "Sequence[Job]") -> "Sequence[Job]":
        """Return jobs in the order in which it is done to them."""
        return meant if self.is_last is None else sorted(meant, key=self.is_last)

    def words(self, done: "Sequence[Done]") -> str:
        """Return what more is put on record, in brackets, or nothing."""
        text = self.detail(done) if self.detail is not None else ""
        return f" ({text[:MAX_DETAIL]})" if text else ""


class Chosen(Value):
    """The jobs an act is for: fixed before it begins, so that jobs which come later are not touched."""

    act: Act
    selection: "Selection"
    seqs: tuple[int, ...]
    """Those it applies to, oldest first."""
    states: frozenset[State]
    """The states in which it may meet them."""
    counts: "dict[State, int]"
    """How many of these are in each state."""
    passed: "dict[State, int]"
    """How many others were meant, by the state that keeps them from it."""
    samples: tuple[str, ...]
    """What the first few are called."""


class Tally(Value):
    """What an act on many jobs came to."""

    count: int
    passed: "dict[State, int]"
    held: int = 0
    """How many of those it was done to a worker had: it is told, and does it where the run has not ended by then."""


class _Undo(Exception):
    """Carries what would have been done out of a transaction that is undone."""

    def __init__(self, done: list[Done]) -> None:
        self.done = done


def act_on_each(
    database: "Database", ids: "Sequence[str]", act: Act, *, who: str, is_trial: bool = False
) -> list[Done]:
    """Find jobs by id and act on each, all or none; a trial says what would be done and changes nothing."""

    def work(tx: "Tx") -> list[Done]:
        # All are looked up before any is touched: a job may be named twice, by id, number and `last`.
        named: dict[int, str] = {}
        for job_id in ids:
            named.setdefault(selection.seq_of(tx, job_id), job_id)
        lock_ahead(tx, list(named), act.limits)
        # Locked by number, whatever the order typed: two people with the same jobs must not wait for each other.
        locked = {job.seq: job for job in jobs.lock(tx, list(named))}
        meant = [_still_there(locked, seq, job_id) for seq, job_id in named.items()]
        try:
            _prepare(tx, act, meant)
            made = {job.seq: act.on_one(tx, job) for job in act.ordered(meant)}
            done = [made[seq] for seq in named]
        except Refused as error:
            if len(named) == 1:
                raise
            raise Refused(error.message, hint=f"{error.hint}; none of the {len(named)} jobs was changed") from None
        if is_trial:
            raise _Undo(done)
        audit.record(tx, who, act.name, ",".join(ids)[:1000] + act.words(done), len(done))
        tx.tell()
        return done

    try:
        return database.write(work)
    except _Undo as trial:
        return trial.done


def choose(database: "Database", act: Act, wanted: "Selection") -> Chosen:
    """Find the jobs an act is for: which it applies to and which it passes by."""
    applies = act.states
    if wanted.wanted.states:
        applies = act.states & frozenset(wanted.wanted.states)
    elif act.unasked is not None and not wanted.names:
        applies = act.unasked

    def look(tx: "Tx") -> Chosen:
        found = selection.states(tx, wanted)
        seqs = tuple(seq for seq, state in found if state in applies)
        return Chosen(
            act=act,
            selection=wanted,
            seqs=seqs,
            states=applies,
            counts=_counted(state for _, state in found if state in applies),
            passed=_counted(state for _, state in found if state not in applies),
            samples=tuple(job.id for job in jobs.by_seqs(tx, seqs[:SAMPLES])),
        )

    return database.read(look)


def act_on_many(
    database: "Database", chosen: Chosen, *, who: str, sleep: "Callable[[float], object]" = time.sleep
) -> Tally:
    """Act on chosen jobs, a page per transaction and rests between so that no writer waits long; each is on record.

    A job that has moved on since it was chosen is passed by, as is one the act is refused for.
    """
    count, held, passed = 0, 0, dict(chosen.passed)
    began: float | None = None
    starts = range(0, len(chosen.seqs), PAGE)
    for start in reversed(starts) if chosen.act.before is not None else starts:  # those that wait come after the others
        page = chosen.seqs[start : start + PAGE]
        if began is not None:
            pace.rest(began, sleep)
        began = time.monotonic()

        def work(tx: "Tx", page: "Sequence[int]" = page) -> tuple[list[Done], dict[State, int]]:
            done: list[Done] = []
            left = []
            lock_ahead(tx, page, chosen.act.limits)
            locked = jobs.lock(tx, page)
            fit = {job.seq for job in locked if job.state in chosen.states and chosen.selection.wanted.means(job)}
            together = _prepared(tx, chosen.act, [job for job in locked if job.seq in fit])
            for job in chosen.act.ordered(locked):
                try:
                    if job.seq in fit:
                        if not together:
                            _prepare(tx, chosen.act, [job])
                        done.append(chosen.act.on_one(tx, job))
                        continue
                except (Refused, BadInput):
                    pass
                left.append(job.state)
            which = f"{page[0]} to {page[-1]}: {described(chosen.selection)}{chosen.act.words(done)}"
            audit.record(tx, who, chosen.act.name, which, len(done))
            tx.tell()
            return done, _counted(left)

        done, left = database.write(work)
        count += len(done)
        held += sum(chosen.act.is_left_to_workers and one.job.state == State.PROCESSING for one in done)
        for state, number in left.items():
            passed[state] = passed.get(state, 0) + number
    return Tally(count=count, passed=passed, held=held)


def refuse_more(count: int, most: int | None) -> None:
    """Refuse to act on more jobs than were agreed to; None: any number was."""
    if most is not None and count > most:
        raise Refused(
            f"{counted(count, 'job')} would be acted on, more than max {most}", hint="look again with dry_run"
        )


def _prepare(tx: "Tx", act: Act, meant: "Sequence[Job]") -> None:
    if act.before is not None:
        with tx.part():
            act.before(tx, meant)


def _prepared(tx: "Tx", act: Act, meant: "Sequence[Job]") -> bool:
    """Do what is done to all before; False means that it was refused, and each is to be tried by itself."""
    try:
        _prepare(tx, act, meant)
    except Refused:
        return False
    return True


def lock_ahead(tx: "Tx", seqs: "Sequence[int]", given: "frozenset[str]" = frozenset()) -> None:
    """Lock the limits that jobs name, and are given, and their groups, before they are changed.

    Who lets the next ones go must see those that are being parked, and who deletes a limit those that are given it.
    Of too many none is locked; then a job may stay parked until a supervisor finds it, seconds later.
    """
    keys = jobs.limits_named(tx, seqs) | given
    tx.lock(keys if len(keys) <= MOST_LOCKED else given)
    hold_groups(tx, jobs.groups_named(tx, seqs))


def described(wanted: "Selection") -> str:
    """Say which jobs are meant, in the words of the command line."""
    return " ".join([*wanted.names, *words_of(wanted.wanted)])[:MAX_TARGET] or "--all"


def words_of(filter_: jobs.Filter) -> list[str]:
    """Return a filter in the words of the command line."""
    return [
        *([f"--state {','.join(filter_.state_names)}"] if filter_.states else []),
        *([f"--queue {filter_.queue}"] if filter_.queue is not None else []),
        *([f"--group {filter_.group}"] if filter_.group is not None else []),
        *(f"--tag {tag}" for tag in filter_.tags),
        *([f"--command {filter_.text!r}"] if filter_.text is not None else []),
        *([f"--error {filter_.error!r}"] if filter_.error is not None else []),
        *([f"--since {iso_text(filter_.since)}"] if filter_.since is not None else []),
        *([f"--until {iso_text(filter_.until)}"] if filter_.until is not None else []),
        *([f"--ended-since {iso_text(filter_.ended_since)}"] if filter_.ended_since is not None else []),
    ]


def _still_there(locked: "dict[int, Job]", seq: int, job_id: str) -> "Job":
    if seq not in locked:
        raise NotFound(f"no job {job_id!r}", hint="it was removed just now")
    return locked[seq]


def _counted(found: "Iterable[str]") -> "dict[State, int]":
    counts: dict[str, int] = {}
    for state in found:
        counts[state] = counts.get(state, 0) + 1
    return {State(state): number for state, number in counts.items()}
