"""Checks of workers, their jobs and queues: who should be at work and is not, and what is left of those gone."""

from queuectl import __version__
from queuectl.actions.liveness import can_see_tree, store_mark
from queuectl.actions.unservable import unservable
from queuectl.model.finding import error, ok, warning
from queuectl.model.states import State
from queuectl.model.units import counted, rough_duration_text
from queuectl.store import claims
from queuectl.store import workers as rows
from queuectl.system.liveness import Pulse, lock_path, read_note
from queuectl.system.locks import program_of
from queuectl.system.process import Processes, is_stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding
    from queuectl.store.workers import Worker

MISSED_BEATS = 3
NAMED = 5
START = "start a worker: queuectl worker start -d"


def workers(case: "Case") -> "Iterator[Finding]":
    """Whether anybody runs while jobs wait."""
    waiting = sum(_ready(case, queue.name) for queue in case.fleet.queues if queue.paused_at is None)
    if waiting and not case.living:
        needy = case.store.read(lambda tx: unservable(tx, []))
        is_for_any = waiting > sum(one.jobs for one in needy)
        start = START if is_for_any else f"start a worker: {needy[0].remedy}"
        yield warning(f"no worker is running while {_waiting(waiting)}", start)
    else:
        yield ok(
            f"{counted(len(case.living), 'worker')} running" if case.living else "no worker is running, none is needed"
        )


def dead_workers(case: "Case") -> "Iterator[Finding]":
    """Whether processes that died without a word are still on the books."""
    dead = [worker for worker in case.fleet.workers if case.pulses[worker.id] is Pulse.DEAD]
    if dead:
        yield warning(
            f"{_names(dead)} died, and nobody has taken over yet",
            f"{START}; it frees their jobs within a second",
        )
    else:
        yield ok("no worker died without a word")


