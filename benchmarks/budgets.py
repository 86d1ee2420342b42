"""Budgets: what the figures are held to, all in one place. A figure without an entry here is shown, not judged."""

from benchmarks.figures import Budget

BUDGETS = {
    "drain, SQLite": Budget(limit=1.0, is_more_better=True),
    "drain, PostgreSQL": Budget(limit=0.4, is_more_better=True),
    "drain against GNU parallel": Budget(limit=5.0, is_more_better=True),
    "enqueue, SQLite": Budget(limit=3.5),
    "bulk of lines, SQLite": Budget(limit=100_000, is_more_better=True, absolute_unit="jobs/s"),
    "bulk of JSON, SQLite": Budget(limit=50_000, is_more_better=True, absolute_unit="jobs/s"),
    "pick-up p50": Budget(limit=5, absolute_unit="ms"),
    "pick-up p95": Budget(limit=10, absolute_unit="ms"),
    "idle CPU": Budget(limit=0.4, absolute_unit="% of a core"),
    "idle memory": Budget(limit=90, absolute_unit="MB"),
    "memory of sleeps": Budget(limit=50, absolute_unit="MB"),
    "growth": Budget(limit=1.5),
    "dependents": Budget(limit=1.5),
    "status": Budget(limit=200, absolute_unit="ms"),
    "list": Budget(limit=200, absolute_unit="ms"),
    "own share": Budget(limit=200, absolute_unit="us", is_aim=True),
}
