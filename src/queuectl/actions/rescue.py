"""Rescue: taking jobs back from workers that died without a word, on this host at once, from others by the lease."""

import os
from functools import partial

from queuectl import clock
from queuectl.actions.connect import working_settings
from queuectl.actions.endings import hold_groups
from queuectl.actions.liveness import can_see_tree, has_rebooted, lock_of, pulse, store_mark
from queuectl.actions.settle import put_back, settle
from queuectl.model.attempt import Report
from queuectl.model.lease import Silence, Watched
from queuectl.model.verdict import Outcome
from queuectl.store import claims, workers
from queuectl.system import host, process
from queuectl.system.endnotes import read_end_notes
from queuectl.system.home import log_path, remove_file, script_path, stderr_path
from queuectl.system.liveness import Parting, Pulse, home_of, read_note, remove_left_locks, remove_lock
from queuectl.system.output import salvage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from queuectl.model.job import Claim
    from queuectl.settings import Settings
    from queuectl.store.claims import Orphan
    from queuectl.store.database import Database, Tx
    from queuectl.store.dialect import Dialect
    from queuectl.store.workers import Worker
    from queuectl.system.home import Home

TIDY_EVERY_S = 10.0
STUCK_S = 0.1
_OUTCOMES = {Parting.ENDED: Outcome.lapsed, Parting.LEFT: Outcome.left, None: Outcome.lost}


