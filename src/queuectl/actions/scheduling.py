"""Scheduling: what a person does with schedules. Each act is on record, and workers that sleep learn of it."""

from queuectl.actions.schedule import fire
from queuectl.actions.submit import refuse_unknown_limits
from queuectl.errors import BadInput, NotFound, Refused, did_you_mean
from queuectl.model.asked import edited_schedule, job_spec, new_schedule, paused, resumed
from queuectl.model.cron import UTC_NAME, check_zone
from queuectl.model.schedule import Overlap, check_schedule_name
from queuectl.model.units import SECOND_MS
from queuectl.store import audit, schedules
from queuectl.system.zone import zone_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queuectl.model.schedule import Schedule
    from queuectl.store.database import Database, Tx

    Fields = Mapping[str, object]
    Edit = Callable[[Schedule], tuple[Fields, Fields]]


def add(database: "Database", name: str, asked: "Fields", job: "Fields", *, who: str) -> "Schedule":
    """Add a schedule; `asked` says when and by which rules, `job` what, as `enqueue` takes it."""
    check_schedule_name(name)

    def work(tx: "Tx") -> "Schedule":
        schedule = new_schedule(name, asked, job, zone=local_zone(), now=tx.now)
        _refuse_missing_limits(tx, schedule, "added")
        if not schedules.insert(tx, schedule):
            raise Refused(
                f"schedule {name!r} exists already",
                hint=f"change it with: queuectl schedule edit {name}; nothing was added",
            )
        audit.record(tx, who, "schedule add", f"{name} ({schedule.rhythm.text} {schedule.tz})", 1)
        tx.wake()
        return schedule

    return database.write(work)


def edit(database: "Database", name: str, change: "Edit", *, who: str) -> "tuple[Schedule, Schedule]":
    """Change a schedule and return it as it was and as it is; `change` says what, having seen it.

    Jobs it has fired stay as they are.
    """

    def work(tx: "Tx") -> "tuple[Schedule, Schedule]":
        before = _locked(tx, name)
        asked, job = change(before)
        after = edited_schedule(before, asked, job, now=tx.now)
        if after != before:
            _refuse_missing_limits(tx, after, "changed")
            schedules.update(tx, after)
            audit.record(tx, who, "schedule edit", f"{name} ({', '.join(_differing(before, after))})", 1)
            tx.wake()
        return before, after

    return database.write(work)


def pause(database: "Database", names: "Sequence[str]", *, who: str) -> list[str]:
    """Let schedules rest, all or none, and return those that did not yet; their jobs go on."""
    return _each(database, names, "schedule pause", lambda each: each.paused_at is None, paused, who)


def resume(database: "Database", names: "Sequence[str]", *, who: str) -> list[str]:
    """Let schedules go on, all or none, and return those that rested; what came meanwhile is left out, not missed."""
    return _each(database, names, "schedule resume", lambda each: each.paused_at is not None, resumed, who)


def remove(database: "Database", names: "Sequence[str]", *, who: str) -> list[str]:
    """Remove schedules, all or none, and return their names; their jobs stay."""

    def work(tx: "Tx") -> list[str]:
        found = [schedule.name for schedule in _all_locked(tx, names)]
        for name in found:
            schedules.delete(tx, name)
        audit.record(tx, who, "schedule remove", ",".join(found)[:1000], len(found))
        return found

    return database.write(work)


def run_now(database: "Database", name: str, *, who: str) -> int:
    """Fire a schedule now and return the number of the job; its next instant comes all the same."""

    def work(tx: "Tx") -> int:
        schedule = _locked(tx, name)
        if schedule.overlap is Overlap.SKIP and (earlier := schedules.unfinished(tx, name)):
            raise Refused(
                f"job {earlier[-1]} of schedule {name} is not over, and it skips then",
                hint=f"wait for it: queuectl wait {earlier[-1]}; or: queuectl schedule edit {name} --overlap allow",
            )
        instant = tx.now
        while True:
            instant += instant % SECOND_MS == 0  # whole seconds are those of the rhythm
            if not schedules.is_on_record(tx, name, instant):
                break
            instant += 1
        seq = fire(tx, schedule, instant, is_manual=True)
        if seq is None:
            raise Refused(
                f"schedule {name} got no job: another has its key", hint=f"see: queuectl schedule show {name}"
            )
        audit.record(tx, who, "schedule run", f"{name} (job {seq})", 1)
        return seq

    return database.write(work)


def found(tx: "Tx", name: str) -> "Schedule":
    """Return a schedule, or raise with the nearest name."""
    schedule = schedules.get(tx, name)
    if schedule is None:
        raise unknown_schedule(tx, name)
    return schedule


def unknown_schedule(tx: "Tx", name: str) -> NotFound:
    """Return the error for a schedule that is not there; names the nearest that is."""
    meant = did_you_mean(name, schedules.names(tx))
    return NotFound(f"no schedule {name!r}{meant}", hint="list them with: queuectl schedule list")


def local_zone() -> str:
    """Return the zone of whoever asks, as far as their host says it, else UTC."""
    for name in zone_names():
        try:
            return check_zone("zone", name)
        except BadInput:
            continue
    return UTC_NAME


def _locked(tx: "Tx", name: str) -> "Schedule":
    schedule = schedules.lock(tx, name)
    if schedule is None:
        raise unknown_schedule(tx, name)
    return schedule


def _all_locked(tx: "Tx", names: "Sequence[str]") -> "list[Schedule]":
    """Lock schedules in the order of their names: two people with the same ones must not wait for each other."""
    return [_locked(tx, name) for name in sorted(set(names))]


def _each(
    database: "Database",
    names: "Sequence[str]",
    action: str,
    applies: "Callable[[Schedule], bool]",
    changed: "Callable[[Schedule, int], Schedule]",
    who: str,
) -> list[str]:
    def work(tx: "Tx") -> list[str]:
        meant = [schedule for schedule in _all_locked(tx, names) if applies(schedule)]
        for schedule in meant:
            schedules.update(tx, changed(schedule, tx.now))
        done = [schedule.name for schedule in meant]
        audit.record(tx, who, action, ",".join(done or names)[:1000], len(done))
        tx.wake()
        return done

    return database.write(work)


def _refuse_missing_limits(tx: "Tx", schedule: "Schedule", what: str) -> None:
    spec = job_spec(schedule, tx.now, tx.now)
    if spec.limits:
        refuse_unknown_limits(tx, spec.limit_keys, what)


def _differing(before: "Schedule", after: "Schedule") -> list[str]:
    """Return the names of what changed, without values: those of a job may be secrets."""
    skipped = ("job", "next_instant", "next_at", "updated_at")
    own = [name for name in before.FIELDS if name not in skipped and getattr(before, name) != getattr(after, name)]
    old, new = before.fields, after.fields
    return [*own, *(name for name in {**old, **new} if old.get(name) != new.get(name))]
