"""Control: what a person does to jobs, queues, settings and workers. Each act is on record in the audit trail."""

from queuectl.actions.liveness import pulse
from queuectl.errors import NotFound, Refused
from queuectl.model.states import FINAL, WAITING_FOR_TIME, Move, State
from queuectl.model.value import Value
from queuectl.settings import parse, resolve, setting_key, shown
from queuectl.store import audit, config, jobs, moves, queues, workers
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

PAGE = 1000


class Done(Value):
    """What an act did to one job."""

    job: "Job"
    note: str


def cancel(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Cancel jobs: a waiting one at once, a running one as soon as its worker has stopped it."""
    return _act(database, ids, "cancel", who, _cancel)


def retry(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Run jobs again: a waiting one now, a finished one with a fresh life."""
    return _act(database, ids, "retry", who, _retry)


def revive_dead(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Give dead jobs a fresh life; a job that is not dead is refused."""

    def revive(tx: "Tx", job: "Job") -> str:
        if job.state is not State.DEAD:
            raise Refused(
                f"job {job.id} is not in the DLQ; it is {job.state}",
                hint="see the DLQ with: queuectl dlq list",
            )
        return _retry(tx, job)

    return _act(database, ids, "dlq retry", who, revive)


def delete(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Remove jobs and their history; a running one is refused."""

    def remove(tx: "Tx", job: "Job") -> str:
        if not jobs.delete(tx, [job.seq]):
            raise _running(job, "delete")
        return "deleted"

    return _act(database, ids, "delete", who, remove)


def revive_all_dead(database: "Database", wanted: jobs.Filter, *, who: str) -> int:
    """Give every dead job that matches a fresh life, a page per transaction."""

    def revive(tx: "Tx", seqs: list[int]) -> int:
        revived = [moves.move(tx, Move.REVIVE, seq, State.PENDING) for seq in seqs]
        tx.wake()
        return sum(job is not None for job in revived)

    return _act_on_all(database, wanted.replace(states=(State.DEAD,)), "dlq retry", who, revive)


def purge_dead(database: "Database", wanted: jobs.Filter, *, who: str) -> int:
    """Remove every dead job that matches, a page per transaction."""
    return _act_on_all(database, wanted.replace(states=(State.DEAD,)), "dlq purge", who, jobs.delete)


def purge_some_dead(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Remove dead jobs by id; a job that is not dead is refused."""

    def remove(tx: "Tx", job: "Job") -> str:
        if job.state is not State.DEAD:
            raise Refused(
                f"job {job.id} is not in the DLQ; it is {job.state}",
                hint=f"remove it with: queuectl delete {job.id}",
            )
        jobs.delete(tx, [job.seq])
        return "purged"

    return _act(database, ids, "dlq purge", who, remove)


def pause_queue(database: "Database", name: str, *, who: str) -> bool:
    """Stop handing out jobs of a queue; False means it was paused already. Running jobs go on."""

    def work(tx: "Tx") -> bool:
        queues.create(tx, name)
        changed = queues.set_paused(tx, name, tx.now)
        audit.record(tx, who, "queue pause", name, int(changed))
        return changed

    return database.write(work)


def resume_queue(database: "Database", name: str, *, who: str) -> bool:
    """Hand out jobs of a queue again; False means it was not paused."""

    def work(tx: "Tx") -> bool:
        if queues.get(tx, name) is None:
            raise NotFound(f"no queue {name!r}", hint="list them with: queuectl queue list")
        changed = queues.set_paused(tx, name, None)
        audit.record(tx, who, "queue resume", name, int(changed))
        tx.wake()
        return changed

    return database.write(work)


def set_setting(database: "Database", name: str, text: str, *, who: str) -> tuple[str, str]:
    """Store a setting, unless it is bad or does not fit the others; return key and value as stored."""
    key, value = parse(name, text)
    stored = shown(key, value)

    def work(tx: "Tx") -> None:
        resolve({**config.stored(tx), key: stored}, {})  # refuses what does not fit the others
        config.put(tx, key, stored)
        audit.record(tx, who, "config set", f"{key}={stored}", 1)
        tx.wake()

    database.write(work)
    return key, stored


def unset_setting(database: "Database", name: str, *, who: str) -> bool:
    """Forget a stored setting; False means it was not stored."""
    key = setting_key(name)

    def work(tx: "Tx") -> bool:
        dropped = config.drop(tx, key)
        resolve(config.stored(tx), {})
        audit.record(tx, who, "config unset", key, int(dropped))
        tx.wake()
        return dropped

    return database.write(work)


def stop_workers(database: "Database", ids: "Sequence[str]", *, stop: str, who: str, restart: bool = False) -> int:
    """Tell workers and supervisors to stop, on every host, and to start over if so asked; return how many were told."""
    verb = "restart" if restart else "stop"

    def work(tx: "Tx") -> int:
        told = workers.tell(tx, ids, stop, restart=restart)
        audit.record(tx, who, f"worker {verb} {stop}", ",".join(ids)[:1000] or None, told)
        tx.wake()
        return told

    return database.write(work)


def _act(
    database: "Database", ids: "Sequence[str]", action: str, who: str, act: "Callable[[Tx, Job], str]"
) -> list[Done]:
    """Find jobs by id and act on each, all or none."""

    def work(tx: "Tx") -> list[Done]:
        # All are looked up before any is touched: a job may be named twice, by id, number and `last`.
        named: dict[int, str] = {}
        for job_id in ids:
            found = jobs.find(tx, job_id)
            if found is None:
                raise NotFound(f"no job {job_id!r}", hint="list them with: queuectl list")
            named.setdefault(found.seq, job_id)
        # Locked by number, whatever the order typed: two people with the same jobs must not wait for each other.
        locked = {seq: jobs.get_for_update(tx, seq) for seq in sorted(named)}
        try:
            done = [_done(tx, locked[seq], job_id, act) for seq, job_id in named.items()]
        except Refused as error:
            if len(named) == 1:
                raise
            raise Refused(error.message, hint=f"{error.hint}; none of the {len(named)} jobs was changed") from None
        audit.record(tx, who, action, ",".join(ids)[:1000], len(done))
        tx.tell()
        return done

    return database.write(work)


def _done(tx: "Tx", job: "Job | None", job_id: str, act: "Callable[[Tx, Job], str]") -> Done:
    if job is None:
        raise NotFound(f"no job {job_id!r}", hint="it was removed just now")
    return Done(job=job, note=act(tx, job))


def _act_on_all(
    database: "Database", wanted: jobs.Filter, action: str, who: str, act: "Callable[[Tx, list[int]], int]"
) -> int:
    """Act on every matching job, a page per transaction, so that no writer waits long for another."""
    total, after = 0, 0
    while True:

        def work(tx: "Tx", after: int = after) -> tuple[int, int, int]:
            seqs = jobs.seqs_matching(tx, wanted, after, PAGE)
            count = act(tx, seqs) if seqs else 0
            if count or not after:
                audit.record(tx, who, action, "all", count)
                tx.tell()
            return len(seqs), count, seqs[-1] if seqs else 0

        found, count, last = database.write(work)
        total += count
        if found < PAGE:
            return total
        after = last


def _cancel(tx: "Tx", job: "Job") -> str:
    if job.state in FINAL:
        raise Refused(f"job {job.id} is {job.state} already", hint="only a waiting or running job can be cancelled")
    if job.state is State.PROCESSING:
        moves.request_cancel(tx, job.seq)
        tx.wake()
        holder = workers.get(tx, job.worker_id or "")
        if holder is None or pulse(holder, tx.dialect) is Pulse.DEAD:
            return "its worker is dead; it is cancelled when a worker start rescues it"
        return "its worker is stopping it"
    moves.move(tx, Move.CANCEL, job.seq, State.CANCELLED, error="cancelled before it ran")
    return "cancelled"


def _retry(tx: "Tx", job: "Job") -> str:
    if job.state is State.PROCESSING:
        raise _running(job, "retry")
    if job.state is State.PENDING:
        return "is ready already"
    if job.state is State.BLOCKED:
        raise Refused(f"job {job.id} is blocked: it waits for something else", hint=f"see: queuectl show {job.id}")
    move = Move.DUE if job.state in WAITING_FOR_TIME else Move.REVIVE
    moves.move(tx, move, job.seq, State.PENDING)
    tx.wake()
    return "runs now" if move is Move.DUE else "has a fresh life"


def _running(job: "Job", verb: str) -> Refused:
    return Refused(f"job {job.id} is running", hint=f"cancel it first: queuectl cancel {job.id}, then {verb} it")