class Rescuer:
    """One watcher: gives up dead workers, ends what is left of their commands, and frees their jobs.

    A worker is dead when its lock can be taken. Where the lock cannot be reached, it is given up when this watcher has
    itself seen the same heartbeat number for the whole lease. The sweep goes by jobs without a living worker, so a
    rescue that was cut off half way is finished by the next.
    """

    def __init__(self, database: "Database", home: "Home", environ: "Mapping[str, str]") -> None:
        self._database = database
        self._home = home
        self._environ = environ
        self._beats = Silence()
        self._orphans = Silence()
        self._stuck: set[str] = set()
        self._tidied_at: float | None = None

    def look(self, pardoned: "Collection[str]" = ()) -> list[str]:
        """Look once; return a note per job that was freed. Jobs of `pardoned` workers are handed back, not lost.

        So are those of workers whose lock says that their death is no crash, such as that they were ended for their
        lease: whoever did that need not be the first to find them dead.
        """
        began = clock.boot_s()
        living, orphans, settings = self._database.read(self._read)
        now = clock.boot_s()
        dead, silent = self._give_up(living, began, now)
        if dead:
            orphans = self._database.read(claims.orphans)
        ready = self._ready(orphans, silent, began, settings.lock_lease_seconds)
        freed, notes = self._free(ready, settings, pardoned) if ready else (set(), [])
        held = {orphan.claim.job.worker_id for orphan in orphans if orphan.claim.mark not in freed}
        owners = [worker for orphan in ready if (worker := orphan.worker)]
        self._tidy([worker for worker in (*dead, *owners) if worker.id not in held], now)
        return notes

    def finish(self) -> None:
        """Look a last time, and leave no lock of the dead behind."""
        self._tidied_at = None
        self.look()

    def _read(self, tx: "Tx") -> "tuple[list[Worker], list[Orphan], Settings]":
        return workers.live(tx), claims.orphans(tx), working_settings(tx, self._environ)

    def _give_up(
        self, living: "Sequence[Worker]", began: float, ended: float
    ) -> "tuple[list[Worker], Collection[object]]":
        """Close the rows of the dead; return them, and the ids of those judged by their silence alone."""
        dialect = self._database.dialect
        pulses = {worker.id: pulse(worker, dialect) for worker in living}
        unseen = [worker for worker in living if pulses[worker.id] is Pulse.OUT_OF_SIGHT and not dialect.is_local]
        silent = self._beats.look(
            began,
            ended,
            [Watched(key=worker.id, token=worker.beats, lease_s=worker.lease_ms / 1000) for worker in unseen],
        )
        dead = [worker for worker in living if pulses[worker.id] is Pulse.DEAD or worker.id in silent]
        return [worker for worker in dead if self._database.write(partial(_give_up, worker))], silent

    def _ready(
        self, orphans: "Sequence[Orphan]", silent: "Collection[object]", began: float, lease_s: float
    ) -> "list[Orphan]":
        """Return what may be freed now: nothing of it is left, or it can be ended here, or the lease is over."""
        dialect = self._database.dialect
        keys = [(orphan.claim.job.seq, orphan.claim.job.run) for orphan in orphans]
        watched = [
            Watched(key=key, token=0, lease_s=orphan.worker.lease_ms / 1000 if orphan.worker else lease_s)
            for orphan, key in zip(orphans, keys, strict=True)
        ]
        waited = self._orphans.look(began, clock.boot_s(), watched)

        def is_ready(orphan: "Orphan") -> bool:
            worker = orphan.worker
            if worker is None:
                return False
            return can_see_tree(worker) or worker.id in silent or is_of_past_boot(worker, dialect)

        return [orphan for orphan, key in zip(orphans, keys, strict=True) if key in waited or is_ready(orphan)]

    def _free(
        self, ready: "Sequence[Orphan]", settings: "Settings", pardoned: "Collection[str]"
    ) -> tuple[set[str], list[str]]:
        """End what is left of the commands and settle their runs; return the marks of those freed, and notes."""
        noted = self._noted(ready)
        here = [
            orphan
            for orphan in ready
            if orphan.claim.mark not in noted and (orphan.worker is None or can_see_tree(orphan.worker))
        ]
        # What was stuck a moment ago is not waited for again: this process has others to look after.
        stuck = process.end_left(self._left_of(here), STUCK_S if self._stuck else process.KILL_S) if here else {}
        notes = self._note_stuck(ready, stuck)
        freed = [orphan for orphan in ready if orphan.claim.mark not in stuck]
        reports = [
            (orphan, noted[mark] if (mark := orphan.claim.mark) in noted else self._report(orphan, settings, pardoned))
            for orphan in freed
        ]
        notes += self._database.write(partial(_settle, reports, self._environ))
        return {orphan.claim.mark for orphan in freed}, notes

    def _noted(self, orphans: "Sequence[Orphan]") -> "dict[str, Report | None]":
        """Return what dead workers noted of runs that need no rescue, by mark: how they ended, or None: never begun.

        What is left in the background by a command that ended is left alone. After a reboot the notes prove nothing.
        """
        noted: dict[str, Report | None] = {}
        paths = {
            worker.id: lock_of(worker, self._database.dialect)
            for orphan in orphans
            if (worker := orphan.worker) and worker.boot_id == host.boot_id() and self._home_of(worker) is not None
        }
        ends = {worker_id: read_end_notes(path) for worker_id, path in paths.items()}
        begun = {left.mark for worker_id, path in paths.items() for left in read_note(path).left(worker_id)}
        for orphan in orphans:
            job, mark = orphan.claim.job, orphan.claim.mark
            known = ends.get(str(job.worker_id))
            if known is None:
                continue
            if (note := known.get((job.seq, job.run))) is not None:
                noted[mark] = Report.of_note(note)
            elif mark not in begun:
                noted[mark] = None
        return noted

    def _note_stuck(self, ready: "Sequence[Orphan]", stuck: "Mapping[str, Sequence[int]]") -> list[str]:
        """Write into the row of a job why it is not run again; say so once."""
        notes = []
        for orphan in ready:
            claim = orphan.claim
            pids = stuck.get(claim.mark)
            if pids:
                why = self._database.write(partial(_note_stuck, claim, pids))
                if claim.mark not in self._stuck:
                    notes.append(f"job {claim.job.id} run {claim.job.run}: {why}")
        self._stuck = set(stuck)
        return notes

    def _report(self, orphan: "Orphan", settings: "Settings", pardoned: "Collection[str]") -> Report:
        """Return the report of a run that nobody saw end: its outcome, and what it had printed into its file."""
        job = orphan.claim.job
        parting = Parting.ENDED if job.worker_id in pardoned else self._parting_of(orphan.worker)
        outcome = _OUTCOMES[parting]()
        home = self._home_of(orphan.worker)
        if home is None:
            return Report(outcome=outcome)
        remove_file(script_path(home, job.seq, job.run))
        report = Report(outcome=outcome)
        if (kept := salvage(log_path(home, job.seq, job.run), settings.output_tail_bytes)) is not None:
            name = os.path.relpath(kept.file or "", home.logs)
            report = report.replace(output_bytes=kept.total_bytes, output_file=name, output_tail=kept.tail)
        if (kept := salvage(stderr_path(home, job.seq, job.run), settings.output_tail_bytes)) is not None:
            name = os.path.relpath(kept.file or "", home.logs)
            report = report.replace(stderr_bytes=kept.total_bytes, stderr_file=name, stderr_tail=kept.tail)
        return report

    def _parting_of(self, worker: "Worker | None") -> Parting | None:
        if worker is None or self._home_of(worker) is None:  # another host's lock is not this file
            return None
        return read_note(lock_of(worker, self._database.dialect)).parting

    def _home_of(self, worker: "Worker | None") -> "Home | None":
        """Return where a worker kept its files, if that is on this host: several homes may share a PostgreSQL."""
        if worker is None:
            return self._home
        if not self._database.dialect.is_local and worker.host != host.host_name():
            return None
        return home_of(lock_of(worker, self._database.dialect), self._home)

    def _left_of(self, orphans: "Sequence[Orphan]") -> list[process.Left]:
        """Return what is known of commands: their marks, and what their worker noted beside its lock."""
        paths = {
            orphan.worker.id: lock_of(orphan.worker, self._database.dialect) for orphan in orphans if orphan.worker
        }
        noted = {left.mark: left for worker_id, path in paths.items() for left in read_note(path).left(worker_id)}
        marks = [orphan.claim.mark for orphan in orphans]
        return [noted.get(mark) or process.Left(mark=mark) for mark in marks]

    def _tidy(self, gone: "Sequence[Worker]", now: float) -> None:
        """Remove the locks of dead workers, once nothing they noted is needed; now and then also those left over."""
        for worker in gone:
            remove_lock(lock_of(worker, self._database.dialect))
        if self._tidied_at is None or now - self._tidied_at >= TIDY_EVERY_S:
            self._tidied_at = now
            store = store_mark(self._database.dialect)
            remove_left_locks(self._home, store, self._is_needed)

    def _is_needed(self, worker_id: str) -> bool:
        """Whether a worker lives, or holds jobs still: another may have given it up just now, and goes by its notes."""

        def look(tx: "Tx") -> bool:
            row = workers.get(tx, worker_id)
            return (row is not None and row.state == workers.LIVE) or bool(claims.held_by(tx, worker_id))

        return self._database.read(look)


