"""Adding: jobs as rows, one or a hundred thousand. What a job gets that says nothing itself is decided in actions/."""

from itertools import repeat

from queuectl.model.job import Job, dumps
from queuectl.model.value import Value
from queuectl.store.jobs import CHUNK, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queuectl.model.batch import Batch
    from queuectl.model.job import JobSpec
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue

_INSERTED = (
    "seq", "given_id", "state", "queue", "lane_id", "priority", "max_retries", "run_at", "created_at", "updated_at",
    "timeout_ms", "backoff", "cwd", "env", "tags", "command", "argv", "split_output", "held_at", "needs", "limits",
    "parked_for", "deadline_ms", "deadline_at", "policy", "launch", "waits_for", "on_dead", "unique_key",
    "unique_for_ms", "group_name",
)  # fmt: skip
COLUMN_FIELDS = frozenset({"given_id", "command", "cwd", "priority", "max_retries", "timeout_ms"})
"""Fields of a job that are one column each, whatever it says besides."""


class Terms(Value):
    """What a queue gives its jobs where they say nothing themselves, and the lanes they stand in, by their needs."""

    lanes: "dict[str, int]"
    max_retries: int
    priority: int = 0
    timeout_ms: int | None = None


def insert(
    tx: "Tx",
    specs: "Sequence[JobSpec]",
    seqs: "Sequence[int]",
    terms: "Mapping[str, Terms]",
    parked: "Mapping[int, str]",
) -> None:
    """Add jobs under reserved numbers. The caller has the terms of their queues and checked the given ids.

    `parked` names those, by their place, that wait for a limit from the start. Those that name parents wait for them.
    """
    tx.insert_many("jobs", _INSERTED, _rows(specs, seqs, terms, parked, tx.now))


def insert_alike(tx: "Tx", batch: "Batch", seqs: "Sequence[int]", terms: "Mapping[str, Terms]") -> None:
    """Add jobs that differ in COLUMN_FIELDS alone, under reserved numbers; the caller checked as for `insert`.

    By columns, and without those that hold nothing: a row of its own for each takes as long as to write it.
    """
    [same] = _rows([batch.base], seqs[:1], terms, {}, tx.now)
    columns: dict[str, Iterable[SqlValue]] = {
        name: repeat(value) for name, value in zip(_INSERTED, same, strict=True) if value is not None
    }
    columns["seq"] = seqs
    defaults = dict(zip(_INSERTED, same, strict=True))
    for name in batch.names:
        columns[name] = batch.column(name, defaults[name])  # type: ignore[assignment]
    tx.insert_many("jobs", tuple(columns), zip(*columns.values(), strict=False))


def insert_as_they_are(tx: "Tx", copies: "Sequence[Job]") -> None:
    """Add jobs of another store with everything they hold. The caller checked them and gave them lanes."""
    tx.insert_many("jobs", Job.FIELDS, (tuple(job.as_dict().values()) for job in copies))  # type: ignore[arg-type]


def taken_ids(tx: "Tx", given_ids: "Sequence[str]") -> list[str]:
    """Return those of the given ids that a job has already."""
    taken: list[str] = []
    for start in range(0, len(given_ids), CHUNK):
        chunk = given_ids[start : start + CHUNK]
        names, params = listed("id", chunk)
        taken += [str(row[0]) for row in tx.rows(f"SELECT given_id FROM jobs WHERE given_id IN ({names})", params)]
    return taken


def numbers_of(tx: "Tx", given_ids: "Sequence[str]") -> dict[str, int]:
    """Return the numbers of the jobs that have some of the given ids."""
    found: dict[str, int] = {}
    for start in range(0, len(given_ids), CHUNK):
        names, params = listed("id", given_ids[start : start + CHUNK])
        rows = tx.rows(f"SELECT given_id, seq FROM jobs WHERE given_id IN ({names})", params)
        found |= {str(given_id): int(seq or 0) for given_id, seq in rows}
    return found


def _rows(
    specs: "Sequence[JobSpec]",
    seqs: "Sequence[int]",
    terms: "Mapping[str, Terms]",
    parked: "Mapping[int, str]",
    now: int,
) -> "Iterable[Row]":
    for place, (seq, spec) in enumerate(zip(seqs, specs, strict=True)):
        run_at = spec.run_at if spec.delay_ms is None else now + spec.delay_ms
        queue = terms[spec.queue]
        needs = spec.needs_text if spec.needs or spec.use else ""
        keys = spec.limit_keys if spec.mutexes or spec.limits or spec.at_most else ()
        state = "pending" if run_at is None or run_at <= now else "scheduled"
        yield (
            seq,
            spec.given_id,
            "blocked" if spec.hold or spec.after or place in parked else state,
            spec.queue,
            queue.lanes[needs],
            queue.priority if spec.priority is None else spec.priority,
            queue.max_retries if spec.max_retries is None else spec.max_retries,
            run_at,
            now,
            now,
            queue.timeout_ms if spec.timeout_ms is None else spec.timeout_ms,
            dumps(spec.backoff) if spec.backoff else None,
            spec.cwd,
            dumps(spec.env) if spec.env else None,
            dumps(spec.tags) if spec.tags else None,
            spec.command,
            dumps(spec.argv) if spec.argv is not None else None,
            int(spec.split_output),
            now if spec.hold else None,
            needs or None,
            dumps(keys) if keys else None,
            parked.get(place),
            spec.deadline_ms,
            None if spec.deadline_ms is None else max(now, run_at or 0) + spec.deadline_ms,
            dumps(spec.policy) if spec.policy else None,
            None if spec.launch is None and spec.input is None else _launch_text(spec),
            len(spec.after),
            spec.on_dead,
            spec.unique_key,
            spec.unique_for_ms,
            spec.group,
        )


def _launch_text(spec: "JobSpec") -> str:
    return dumps({**(spec.launch or {}), **({"has_input": True} if spec.input is not None else {})})
