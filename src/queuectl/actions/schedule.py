"""Schedule: firing what is due. Anybody may tick, as often as they like: each instant is dealt with once.

The row of the schedule is locked, the fire written under a key of schedule and instant, the job added and the next
instant planned, all in one transaction; whoever is killed in the middle has done nothing. Each of many instants that
were missed has a transaction of its own, and meanwhile other schedules have their turn.
"""

from queuectl.actions import verbs
from queuectl.actions.endings import follow
from queuectl.actions.submit import Fate
from queuectl.actions.submit import add as add_jobs
from queuectl.errors import BadInput, Refused
from queuectl.model.asked import job_spec
from queuectl.model.schedule import Fire, FireOutcome, Overlap, what_is_due
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store import jobs, moves, parking, schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.schedule import Due, Schedule
    from queuectl.store.database import Database, Tx

MOST_AT_ONCE = 20
"""After so many transactions a supervisor looks at its workers, and comes back at once if more is due."""
LEFT_MS = 30_000
WHO = "schedule {}"
REPLACED_WORDS = "cancelled before it ran: replaced by a newer job of schedule {}"


class Tick(Value):
    """What one look at the schedules brought."""

    fired: int
    """How often a schedule was due and dealt with."""
    notes: tuple[str, ...] = ()
    """What went wrong, a sentence each."""


class _NoJob(Exception):
    """Carries a schedule whose job cannot be added out of the transaction, and why."""

    def __init__(self, schedule: "Schedule", due: "Due", why: str) -> None:
        super().__init__(why)
        self.schedule = schedule
        self.due = due
        self.why = why


class _NoTime(Exception):
    """Carries a schedule whose instants cannot be computed here out of the transaction, and why."""

    def __init__(self, schedule: "Schedule", why: str) -> None:
        super().__init__(why)
        self.schedule = schedule
        self.why = why


def tick(database: "Database", most: int = MOST_AT_ONCE) -> Tick:
    """Fire the schedules whose time has come, the longest due first, each instant in a transaction of its own."""
    notes: list[str] = []
    for fired in range(most):
        try:
            if not database.write(_fire_due):
                return Tick(fired=fired, notes=tuple(notes))
        except _NoJob as error:
            database.write(lambda tx, error=error: _pass_by(tx, error))  # type: ignore[misc]
            notes.append(f"schedule {error.schedule.name}: no job for it: {error.why}")
        except _NoTime as error:
            database.write(lambda tx, error=error: _leave(tx, error))  # type: ignore[misc]
            notes.append(f"schedule {error.schedule.name} is left for another host: {error.why}")
    return Tick(fired=most, notes=tuple(notes))


def fire(tx: "Tx", schedule: "Schedule", instant: int, *, missed: int = 0, is_manual: bool = False) -> int | None:
    """Deal with one instant of a schedule the caller has locked; return the number of its job.

    None means that it was dealt with before, or gets none: an earlier job is not over, or another has its key.
    """
    spec = job_spec(schedule, instant, tx.now)
    earlier = schedules.unfinished(tx, schedule.name) if schedule.overlap in (Overlap.SKIP, Overlap.REPLACE) else []
    fired = Fire(
        schedule=schedule.name,
        instant=instant,
        outcome=FireOutcome.FIRED,
        is_manual=int(is_manual),
        fired_at=tx.now,
        missed=missed,
    )
    if earlier and schedule.overlap is Overlap.SKIP:
        why = f"job {earlier[-1]} is not over"
        schedules.record(tx, fired.replace(outcome=FireOutcome.SKIPPED, why=why))
        return None
    if not schedules.record(tx, fired):
        return None
    stopped = _stop(tx, schedule.name, earlier, spec.limit_keys) if earlier else []
    # By the settings of the store alone: who fires it must make no difference.
    [entry] = add_jobs(tx, [spec], who=WHO.format(schedule.name))
    outcome = FireOutcome.SKIPPED if entry.fate is Fate.SKIPPED else FireOutcome.FIRED
    job_seq = None if entry.fate is Fate.SKIPPED else entry.seq
    schedules.note_job(tx, fired.replace(outcome=outcome, job_seq=job_seq, why=entry.note))
    schedules.note_replaced(tx, schedule.name, [seq for seq in stopped if seq != entry.seq], entry.seq)
    return job_seq


def _fire_due(tx: "Tx") -> bool:
    """Deal with the schedule that has been due for longest; False means that none is."""
    schedule = schedules.take_due(tx)
    if schedule is None:
        return False
    try:
        due = what_is_due(schedule, tx.now)
        planned = _behind_others(schedule.planned(due.last), tx.now)
    except BadInput as error:
        raise _NoTime(schedule, error.message) from error
    _give_up(tx, schedule, due)
    if due.instant is not None:
        try:
            fire(tx, schedule, due.instant, missed=due.missed_before)
        except (BadInput, Refused) as error:
            raise _NoJob(schedule, due, error.message) from error
    schedules.update(tx, planned)
    return True


def _behind_others(planned: "Schedule", now: int) -> "Schedule":
    """Return a schedule with more that is due as one that is due only now: others that are due come before."""
    if planned.next_at is None or planned.next_at > now:
        return planned
    return planned.replace(next_at=now)


def _give_up(tx: "Tx", schedule: "Schedule", due: "Due") -> None:
    """Put on record, in one row, what nobody was there for and what the rule for that leaves out."""
    if due.given_up is not None:
        given_up = Fire(
            schedule=schedule.name,
            instant=due.given_up,
            outcome=FireOutcome.MISSED,
            is_manual=0,
            fired_at=tx.now,
            missed=due.given_up_before,
            why="nobody was there to fire it",
        )
        schedules.record(tx, given_up)


def _leave(tx: "Tx", error: _NoTime) -> None:
    """Let others come before a schedule whose zone is not known here; whoever can read it may fire it then."""
    schedule = schedules.lock(tx, error.schedule.name)
    if schedule is not None and schedule == error.schedule:
        schedules.update(tx, schedule.replace(next_at=tx.now + LEFT_MS))


def _pass_by(tx: "Tx", error: _NoJob) -> None:
    """Put on record why an instant got no job, and go on with the next; nothing where somebody dealt with it."""
    schedule = schedules.lock(tx, error.schedule.name)
    if schedule is None or schedule != error.schedule:
        return
    _give_up(tx, schedule, error.due)
    refused = Fire(
        schedule=schedule.name,
        instant=error.due.last,
        outcome=FireOutcome.REFUSED,
        is_manual=0,
        fired_at=tx.now,
        missed=error.due.missed_before,
        why=error.why,
    )
    schedules.record(tx, refused)
    schedules.update(tx, _behind_others(schedule.planned(error.due.last), tx.now))


def _stop(tx: "Tx", name: str, seqs: "list[int]", keys: "list[str]") -> list[int]:
    """Cancel earlier jobs, also running ones, and return those that were not over.

    The mutex they share keeps the new one waiting until they are gone.
    """
    tx.lock({*jobs.limits_named(tx, seqs), *keys})
    unfinished = [job for job in jobs.lock(tx, seqs) if job.state not in FINAL]
    for job in unfinished:
        if job.state is State.PROCESSING:
            verbs.CANCEL.on_one(tx, job)
            continue
        cancelled = moves.cancel(tx, [job.seq], REPLACED_WORDS.format(name))
        parking.left_line(tx, [job])
        follow(tx, cancelled)
    return [job.seq for job in unfinished]
