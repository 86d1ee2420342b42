"""Budgets: what the figures are held to, all in one place. A figure without an entry here is shown, not judged."""

from benchmarks.figures import Budget

FULL, DASHBOARD = "full", "dashboard"
"""The runs that judge: of everything, and of the dashboard alone."""
_ALL = (
    Budget(name="drain, 1 worker, SQLite", limit=1.0, is_more_better=True),
    Budget(name="drain, 2 workers, SQLite", limit=1.0, is_more_better=True),
    Budget(name="drain, 4 workers, SQLite", limit=1.0, is_more_better=True),
    Budget(name="drain, 8 workers, SQLite", limit=1.0, is_more_better=True),
    Budget(name="drain, 1 worker, PostgreSQL", limit=0.4, is_more_better=True),
    Budget(name="drain, 2 workers, PostgreSQL", limit=0.4, is_more_better=True),
    Budget(name="drain, 4 workers, PostgreSQL", limit=0.4, is_more_better=True),
    Budget(name="drain, 8 workers, PostgreSQL", limit=0.4, is_more_better=True),
    Budget(name="drain against GNU parallel", limit=5.0, is_more_better=True),
    Budget(name="enqueue, SQLite", limit=3.5),
    Budget(name="bulk of lines, SQLite", limit=100_000, is_more_better=True, absolute_unit="jobs/s"),
    Budget(name="bulk of JSON, SQLite", limit=50_000, is_more_better=True, absolute_unit="jobs/s"),
    Budget(name="pick-up p50", limit=5, absolute_unit="ms"),
    Budget(name="pick-up p95", limit=10, absolute_unit="ms"),
    Budget(name="idle CPU", limit=0.4, absolute_unit="% of a core"),
    Budget(name="idle memory", limit=90, absolute_unit="MB"),
    Budget(name="memory of sleeps", limit=50, absolute_unit="MB"),
    Budget(name="growth", limit=1.5),
    Budget(name="dependents", limit=1.5),
    Budget(name="status", limit=200, absolute_unit="ms"),
    Budget(name="list", limit=200, absolute_unit="ms"),
    Budget(name="page", limit=200, absolute_unit="ms", run=DASHBOARD),
    Budget(name="told of", limit=1000, absolute_unit="ms", run=DASHBOARD),
    Budget(name="viewers", limit=1.1, run=DASHBOARD),
    Budget(name="own share", limit=200, absolute_unit="us", is_aim=True),
)
BUDGETS = {budget.name: budget for budget in _ALL}
