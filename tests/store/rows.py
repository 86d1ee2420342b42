"""Rows for store and action tests: jobs in any state and workers, living as far as the database knows."""

from typing import TYPE_CHECKING

from queuectl.actions.settle import settle
from queuectl.model.attempt import Attempt, Report
from queuectl.model.job import Claim, Job
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.value import Value
from queuectl.model.verdict import Outcome
from queuectl.store import attempts, audit, claims, jobs, queues, workers
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from queuectl.system.host import boot_id, host_name, pid_namespace

if TYPE_CHECKING:
    from queuectl.store.dialect import SqlValue

NOW = 1_800_000_000_000
SECOND = 1_000
HOST = "here"


class FakeClock(Value):
    """A wall clock that stands still; give a database another one to let time pass."""

    now: int = NOW

    def __call__(self, _real_now: int) -> int:
        """Return the time it stands at."""
        return self.now


def add_worker(
    db: Database,
    worker_id: str = "w1",
    *,
    lock_path: str = "/nowhere/w.lock",
    host: str = HOST,
    boot: str | None = None,
    namespace: str | None = None,
    pid: int = 1,
    kind: str = workers.WORKER,
    supervisor_id: str | None = None,
    **columns: "SqlValue",
) -> str:
    """Register a worker that the database believes to be living and return its id."""
    row = workers.Worker(
        id=worker_id, kind=kind, state=workers.LIVE, supervisor_id=supervisor_id, pid=pid, host=host,
        boot_id=boot_id() if boot is None else boot,
        pid_namespace=pid_namespace() if namespace is None else namespace,
        lock_path=lock_path, version="0", queues=None, slots=1, stop=None, beats=0, beat_at=0,
        started_at=0, ended_at=None, lease_ms=60_000,
    )  # fmt: skip
    db.write(lambda tx: workers.insert(tx, row.replace(**columns)))
    return worker_id


def add_dead_worker(db: Database, run_folder: str, worker_id: str = "w1", **where: str) -> str:
    """Register a worker of this host whose lock nobody holds: dead, though its row says that it lives."""
    lock_path = f"{run_folder}/{worker_id}.lock"
    with open(lock_path, "w"):
        pass
    return add_worker(db, worker_id, lock_path=lock_path, host=host_name(), **where)  # type: ignore[arg-type]


def add_job(db: Database, state: State = State.PENDING, *, queue: str = "default", **columns: "SqlValue") -> Job:
    """Write a job straight into a state, with the columns that state needs."""

    def work(tx: Tx) -> Job:
        values: dict[str, SqlValue] = {
            "seq": tx.dialect.reserve_seqs(1)[0],
            "state": state.value,
            "queue": queue,
            "lane_id": queues.lane_of(tx, queue, str(columns.get("needs") or "")),
            "max_retries": 3,
            "run": 1 if state is State.PROCESSING else 0,
            "worker_id": "w1" if state is State.PROCESSING else None,
            "started_at": tx.now if state is State.PROCESSING else None,
            "run_at": tx.now + 60 * SECOND if state in WAITING_FOR_TIME else None,
            "finished_at": tx.now if state in FINAL else None,
            "created_at": tx.now,
            "updated_at": tx.now,
            "command": None if "argv" in columns else "true",
            **columns,
        }
        tx.insert_many("jobs", list(values), [tuple(values.values())])
        found = jobs.get(tx, int(values["seq"] or 0))
        assert found is not None
        return found

    return db.write(work)


def add_history(db: Database) -> None:
    """Write 20,000 jobs each of history, future and a paused queue, and let the planner know, as autovacuum does."""
    db.write(lambda tx: queues.create(tx, "paused"))
    db.write(lambda tx: queues.set_paused(tx, "paused", tx.now))
    many = {
        "sqlite": "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 20000)",
        "postgres": "WITH many AS (SELECT generate_series(1, 20000) AS n)",
    }[db.dialect.name]
    crowds = (
        ("completed", "default", "NULL", "n"),
        ("scheduled", "default", "9000000000000 + n", "NULL"),
        ("pending", "paused", "NULL", "NULL"),
    )

    def work(tx: Tx) -> None:
        for state, queue, run_at, finished_at in crowds:
            tx.changed(
                f"""
                {many}
                INSERT INTO jobs (state, queue, lane_id, max_retries, run_at, finished_at, created_at, updated_at,
                                  command)
                SELECT :state, :queue, CAST(:lane AS INTEGER), 3, {run_at}, {finished_at}, 1, 1, 'true'
                  FROM many
                """,
                {"state": state, "queue": queue, "lane": queues.lane_of(tx, queue)},
            )

    db.write(work)
    db.dialect.script("VACUUM ANALYZE" if db.dialect.name == "postgres" else "ANALYZE")


def claim_one(db: Database, worker_id: str = "w1") -> Claim:
    """Let a worker claim the one job that is ready."""
    claimed = db.write(lambda tx: claims.claim(tx, Taker(worker_id=worker_id), 1).claims)
    assert len(claimed) == 1
    return claimed[0]


def claimed_job(db: Database, worker_id: str = "w1", **columns: "SqlValue") -> Claim:
    """Add a worker and a job, and let the one hold the other."""
    add_worker(db, worker_id)
    add_job(db, State.PENDING, queue="default", **columns)
    return claim_one(db, worker_id)


def settle_run(db: Database, claim: Claim, outcome: Outcome) -> Job | None:
    """Settle a run with the settings that are stored."""
    return db.write(lambda tx: settle(tx, claim, Report(outcome=outcome), HOST, {}))


def recorded(claim: Claim, run: int | None = None) -> "dict[str, SqlValue]":
    """Return the record of a run that did well; of another run, for those who settle more than once."""
    record = attempts.record_of(claim, Report(outcome=Outcome.exited(0)), HOST, NOW, 0.0)
    return record if run is None else {**record, "run": run}


def get_job(db: Database, seq: int) -> Job:
    """Return a job that must be there."""
    job = db.read(lambda tx: jobs.get(tx, seq))
    assert job is not None
    return job


def get_runs(db: Database, seq: int) -> list[Attempt]:
    """Return the runs of a job that must be there."""
    return db.read(lambda tx: attempts.runs_of(tx, get(tx, seq)))


def get(tx: Tx, seq: int) -> Job:
    """Return a job that must be there, within a transaction."""
    job = jobs.get(tx, seq)
    assert job is not None
    return job


def get_worker(db: Database, worker_id: str = "w1") -> workers.Worker:
    """Return a worker that must be there."""
    worker = db.read(lambda tx: workers.get(tx, worker_id))
    assert worker is not None
    return worker


def last_act(db: Database) -> tuple[str, str, str | None, int]:
    """Return who did what last, to what, how many."""
    act = db.read(lambda tx: audit.newest(tx, 1))[0]
    return act.who, act.action, act.target, act.count
