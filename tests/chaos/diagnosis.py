"""The diagnosis: all that helps to understand a violation, as text."""

import re
from collections.abc import Iterable, Sequence

from queuectl.errors import QueuectlError
from tests.chaos import snapshot
from tests.chaos.checker import FINAL, Evidence, Violation
from tests.chaos.crew import Crew
from tests.chaos.notes import Notes
from tests.chaos.processes import processes_of
from tests.chaos.stores import Store
from tests.program import lines_of

MOST_JOBS = 8
LOG_LINES = 60
JOURNAL_LINES = 60

_JOB = """
    SELECT seq, given_id, state, 'run', run, 'attempts', attempts, 'losses', losses, 'worker', worker_id, run_at, error,
           substr(tags, 1, 60)
      FROM jobs
     WHERE seq = {seq} OR given_id = '{job}'
"""
_WORKERS = "SELECT id, kind, state, pid, stop, beats, beat_at, ended_at FROM workers WHERE state = 'live'"


def diagnosis(store: Store, crew: Crew, evidence: Evidence, notes: Notes, violations: Sequence[Violation]) -> str:
    """Return the violations, then the jobs they are about, the workers, the processes, the journal and the log."""
    jobs = [*_jobs_named(violations), *(job.id for job in evidence.jobs if job.state not in FINAL)]
    parts = [_part("violations", map(str, violations))]
    parts += [_part(f"job {job}", _job(store, evidence, crew, job)) for job in [*dict.fromkeys(jobs)][:MOST_JOBS]]
    parts += [
        _part("workers that live by their row", _table(store, _WORKERS)),
        _part("processes", map(str, processes_of(crew.home))),
        _part("journal", lines_of(notes.journal)[-JOURNAL_LINES:]),
        _part("log of the workers", crew.said().splitlines()[-LOG_LINES:]),
    ]
    return "\n".join(parts)


def _jobs_named(violations: Iterable[Violation]) -> list[str]:
    return [match[1] for violation in violations if (match := re.match(r"job (\S+)", violation.about))]


def _job(store: Store, evidence: Evidence, crew: Crew, job: str) -> list[str]:
    said = [line for line in crew.said().splitlines() if re.search(rf"\bjob {re.escape(job)} run ", line)]
    return [
        *_table(store, _JOB.format(seq=job if job.isdigit() else 0, job=job)),
        *map(str, evidence.runs_of.get(job, [])),
        *map(str, evidence.lines_of.get(job, [])),
        *said,
    ]


def _table(store: Store, sql: str) -> list[str]:
    try:
        return snapshot.table(store.database, sql)
    except QueuectlError as error:
        return [error.message]


def _part(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"--- {title}", *(f"    {line}" for line in lines)])
