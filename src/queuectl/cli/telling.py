"""Telling: what a person at a terminal is told of jobs just added: what will run, after what, what is in its way."""

from queuectl.actions.liveness import serving
from queuectl.actions.submit import Fate
from queuectl.actions.unservable import start_command
from queuectl.actions.waiting import links_text
from queuectl.cli.text import note, range_text, short
from queuectl.model.needs import read_needs
from queuectl.model.units import counted
from queuectl.store import edges, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.submit import Entry
    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx
    from queuectl.store.workers import Worker


def tell(database: "Database", specs: "Sequence[JobSpec]", entries: "Sequence[Entry]") -> None:
    """On a terminal, say what will run and warn when nothing will run it."""

    def look(tx: "Tx") -> "tuple[list[str], list[Worker]]":
        names = {spec.queue for spec in specs}
        paused = [queue.name for queue in queues.all_queues(tx) if queue.paused_at and queue.name in names]
        return paused, serving(tx, names)

    added = [(spec, entry) for spec, entry in zip(specs, entries, strict=True) if entry.fate is Fate.ADDED]
    if not added:
        return
    specs = [spec for spec, _ in added]
    paused, found = database.read(look)
    if len(added) == 1:
        [(spec, entry)] = added
        begin = "held until released" if spec.hold else "will run"
        if spec.after:
            begin += f" after {_parents_text(database, entry.seq)}"
        note(f"{begin}: {short(spec.command or ' '.join(spec.argv or ()), 100)}")
    else:
        waiting = sum(1 for spec in specs if spec.after)
        span = range_text([entry.seq for _, entry in added])
        named = f" ({span})" if span else ""
        rest = f", {waiting} of them to run after others" if waiting else ""
        note(f"{counted(len(specs), 'job')} added{named}{rest}")
    for name in paused:
        note(f"warning: queue {name} is paused; resume it with: queuectl queue resume {name}")
    if not found and not all(spec.needs or spec.use for spec in specs):
        note("warning: no worker is running; start one with: queuectl worker start -d")
    if any(spec.needs or spec.use for spec in specs):
        _warn_of_needs(specs, found)


def _parents_text(database: "Database", seq: int) -> str:
    """Name the jobs that one runs after, with their states; those that are gone were not asked for."""
    return links_text(database.read(lambda tx: edges.parents_of(tx, seq))) or "jobs that are gone"


def _warn_of_needs(specs: "Sequence[JobSpec]", found: "list[Worker]") -> None:
    """Warn of what jobs need that none of the workers of their queue has."""
    for queue, text in dict.fromkeys((spec.queue, spec.needs_text) for spec in specs):
        if not text:
            continue
        needs = read_needs(text)
        able = [one.supply.could_take(needs) for one in found if one.queue_list is None or queue in one.queue_list]
        if not any(able) and (able or not found):
            note(f"warning: no running worker has {needs.words}; start one with: {start_command(queue, needs)}")