def is_of_past_boot(worker: "Worker", dialect: "Dialect") -> bool:
    """Whether the host of a dead worker has started anew since, so that nothing of its commands can be left."""
    if not has_rebooted(worker, dialect):
        return False
    return dialect.is_local or pulse(worker, dialect) is Pulse.DEAD


def _give_up(worker: "Worker", tx: "Tx") -> bool:
    return workers.give_up(tx, worker)


def _note_stuck(claim: "Claim", pids: "Sequence[int]", tx: "Tx") -> str:
    return claims.note_stuck(tx, claim, pids)


def _settle(reports: "Sequence[tuple[Orphan, Report | None]]", environ: "Mapping[str, str]", tx: "Tx") -> list[str]:
    notes: list[str] = []
    never_begun: list[Claim] = []
    tx.lock(key for orphan, _ in reports for key in orphan.claim.job.limit_list)
    hold_groups(tx, {name for orphan, _ in reports if (name := orphan.claim.job.group_name) is not None})
    for orphan, known in reports:
        claim = orphan.claim
        where = orphan.worker.host if orphan.worker else host.host_name()
        if known is None and not put_back(tx, [claim]):
            never_begun.append(claim)
            continue
        report = known or Report(outcome=Outcome.handed_back("its worker was lost before it began"))
        job = settle(tx, claim, report, where, environ)
        if job is None:
            notes.append(f"job {claim.job.id} run {claim.job.run}: was settled meanwhile")
            continue
        tx.wake()
        how = report.outcome.error or "had ended well before its worker was lost"
        notes.append(f"job {job.id} run {job.run}: {how}; the job is {job.state} now")
    return [*notes, *_never_begun_notes(never_begun)]


def _never_begun_notes(claims: "Sequence[Claim]") -> list[str]:
    """Say of jobs in hand that they wait again; of many in one line, or what was lost would drown in it."""
    if len(claims) > 1:
        names = f"job {claims[0].job.id} and {len(claims) - 1} more"
        return [f"{names}: their worker was lost before it began them; they wait again"]
    return [
        f"job {claim.job.id} run {claim.job.run}: its worker was lost before it began it; it waits again"
        for claim in claims
    ]