def hung_workers(case: "Case") -> "Iterator[Finding]":
    """Whether processes live and do not say so any more."""
    least_ms = round(MISSED_BEATS * case.settings.worker_heartbeat_interval * 1000)
    hung = [
        worker
        for worker in case.fleet.workers
        if case.pulses[worker.id] is Pulse.ALIVE
        and case.fleet.now - worker.beat_at > max(least_ms, worker.lease_ms // 2)
    ]
    for worker in hung[:NAMED]:
        silent = rough_duration_text(case.fleet.now - worker.beat_at)
        if can_see_tree(worker) and is_stopped(worker.pid):
            yield warning(
                f"{_name(worker)} is stopped (SIGSTOP) and silent for {silent}",
                f"let it go on: kill -CONT {worker.pid}",
            )
        else:
            yield warning(
                f"{_name(worker)} lives but has been silent for {silent}",
                f"look at its log; if it hangs, kill -9 {worker.pid}: its jobs run again",
            )
    if not hung:
        yield ok("every living worker says that it lives")


def silent_workers(case: "Case") -> "Iterator[Finding]":
    """Whether workers that cannot be seen from here are silent beyond their lease."""
    unseen = [worker for worker in case.fleet.workers if case.pulses[worker.id] is Pulse.OUT_OF_SIGHT]
    silent = [worker for worker in unseen if case.fleet.now - worker.beat_at > worker.lease_ms]
    for worker in silent[:NAMED]:
        age = rough_duration_text(case.fleet.now - worker.beat_at)
        yield warning(
            f"{_name(worker)} cannot be seen from here and has been silent for {age}, "
            f"longer than its lease of {rough_duration_text(worker.lease_ms)}",
            f"look after that host; a running worker gives it up once it has watched it for a lease: {START}",
        )
    if not silent:
        yield ok(f"{counted(len(unseen), 'worker')} out of sight, none silent beyond its lease")


def versions(case: "Case") -> "Iterator[Finding]":
    """Whether workers are of another version than this program."""
    others = [
        worker
        for worker in case.fleet.workers
        if worker.version != __version__ and case.pulses[worker.id] is not Pulse.DEAD
    ]
    if others:
        found = ", ".join(sorted({worker.version for worker in others}))
        yield warning(
            f"{_names(others)} of version {found}; this program is {__version__}",
            "after the upgrade of their hosts: queuectl worker restart",
        )
    else:
        yield ok(f"all of version {__version__}")


def orphans(case: "Case") -> "Iterator[Finding]":
    """Whether jobs are said to run whose worker is gone."""
    dead = {worker.id for worker in case.fleet.workers if case.pulses[worker.id] is Pulse.DEAD}
    lost = sorted({orphan.claim.job.id for orphan in case.fleet.orphans} | set(_jobs_of(case, dead)))
    if lost:
        jobs = "a job is" if len(lost) == 1 else f"{len(lost)} jobs are"
        yield warning(f"{jobs} processing though the worker is gone: {_listed(lost)}", f"{START}; it runs them again")
    else:
        yield ok("every running job has its worker")


def stuck(case: "Case") -> "Iterator[Finding]":
    """Whether processes of a lost run cannot be ended, so that its job is not run again."""
    for job_id, why in case.fleet.stuck:
        pids = why.removeprefix("process ").split(" cannot")[0]
        yield error(
            f"job {job_id}: {why}", f"end it as its owner or root: kill -9 {pids}; the job then goes on by itself"
        )
    if not case.fleet.stuck:
        yield ok("no process of a lost run resists")


def processes(case: "Case") -> "Iterator[Finding]":
    """Whether processes of commands outlived their run."""
    seen = Processes().marks()
    running = {claim.mark for claim in case.store.read(claims.running)}
    # Looked at twice, with the jobs between: what has only just begun, or just ended, is not left over.
    still = Processes().marks()
    over = {
        pid: mark
        for pid, mark in seen.items()
        if still.get(pid) == mark and mark not in running and _is_ours(case, mark)
    }
    if over:
        named = ", ".join(
            f"{pid} ({program_of(pid)}, job number {_number(mark)})" for pid, mark in sorted(over.items())[:NAMED]
        )
        yield warning(
            f"{len(over)} left of commands that are over: process {named}",
            f"fine if the command meant to leave it; else: kill {' '.join(map(str, sorted(over)[:NAMED]))}",
        )
    else:
        yield ok("no process outlived its run")


def paused(case: "Case") -> "Iterator[Finding]":
    """Whether jobs wait in a queue that is paused."""
    held = [(queue, count) for queue in case.fleet.queues if queue.paused_at and (count := _ready(case, queue.name))]
    for queue, count in held:
        age = rough_duration_text(max(0, case.fleet.now - (queue.paused_at or 0)))
        yield warning(
            f"queue {queue.name} has been paused for {age} while {_waiting(count)}",
            f"queuectl queue resume {queue.name}",
        )
    if not held:
        yield ok("no job waits in a paused queue")


def unserved(case: "Case") -> "Iterator[Finding]":
    """Whether jobs wait in a queue that no living worker serves."""
    served: set[str] | None = set()
    for worker in case.living:
        served = None if served is None or worker.queue_list is None else served | set(worker.queue_list)
    left = [
        (queue.name, count)
        for queue in case.fleet.queues
        if queue.paused_at is None and (count := _ready(case, queue.name))
        if case.living and served is not None and queue.name not in served
    ]
    for name, count in left:
        yield warning(
            f"no running worker serves queue {name} while {_waiting(count)}",
            f"queuectl worker start -d --queue {name}",
        )
    if not left:
        yield ok(
            "every queue with jobs has a worker" if case.living else "no worker is running that could leave one out"
        )


def _ready(case: "Case", queue: str) -> int:
    """Return how many jobs of a queue would run now, or as soon as their wait is over after a failure."""
    counts = case.fleet.counts.get(queue, {})
    return counts.get(State.PENDING, 0) + counts.get(State.FAILED, 0)


def _jobs_of(case: "Case", worker_ids: "set[str]") -> list[str]:
    held = case.store.read(rows.jobs_held) if worker_ids else {}
    return [job for worker_id in worker_ids for job in held.get(worker_id, [])]


def _is_ours(case: "Case", mark: str) -> bool:
    """Whether a mark names a worker of this store: several stores may run commands on this host.

    A worker that only its lock knows, which says for whom it worked, is of a store since replaced or begun anew.
    """
    worker_id = mark.partition(":")[0]
    if case.store.read(lambda tx: rows.get(tx, worker_id)) is not None:
        return True
    return "/" not in worker_id and read_note(lock_path(case.target.home, worker_id)).store == store_mark(
        case.store.dialect
    )


def _number(mark: str) -> str:
    return mark.split(":")[1] if mark.count(":") == 2 else "?"


def _waiting(count: int) -> str:
    return "a job waits" if count == 1 else f"{count} jobs wait"


def _name(worker: "Worker") -> str:
    return f"{worker.kind} {worker.id[:6]} (pid {worker.pid} on {worker.host})"


def _names(found: "Sequence[Worker]") -> str:
    return _listed([_name(worker) for worker in found])


def _listed(names: "Sequence[str]") -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
