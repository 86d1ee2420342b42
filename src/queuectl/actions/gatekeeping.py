"""Gatekeeping: what a person sets for queues and named limits. Each act is on record and in force for the next claim.

Pausing and resuming are in control.py.
"""

from queuectl.errors import NotFound, Refused, did_you_mean
from queuectl.model.checks import as_whole
from queuectl.model.limits import LIMIT, MAX_SLOTS
from queuectl.model.queue import queue_columns, queue_settings_shape
from queuectl.model.states import State
from queuectl.model.units import counted, duration_text
from queuectl.model.value import Value
from queuectl.store import audit, jobs, limits, parking, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.queue import Queue
    from queuectl.store.database import Database, Tx

NAMED = 5


class QueueSet(Value):
    """What setting something for a queue came to."""

    queue: "Queue"
    is_new: bool
    changes: "dict[str, tuple[int | float | str | None, int | float | str | None]]"
    """What each setting that differs was and is, as JSON has them."""


class LimitSet(Value):
    """What setting a limit came to."""

    name: str
    slots: int
    before: int | None
    """None means that it is new."""
    released: int
    """How many jobs that waited for it are back in the line."""


def set_queue(database: "Database", name: str, fields: "Mapping[str, object]", *, who: str) -> QueueSet:
    """Set some of concurrency, rate, timeout, max_retries and priority for a queue; None takes one back.

    A queue that is not there is made. Timeout, retries and priority are given to jobs when they are added: those that
    are there keep theirs. Running jobs go on, also where fewer may run from now on.
    """
    columns = queue_columns(fields)

    def work(tx: "Tx") -> QueueSet:
        # As a claim does, which moves the next permitted start on: it must not write that of a rate that is gone.
        tx.lock([f"queue:{name}"])
        before = queues.get(tx, name)
        queues.create(tx, name)
        queues.change(tx, name, columns)
        after = queues.get(tx, name)
        assert after is not None
        changes = _changes(before or after.replace(**dict.fromkeys(queues.SETTABLE)), after)
        audit.record(tx, who, "queue set", f"{name}{_on_record(changes)}", int(bool(changes)))
        if changes:
            tx.wake()
        return QueueSet(queue=after, is_new=before is None, changes=changes)

    return database.write(work)


def delete_queue(database: "Database", name: str, *, who: str) -> None:
    """Remove a queue that holds no job, with all that was set for it; refused otherwise.

    `default` may go, too: like any other, it is there again with the next job that names it.
    """

    def look(tx: "Tx") -> None:
        if queues.get(tx, name) is None:
            raise unknown_queue(tx, name)
        held = jobs.counts(tx).get(name, {})
        if held:
            raise Refused(
                f"queue {name} holds {counted(sum(held.values()), 'job')}: {_by_state(held)}",
                hint=f"remove them: queuectl delete --queue {name}; or stop it: queuectl queue pause {name}",
            )

    def work(tx: "Tx") -> None:
        tx.dialect.keep_out("lanes")
        look(tx)
        queues.delete(tx, name)
        audit.record(tx, who, "queue delete", name, 1)

    database.read(look)  # counting takes a while where there are many jobs: whoever is refused keeps nobody out
    database.write(work)


def set_limit(database: "Database", name: str, slots: object, *, who: str) -> LimitSet:
    """Make a limit or give it another number; with 0, no job that names it starts. Running jobs go on."""
    number = as_whole("slots", slots, 0, MAX_SLOTS)
    key = LIMIT + name

    def work(tx: "Tx") -> LimitSet:
        tx.lock([key])
        before = limits.get(tx, name)
        limits.put(tx, name, number)
        was = None if before is None else before.slots
        audit.record(tx, who, "limit set", f"{name} {_slots_text(was)} -> {number}", int(was != number))
        released = parking.release(tx, [key])
        return LimitSet(name=name, slots=number, before=was, released=released)

    return database.write(work)


def delete_limit(database: "Database", name: str, *, who: str) -> None:
    """Remove a limit; refused while a job that is not over names it."""
    key = LIMIT + name

    def work(tx: "Tx") -> None:
        tx.lock([key])
        if limits.get(tx, name) is None:
            raise unknown_limit(tx, name)
        if users := limits.users(tx, key, NAMED + 1):
            more = " and more" if len(users) > NAMED else ""
            raise Refused(
                f"limit {name} is named by jobs that are not over: {', '.join(users[:NAMED])}{more}",
                hint=f"let them end, or cancel them; to hold nothing back: queuectl limit set {name} {MAX_SLOTS}",
            )
        limits.drop(tx, name)
        audit.record(tx, who, "limit delete", name, 1)

    database.write(work)


def unknown_queue(tx: "Tx", name: str) -> NotFound:
    """Return the error for a queue that is not there; names the nearest that is."""
    meant = did_you_mean(name, [queue.name for queue in queues.all_queues(tx)])
    return NotFound(f"no queue {name!r}{meant}", hint="list them with: queuectl queue list")


def unknown_limit(tx: "Tx", name: str) -> NotFound:
    """Return the error for a limit that is not there; names the nearest that is."""
    meant = did_you_mean(name, [limit.name for limit in limits.all_limits(tx)])
    return NotFound(f"no limit {name!r}{meant}", hint="list them with: queuectl limit list")


def setting_text(name: str, value: object) -> str:
    """Write what is set for a queue as people do: `none`, `5m`, `10/m`."""
    if value is None:
        return "none"
    if name == "timeout" and isinstance(value, float):
        return duration_text(round(value * 1000)) if value else "0 (never stopped)"
    return str(value)


def _changes(before: "Queue", after: "Queue") -> "dict[str, tuple[int | float | str | None, int | float | str | None]]":
    old, new = queue_settings_shape(before), queue_settings_shape(after)
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}


def _on_record(changes: "Mapping[str, tuple[object, object]]") -> str:
    words = [f"{name} {setting_text(name, old)} -> {setting_text(name, new)}" for name, (old, new) in changes.items()]
    return f" ({', '.join(words)})" if words else ""


def _slots_text(slots: int | None) -> str:
    return "none" if slots is None else str(slots)


def _by_state(held: "Mapping[State, int]") -> str:
    return ", ".join(f"{number:,} {state}" for state, number in sorted(held.items()))
