"""A history to measure beside: jobs of several queues as days of use leave them, and the runs they had.

All about a job follows from its number: most completed, some after a failure, some died in many ways, some wait.
"""

from benchmarks.stores import DAY_MS
from queuectl.store import queues
from queuectl.store.database import Tx

QUEUES = ("default", "mail", "reports", "video")

# Numbers that share no factor with the days scatter the jobs over them.
_JOBS = """
    INSERT INTO jobs (state, queue, lane_id, max_retries, run_at, command, run, attempts,
                      created_at, updated_at, started_at, finished_at, exit_code, error)
    WITH RECURSIVE numbers (n) AS (
        SELECT CAST(1 AS BIGINT)
         UNION ALL
        SELECT n + 1 FROM numbers WHERE n < {rows}
    ), kinds (n, state, ended, took) AS (
        SELECT n,
               CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 17 = 0 THEN 'dead' ELSE 'completed' END,
               {now} - 1000 - n * 7919017 % {days_ms},
               n * 6151 % 60000
          FROM numbers
    )
    SELECT state, '{queue}', {lane}, 1, NULL, 'true',
           CASE WHEN state = 'pending' THEN 0 WHEN state = 'dead' OR n % 10 = 1 THEN 2 ELSE 1 END,
           CASE WHEN state = 'pending' THEN 0 WHEN state = 'dead' OR n % 10 = 1 THEN 2 ELSE 1 END,
           ended - 100000, ended,
           CASE WHEN state <> 'pending' THEN ended - took END,
           CASE WHEN state <> 'pending' THEN ended END,
           CASE state WHEN 'completed' THEN 0 WHEN 'dead' THEN 1 END,
           CASE WHEN state <> 'dead' THEN NULL
                WHEN n % 4 = 0 THEN 'exit code ' || CAST(n % 20 + 1 AS TEXT)
                WHEN n % 4 = 1 THEN 'exit code 23: no such file /data/' || CAST(n % 1000 AS TEXT)
                WHEN n % 4 = 2 THEN 'timed out after 30 s'
                ELSE 'killed by SIGKILL' END
      FROM kinds
"""
_RUNS = """
    INSERT INTO attempts (job_seq, run, attempt, worker_id, host, started_at, finished_at, outcome, exit_code, error,
                          output_tail, waited_ms, queue, result)
    SELECT seq, {run}, {run}, 'bench', 'bench', started_at - {before_ms}, finished_at - {before_ms},
           CASE WHEN error LIKE 'timed%' THEN 'timed_out' WHEN error LIKE 'killed%' THEN 'killed' ELSE 'exited' END,
           {exit_code}, {error}, :empty,
           CASE WHEN seq % 13 <> 0 THEN seq * 3571 % 100000 END, queue,
           CASE WHEN error LIKE 'timed%' THEN 'timed_out'
                WHEN error LIKE 'killed%' THEN 'killed'
                WHEN {error} IS NOT NULL THEN 'failed'
                ELSE 'completed' END
      FROM jobs
     WHERE queue = '{queue}' AND {which}
"""

_LAST = {"run": "run", "before_ms": 0, "exit_code": "exit_code", "error": "error", "which": "run > 0"}
_FIRST = {"run": 1, "before_ms": 90_000, "exit_code": 1, "error": "COALESCE(error, 'exit code 1')", "which": "run = 2"}


def add_history(tx: Tx, rows: int, days: int) -> None:
    """Add so many jobs that ended within so many days, or wait, to a store that has none."""
    parts = {"rows": rows // len(QUEUES), "now": tx.now, "days_ms": days * DAY_MS}
    for queue in QUEUES:
        tx.changed(_JOBS.format(**parts, queue=queue, lane=queues.lane_of(tx, queue)))
        for runs in (_LAST, _FIRST):
            tx.changed(_RUNS.format(**runs, queue=queue), {"empty": b""})
