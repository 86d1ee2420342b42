"""Control: what a person does to jobs, queues, settings and workers. Each act is on record in the audit trail."""

from queuectl.actions import acts, verbs
from queuectl.actions.acts import PAGE, Done
from queuectl.actions.gatekeeping import unknown_queue
from queuectl.actions.parking import let_go
from queuectl.actions.revival import revive
from queuectl.errors import Refused
from queuectl.model.states import State
from queuectl.settings import parse, resolve, setting_key, shown
from queuectl.store import audit, config, edges, jobs, queues, removing, workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

SHORT_ID = 6  # as `worker list` shows them


def cancel(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Cancel jobs: a waiting one at once, a running one as soon as its worker has stopped it."""
    return acts.act_on_each(database, ids, verbs.CANCEL, who=who)


def retry(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Run jobs again: a waiting one now, a finished one with a fresh life."""
    return acts.act_on_each(database, ids, verbs.RETRY, who=who)


def retry_with_dependents(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Run jobs again, and after them all that run after them, in their order."""
    return acts.act_on_each(database, ids, verbs.RETRY_WITH_DEPENDENTS, who=who)


def hold(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Keep waiting jobs from running until they are released; one that is held already stays so."""
    return acts.act_on_each(database, ids, verbs.HOLD, who=who)


def release(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Let held jobs run again, when their time has come."""
    return acts.act_on_each(database, ids, verbs.RELEASE, who=who)


def revive_dead(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Give dead jobs a fresh life; a job that is not dead is refused."""

    def revive(tx: "Tx", job: "Job") -> Done:
        if job.state is not State.DEAD:
            raise Refused(
                f"job {job.id} is not in the DLQ; it is {job.state}",
                hint="see the DLQ with: queuectl dlq list",
            )
        return verbs.RETRY.on_one(tx, job)

    act = verbs.RETRY.replace(name="dlq retry", on_one=revive)
    return acts.act_on_each(database, ids, act, who=who)


def delete(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Remove jobs and their history; a running one is refused."""
    return acts.act_on_each(database, ids, verbs.DELETE, who=who)


def revive_all_dead(
    database: "Database", wanted: jobs.Filter, *, who: str, target: str = "all", only: "frozenset[int] | None" = None
) -> int:
    """Give every dead job that matches a fresh life, a page per transaction; `target` names them on record.

    Of those that match, `only` leaves all others alone: whoever died since these were counted.
    """

    def revive(tx: "Tx", seqs: list[int]) -> int:
        return sum(_has_risen(tx, job) for job in jobs.lock(tx, seqs) if job.state is State.DEAD)

    return _act_on_all(database, wanted.replace(states=(State.DEAD,)), "dlq retry", who, revive, target, only)


def _has_risen(tx: "Tx", job: "Job") -> bool:
    """Give a job a fresh life, unless it must not have one now."""
    try:
        revive(tx, job)
    except Refused:
        return False
    return True


def _remove(tx: "Tx", seqs: list[int]) -> int:
    """Remove dead jobs, but for those that others wait for, or that somebody has just given a fresh life."""
    locked = jobs.lock(tx, seqs)  # before it is looked who waits for them: else one could come to wait meanwhile
    dead = [job.seq for job in locked if job.state is State.DEAD]
    needed = edges.needed(tx, dead)
    return removing.delete(tx, [seq for seq in dead if seq not in needed])


def purge_dead(
    database: "Database", wanted: jobs.Filter, *, who: str, target: str = "all", only: "frozenset[int] | None" = None
) -> int:
    """Remove every dead job that matches, a page per transaction, as `revive_all_dead` does."""
    return _act_on_all(database, wanted.replace(states=(State.DEAD,)), "dlq purge", who, _remove, target, only)


def purge_some_dead(database: "Database", ids: "Sequence[str]", *, who: str) -> list[Done]:
    """Remove dead jobs by id; a job that is not dead is refused."""

    def remove(tx: "Tx", job: "Job") -> Done:
        if job.state is not State.DEAD:
            raise Refused(
                f"job {job.id} is not in the DLQ; it is {job.state}",
                hint=f"remove it with: queuectl delete {job.id}",
            )
        verbs.DELETE.on_one(tx, job)
        return Done(job=job, note="purged")

    act = verbs.DELETE.replace(name="dlq purge", on_one=remove)
    return acts.act_on_each(database, ids, act, who=who)


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
            raise unknown_queue(tx, name)
        changed = queues.set_paused(tx, name, None)
        audit.record(tx, who, "queue resume", name, int(changed))
        tx.wake()
        return changed

    changed = database.write(work)
    if changed:
        let_go(database)  # nobody let its jobs go while it was paused
    return changed


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
        audit.record(tx, who, f"worker {verb} {stop}", ",".join(each[:SHORT_ID] for each in ids)[:1000] or None, told)
        tx.wake()
        return told

    return database.write(work)


def _act_on_all(
    database: "Database",
    wanted: jobs.Filter,
    action: str,
    who: str,
    act: "Callable[[Tx, list[int]], int]",
    target: str,
    only: "frozenset[int] | None",
) -> int:
    """Act on every matching job, a page per transaction, so that no writer waits long for another."""
    total, after = 0, 0
    while True:

        def work(tx: "Tx", after: int = after) -> tuple[int, int, int]:
            seqs = jobs.seqs_matching(tx, wanted, after, PAGE)
            chosen = seqs if only is None else [seq for seq in seqs if seq in only]
            count = act(tx, chosen) if chosen else 0
            if count or not after:
                audit.record(tx, who, action, target, count)
                tx.tell()
            return len(seqs), count, seqs[-1] if seqs else 0

        found, count, last = database.write(work)
        total += count
        if found < PAGE:
            return total
        after = last
