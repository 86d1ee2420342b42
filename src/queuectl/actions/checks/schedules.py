"""Checks of schedules: whether somebody is there to fire them, and whether their jobs can be added."""

from queuectl.model.finding import ok, warning
from queuectl.model.schedule import GRACE_MS, FireOutcome
from queuectl.model.units import counted, rough_duration_text
from queuectl.store import schedules as rows
from queuectl.store.workers import SUPERVISOR
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding
    from queuectl.store.database import Tx

NAMED = 5
LATE_MS = 5_000


def schedules(case: "Case") -> "Iterator[Finding]":
    """Whether schedules are due that nobody fires, and whether the last one of some got no job."""

    def look(tx: "Tx") -> "tuple[int, list[str], int | None, list[tuple[str, str]]]":
        known = rows.all_schedules(tx)
        last = [(each.name, fire.fire) for each in known for fire in rows.fires(tx, each.name, 1)]
        refused = [(name, fire.why or "") for name, fire in last if fire.outcome is FireOutcome.REFUSED]
        return len(known), rows.overdue(tx, tx.now - LATE_MS), rows.next_at(tx), refused

    count, overdue, next_at, refused = case.store.read(look)
    has_ticker = any(
        worker.kind == SUPERVISOR and case.pulses[worker.id] is not Pulse.DEAD for worker in case.fleet.workers
    )
    if overdue:
        late = rough_duration_text(case.fleet.now - (next_at or case.fleet.now))
        names = ", ".join(overdue[:NAMED]) + (" and more" if len(overdue) > NAMED else "")
        if has_ticker:
            yield warning(
                f"schedules are due for {late} although workers run: {names}",
                "look at the log of the workers; the clock of the database may have jumped",
            )
        else:
            yield warning(
                f"no worker is running to fire what has been due for {late}: {names}",
                f"start one: queuectl worker start -d; what is more than {GRACE_MS // 1000} s late, or later than the "
                "instant after it, was missed and follows the misfire rule of each",
            )
    for name, why in refused[:NAMED]:
        yield warning(f"schedule {name} got no job the last time: {why}", f"queuectl schedule edit {name} ...")
    if not overdue and not refused:
        yield ok(f"{counted(count, 'schedule')}, none waits to be fired")
