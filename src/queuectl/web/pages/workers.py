"""The page of the workers: who they are, what each runs and what that takes, grouped by the start they came from."""

import os

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions.fleet import load_of, state_of
from queuectl.actions.liveness import can_see_tree, lock_of, serving
from queuectl.model.needs import amount_text
from queuectl.model.value import Value
from queuectl.store import claims, workers
from queuectl.store.workers import Worker
from queuectl.system.liveness import SUFFIX, read_note
from queuectl.system.usage import Meter, Usage
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader
from queuectl.web.words import size, took

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.fleet import Load
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

SHOWN = 20
"""How many commands of one worker are listed; the others are counted."""
ENDED_SHOWN = 100
MOST_LOOKED_AT = 500
METER = Meter()

router = APIRouter()


class Running(Value):
    """A command that runs, and what it takes, as far as that can be seen from here."""

    job: "Job"
    usage: Usage | None = None

    @property
    def words(self) -> str:
        """What it takes, in words."""
        return "" if self.usage is None else usage_words(self.usage)


class Man(Value):
    """A worker as a row of the page."""

    worker: Worker
    state: str
    is_here: bool
    """Whether its commands are processes of this host, that can be looked at."""
    count: int
    """How many commands it runs."""
    commands: tuple[Running, ...]
    """The first of them."""
    resources: tuple[str, ...]

    @property
    def queues(self) -> list[str]:
        """The queues it serves, each with its weight where it has one."""
        weights = self.worker.weight_map
        return [f"{name}:{weights[name]}" if name in weights else name for name in self.worker.queue_list or ()]


class Crew(Value):
    """The workers of one start, and the supervisor that keeps them."""

    supervisor: Worker | None
    state: str
    members: tuple[Man, ...]

    @property
    def key(self) -> str:
        """What tells it from the others."""
        return self.supervisor.id if self.supervisor else self.members[0].worker.id

    @property
    def ids(self) -> list[str]:
        """The processes that are told to stop with it."""
        return [*([self.supervisor.id] if self.supervisor else ()), *(one.worker.id for one in self.members)]

    @property
    def count(self) -> int:
        """How many commands its workers run."""
        return sum(one.count for one in self.members)


class Fleet(Value):
    """All that the page shows."""

    crews: tuple[Crew, ...]
    ended: tuple[Worker, ...]
    now: int
    running: int
    """How many commands run in all, also of workers that are gone."""

    @property
    def men(self) -> list[Man]:
        """The living workers of all starts."""
        return [one for crew in self.crews for one in crew.members]


@router.get("/workers")
def show(request: Request, stores: Given, _visitor: Reader, ended: str = "", queue: str = "") -> HTMLResponse:
    """Show every worker, or those that serve a queue."""
    fleet = stores.read(lambda tx: look(tx, with_ended=bool(ended), queue=queue or None))
    return render(
        request,
        "workers.html",
        title="Workers",
        command="queuectl worker list --all" if ended else "queuectl worker list",
        fleet=fleet,
        shown=SHOWN,
        with_ended=bool(ended),
        queue=queue,
    )


@router.get("/workers/usage")
def show_usage(stores: Given, _visitor: Reader) -> dict[str, object]:
    """Say what the running commands of this home take now, by the numbers of their jobs; the store is not asked."""
    run = stores.target.home.run
    try:
        names = [name for name in os.listdir(run) if name.endswith(SUFFIX)]
    except OSError:
        names = []
    leaders = {leader.seq: leader.pid for name in names for leader in read_note(os.path.join(run, name)).leaders}
    usages = METER.look(list(leaders.values())[:MOST_LOOKED_AT])
    return {"usage": {str(seq): usage_words(usages[pid]) for seq, pid in leaders.items() if pid in usages}}


def usage_words(usage: Usage) -> str:
    """Say what a command takes: a share of a core since the last look, or CPU time where there was none before."""
    busy = took(usage.cpu_ms) if usage.cores is None else f"{usage.cores * 100:.0f} %"
    return f"CPU {busy} · {size(usage.memory_bytes)}"


def look(tx: "Tx", *, with_ended: bool, queue: str | None = None) -> Fleet:
    """Read the workers and what they run; of one queue those that serve it."""
    chosen = None if queue is None else {row.id for row in serving(tx, [queue])}
    rows = [row for row in workers.live(tx) if chosen is None or row.id in chosen or row.kind == workers.SUPERVISOR]
    running: dict[str, list[Job]] = {}
    for claim in (held := claims.running(tx)):
        running.setdefault(claim.job.worker_id or "", []).append(claim.job)
    men = _men(tx, [row for row in rows if row.kind == workers.WORKER], running)
    supervisors = {row.id: row for row in rows if row.kind == workers.SUPERVISOR}
    crews = [
        Crew(
            supervisor=supervisor,
            state=state_of(supervisor, tx.dialect),
            members=tuple(one for one in men if one.worker.supervisor_id == supervisor.id),
        )
        for supervisor in supervisors.values()
    ]
    if chosen is not None:
        crews = [crew for crew in crews if crew.members]
    alone = [one for one in men if one.worker.supervisor_id not in supervisors]
    crews += [Crew(supervisor=None, state=one.state, members=(one,)) for one in alone]
    ended = [row for row in workers.newest(tx, ENDED_SHOWN) if row.state != workers.LIVE] if with_ended else []
    return Fleet(crews=tuple(crews), ended=tuple(ended), now=tx.now, running=len(held))


def _men(tx: "Tx", rows: "Sequence[Worker]", running: "dict[str, list[Job]]") -> list[Man]:
    load = load_of(tx, rows)
    leaders = {
        leader.seq: leader.pid
        for row in rows
        if can_see_tree(row)
        for leader in read_note(lock_of(row, tx.dialect)).leaders
    }
    shown = {row.id: sorted(running.get(row.id, ()), key=lambda job: job.seq)[:SHOWN] for row in rows}
    wanted = [leaders[job.seq] for found in shown.values() for job in found if job.seq in leaders]
    usages = METER.look(wanted)
    return [
        Man(
            worker=row,
            state=state_of(row, tx.dialect),
            is_here=can_see_tree(row),
            count=len(running.get(row.id, ())),
            commands=tuple(Running(job=job, usage=usages.get(leaders.get(job.seq, 0))) for job in shown[row.id]),
            resources=tuple(_resources(row, load)),
        )
        for row in rows
    ]


def _resources(row: Worker, load: "Load") -> list[str]:
    taken = load.used.get(row.id, {})
    return [
        f"{name} {amount_text(taken.get(name, 0))}/{amount_text(total)}" for name, total in row.supply.resources.items()
    ]
