"""Exporting: a whole store, or some of its jobs, out as lines of JSON. Bringing them in again is in importing.py."""

import json
import os

from queuectl import __version__
from queuectl.actions.connect import connect
from queuectl.errors import Refused
from queuectl.model import transfer
from queuectl.model.lineformats import FORMAT
from queuectl.model.transfer import End, Extras, Header
from queuectl.store import attempts, config, edges, groups, inputs, jobs, limits, queues, schedules, unique_keys
from queuectl.system.paths import whole_path
from queuectl.system.wholefile import whole_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queuectl.actions.connect import Target
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.model.transfer import Shape
    from queuectl.store.database import Database, Tx

PAGE_JOBS = 200
PAGE_RUNS = 100
_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def export(database: "Database", wanted: "jobs.Filter | None", write: "Callable[[Shape], object]") -> End:
    """Hand every line to `write`, from one view of the store: all of it, or (with a filter) the jobs that match.

    The view stays open until the last line is taken; memory holds one page.
    """

    def work(tx: "Tx") -> End:
        tx.dialect.read_at_leisure()
        last = tx.dialect.last_number("jobs", "seq")
        header = Header(format=FORMAT, version=__version__, exported_at=tx.now, last_number=last)
        write(transfer.header_shape(header))
        if wanted is None:
            for queue in queues.all_queues(tx):
                write(transfer.queue_shape(queue))
            for limit in limits.all_limits(tx):
                write(transfer.limit_shape(limit))
            for schedule in schedules.all_schedules(tx):
                write(transfer.schedule_line_shape(schedule))
            for group in groups.all_groups(tx):
                write(transfer.group_shape(group))
            for key, value in sorted(config.stored(tx).items()):
                write(transfer.setting_shape(key, value))
        counts = {"job": 0, "run": 0}
        for shape in _job_lines(tx, wanted or jobs.Filter()):
            write(shape)
            counts[str(shape["type"])] += 1
        end = End(jobs=counts["job"], runs=counts["run"])
        write(transfer.end_shape(end))
        return end

    return database.read(work)


def export_file(target: "Target", wanted: "jobs.Filter | None", path: str, *, force: bool = False) -> End:
    """Write an export into a file, which is there once it is whole; one that exists is replaced by `force` alone."""
    path = whole_path(path)
    if target.sqlite_path is not None and os.path.realpath(path) in {
        os.path.realpath(f"{target.sqlite_path}{end}") for end in ("", "-wal", "-shm", "-journal")
    }:
        raise Refused(f"{path} is the store itself", hint="name another file")
    with whole_file(path, force=force) as file:
        return export(connect(target), wanted, lambda shape: file.write(line_of(shape)))


def line_of(shape: "Shape") -> bytes:
    """Return the line of an export."""
    return _ENCODE(shape).encode() + b"\n"


def _job_lines(tx: "Tx", wanted: jobs.Filter) -> "Iterator[Shape]":
    """Yield each job that matches, and after it its runs."""
    after = 0
    while page := jobs.page(tx, wanted, after, PAGE_JOBS):
        after = page[-1].seq
        runs = _runs(tx, [job.seq for job in page])
        run = next(runs, None)
        beside = _extras(tx, page)
        for job in page:
            yield transfer.job_line_shape(job, beside[job.seq])
            while run is not None and run.job_seq == job.seq:
                yield transfer.run_line_shape(run)
                run = next(runs, None)


def _extras(tx: "Tx", page: "list[Job]") -> "dict[int, Extras]":
    """Return what stands beside the rows of some jobs, by their numbers."""
    after: dict[int, list[tuple[int, str, str]]] = {job.seq: [] for job in page}
    for edge in edges.between(tx, list(after)):
        after[edge.child_seq].append((edge.parent_seq, edge.kind.value, edge.state.value))
    until = unique_keys.expiries(tx, [(job.unique_key, job.seq) for job in page if job.unique_key is not None])
    return {
        job.seq: Extras(
            job_seq=job.seq,
            input=inputs.get(tx, job.seq) if job.launch_map.get("has_input") else None,
            after=tuple(sorted(after[job.seq])),
            unique_until=until.get(job.seq),
        )
        for job in page
    }


def _runs(tx: "Tx", seqs: list[int]) -> "Iterator[Attempt]":
    after = (0, 0)
    while page := attempts.page(tx, seqs, after, PAGE_RUNS):
        yield from page
        after = (page[-1].job_seq, page[-1].run)
