"""Transfer: a whole store, or some of its jobs, out as lines of JSON and in again, all or nothing."""

import json
import os
from contextlib import closing

from queuectl import __version__
from queuectl.actions.connect import connect
from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreError
from queuectl.model import transfer
from queuectl.model.attempt import Attempt
from queuectl.model.job import Job
from queuectl.model.limits import LIMIT, Limit, names_in
from queuectl.model.linechecks import FORMAT, MAX_NUMBER
from queuectl.model.queue import Queue
from queuectl.model.schedule import Schedule
from queuectl.model.states import FINAL, State
from queuectl.model.transfer import End, Header, Input, Reader, SettingLine
from queuectl.model.value import Value
from queuectl.settings import parse, resolve, shown
from queuectl.store import adding, attempts, audit, config, inputs, jobs, limits, queues, schedules
from queuectl.system.spool import Spool
from queuectl.system.wholefile import whole_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from queuectl.actions.connect import Target
    from queuectl.model.transfer import Shape
    from queuectl.store.database import Database, Tx

    Spooled = Job | Attempt | Input

PAGE_JOBS = 200
PAGE_RUNS = 100
NAMED = 5
BACKUP_BEGINS = b"SQLite format 3\0"
WRITE_SECONDS = 3600.0
_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


class Rules(Value):
    """What to do with jobs whose number or id is taken, and with settings."""

    renumber: bool = False
    """Give every job a fresh number; ids people gave must be free all the same."""
    skip_existing: bool = False
    """Pass by a job that is there already: one of its id, or the same one under its number where it has no id.

    A job with an id whose number alone is taken gets a fresh number; one without an id refuses the whole file.
    """
    settings: bool = False
    """Store the settings of the file also where the store has some of its own."""


class Imported(Value):
    """What an import did."""

    jobs: int
    runs: int
    queues: int
    limits: int
    schedules: int = 0
    settings: int
    skipped: int
    """Jobs passed by because they are there already."""
    skipped_ids: tuple[str, ...]
    """The first few of them."""
    moved: int
    """Jobs with an id that got a fresh number, because theirs was taken."""
    settings_left: int
    """Settings of the file that were left out because the store has its own."""
    waiting_again: int
    """Jobs that were running when they were exported, and wait to be run now."""
    limits_missing: tuple[str, ...]
    """Limits that jobs name and that are not here: they hold nothing back."""


class Contents(Value):
    """What a file holds, checked: small things here, jobs and runs in the spool."""

    header: Header
    end: End
    queues: tuple[Queue, ...]
    limits: tuple[Limit, ...]
    schedules: tuple[Schedule, ...]
    settings: tuple[SettingLine, ...]
    last_number: int
    spool: "Spool[Spooled]"


class _Places(Value):
    """What becomes of the jobs of one chunk whose place is taken, by their number in the file."""

    there: frozenset[int]
    """Passed by."""
    moved: frozenset[int]
    """Given a fresh number."""
    clashes: tuple[str, ...]
    """Why the others refuse the whole file, one sentence each."""


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
    if target.sqlite_path is not None and os.path.realpath(path) in {
        os.path.realpath(f"{target.sqlite_path}{end}") for end in ("", "-wal", "-shm", "-journal")
    }:
        raise Refused(f"{path} is the store itself", hint="name another file")
    with whole_file(path, force=force) as file:
        return export(connect(target), wanted, lambda shape: file.write(line_of(shape)))


def line_of(shape: "Shape") -> bytes:
    """Return the line of an export."""
    return _ENCODE(shape).encode() + b"\n"


def import_lines(database: "Database", lines: "Iterable[bytes]", *, rules: Rules, who: str) -> Imported:
    """Check every line, then write them all in one transaction, or raise and write none."""
    contents = read_lines(lines)
    with closing(contents.spool):
        return import_contents(database, contents, rules=rules, who=who)


def read_lines(lines: "Iterable[bytes]") -> Contents:
    """Read and check a whole file; jobs and runs are put aside on disk, so that memory stays small."""
    reader = Reader()
    spool: Spool[Spooled] = Spool()
    small: list[Queue | Limit | Schedule | SettingLine] = []
    last_number = 0
    try:
        for number, data in enumerate(lines, start=1):
            text = _decoded(number, data)
            if not text:
                continue
            match reader.read(number, text):
                case Job() as job:
                    spool.put(job, len(data))
                    last_number = job.seq
                    if reader.input is not None:
                        spool.put(reader.input, len(reader.input.data))
                case Attempt() as run:
                    spool.put(run, len(data))
                case Queue() | Limit() | Schedule() as each:
                    small.append(each)
                case SettingLine() as setting:
                    small.append(_checked_setting(number, setting))
                case _:
                    pass
        header, end = reader.finish()
    except BaseException:
        spool.close()
        raise
    return Contents(
        header=header,
        end=end,
        queues=tuple(each for each in small if isinstance(each, Queue)),
        limits=tuple(each for each in small if isinstance(each, Limit)),
        schedules=tuple(each for each in small if isinstance(each, Schedule)),
        settings=tuple(each for each in small if isinstance(each, SettingLine)),
        last_number=last_number,
        spool=spool,
    )


def import_contents(database: "Database", contents: Contents, *, rules: Rules, who: str) -> Imported:
    """Write what a file holds in one transaction, or raise and write nothing."""
    is_empty = database.read(lambda tx: _is_empty_and_free(tx, contents, rules))
    if not rules.renumber:
        # Before, and for itself: else somebody who adds a job meanwhile would be given a number of the file.
        last = max(contents.last_number, contents.header.last_number if is_empty else 0)
        database.write(lambda tx: tx.dialect.begin_after("jobs", "seq", last))
    done: Imported | None = None
    last_seq = 0

    def work(tx: "Tx") -> Imported:
        nonlocal done, last_seq
        done, last_seq = _write_all(tx, contents, rules, who)
        return done

    database.dialect.limit_answers(WRITE_SECONDS)
    try:
        return database.write(work)
    except CommitInDoubt as error:
        if done is not None and _is_there(database, last_seq):
            return done
        error.hint = "all of it may have been written all the same; look before you repeat it: queuectl list"
        raise
    finally:
        database.dialect.limit_answers(None)


def _job_lines(tx: "Tx", wanted: jobs.Filter) -> "Iterator[Shape]":
    """Yield each job that matches, and after it its runs."""
    after = 0
    while page := jobs.page(tx, wanted, after, PAGE_JOBS):
        after = page[-1].seq
        runs = _runs(tx, [job.seq for job in page])
        run = next(runs, None)
        for job in page:
            has_input = bool(job.launch_map.get("has_input"))
            yield transfer.job_line_shape(job, inputs.get(tx, job.seq) if has_input else None)
            while run is not None and run.job_seq == job.seq:
                yield transfer.run_line_shape(run)
                run = next(runs, None)


def _runs(tx: "Tx", seqs: list[int]) -> "Iterator[Attempt]":
    after = (0, 0)
    while page := attempts.page(tx, seqs, after, PAGE_RUNS):
        yield from page
        after = (page[-1].job_seq, page[-1].run)


def _decoded(number: int, data: bytes) -> str:
    if number == 1 and data.startswith(BACKUP_BEGINS):
        raise BadInput(
            "this is a backup, not an export", hint="put it in the place of a store with: queuectl restore FILE"
        )
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"line {number}: not valid UTF-8 at byte {error.start + 1}", hint="nothing was written"
        ) from None


def _checked_setting(number: int, setting: SettingLine) -> SettingLine:
    try:
        key, value = parse(setting.key, setting.value)
        return SettingLine(key=key, value=shown(key, value))
    except BadInput as error:
        hint = f"{error.hint}; nothing was written" if error.hint else "nothing was written"
        raise BadInput(f"line {number}: {error.message}", hint=hint) from None


def _is_empty_and_free(tx: "Tx", contents: Contents, rules: Rules) -> bool:
    """Whether the store has no job; raises when it has some and the file's places are taken."""
    if not jobs.has_any(tx):
        return True
    _refuse_clashes(contents, rules, (_places(tx, _jobs_of(chunk), rules) for chunk in contents.spool.chunks()))
    return False


def _refuse_clashes(contents: Contents, rules: Rules, found: "Iterable[_Places]") -> None:
    count = 0
    named: list[str] = []
    for places in found:
        count += len(places.clashes)
        named += places.clashes[: NAMED - len(named)]
    if count:
        more = f" and {count - len(named)} more" if count > len(named) else ""
        raise Refused(
            f"{count} of the {contents.end.jobs} jobs cannot come in: {', '.join(named)}{more}",
            hint=f"{_way_out(rules)}; nothing was written",
        )


def _way_out(rules: Rules) -> str:
    fresh = "--renumber gives fresh numbers (ids people gave must be free)"
    if rules.skip_existing:
        return fresh
    return "--skip-existing passes by what is there already" + ("" if rules.renumber else f", {fresh}")


def _places(tx: "Tx", copies: "list[Job]", rules: Rules) -> _Places:
    by_id = set(adding.taken_ids(tx, [job.given_id for job in copies if job.given_id is not None]))
    holders = {} if rules.renumber else {job.seq: job for job in jobs.by_seqs(tx, [job.seq for job in copies])}
    there, moved, clashes = set(), set(), []
    for job in copies:
        holder = holders.get(job.seq)
        if job.given_id not in by_id and holder is None:
            continue
        if rules.skip_existing and (job.given_id in by_id or (holder and _is_same(job, holder))):
            there.add(job.seq)
        elif rules.skip_existing and job.given_id is not None:
            moved.add(job.seq)
        else:
            clashes.append(_clash(job, None if job.given_id in by_id else holder))
    return _Places(there=frozenset(there), moved=frozenset(moved), clashes=tuple(clashes))


def _is_same(job: Job, other: Job) -> bool:
    """Whether two jobs of one number are one: numbers are given out by every store anew, so they tell nothing."""

    def marks(each: Job) -> object:
        return each.given_id, each.created_at, each.command, each.argv_list

    return marks(job) == marks(other)


def _clash(job: Job, holder: Job | None) -> str:
    if holder is None:
        return f"id {job.given_id!r} is taken"
    if _is_same(job, holder):
        return f"job {job.seq} is there already"
    by = "another job" if holder.given_id is None else f"job {holder.given_id!r}"
    return f"number {job.seq} is taken (by {by})"


def _jobs_of(chunk: "list[Spooled]") -> list[Job]:
    return [each for each in chunk if isinstance(each, Job)]


def _write_all(tx: "Tx", contents: Contents, rules: Rules, who: str) -> tuple[Imported, int]:
    """Write queues, limits, settings, jobs and runs; return what was done and the number of the last job."""
    made = [queue.name for queue in contents.queues if queues.create_as_it_was(tx, queue)]
    made_limits = [limit.name for limit in contents.limits if limits.create_as_it_was(tx, limit)]
    made_schedules = [
        schedule.name for schedule in contents.schedules if schedules.insert(tx, _planned(schedule, tx.now))
    ]
    is_taking_settings = rules.settings or not config.stored(tx)
    if is_taking_settings:
        _store_settings(tx, contents.settings, who)
    writer = _Writer(tx, rules, is_empty=not jobs.has_any(tx))
    for chunk in contents.spool.chunks():
        writer.write(chunk)
    audit.record(tx, who, "import", _span(writer.first_seq, writer.last_seq), writer.jobs)
    if writer.jobs or made or made_schedules or contents.settings:
        tx.wake()
    done = Imported(
        jobs=writer.jobs,
        runs=writer.runs,
        queues=len(made),
        limits=len(made_limits),
        schedules=len(made_schedules),
        settings=len(contents.settings) if is_taking_settings else 0,
        skipped=writer.skipped,
        skipped_ids=tuple(writer.skipped_ids),
        moved=writer.moved,
        settings_left=0 if is_taking_settings else len(contents.settings),
        waiting_again=writer.waiting_again,
        limits_missing=_missing(tx, writer.limit_names),
    )
    return done, writer.last_seq


def _planned(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule that goes on from now: what came while it was in the file is left out."""
    here = schedule.replace(updated_at=now)
    return here if here.paused_at is not None else here.planned(now)


def _store_settings(tx: "Tx", given: "Iterable[SettingLine]", who: str) -> None:
    for setting in given:
        config.put(tx, setting.key, setting.value)
        audit.record(tx, who, "config set", f"{setting.key}={setting.value}", 1)
    resolve(config.stored(tx), {})  # refuses what does not fit together


def _missing(tx: "Tx", names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names - {limit.name for limit in limits.all_limits(tx)}))


def _span(first: int, last: int) -> str | None:
    if not first:
        return None
    return str(first) if first == last else f"{first} to {last}"


class _Writer:
    """Writes jobs and runs chunk by chunk; a run goes where its job went."""

    def __init__(self, tx: "Tx", rules: Rules, *, is_empty: bool) -> None:
        self._tx = tx
        self._rules = rules
        self._is_empty = is_empty
        self._lanes: dict[tuple[str, str], int] = {}
        self._number: int | None = None
        self.jobs = self.runs = self.skipped = self.moved = self.waiting_again = self.first_seq = self.last_seq = 0
        self.skipped_ids: list[str] = []
        self.limit_names: set[str] = set()

    def write(self, chunk: "list[Spooled]") -> None:
        """Write one chunk; the first runs in it, or an input, may belong to the last job of the one before."""
        copies, moved = self._kept(_jobs_of(chunk))
        numbers = self._numbers(copies, moved)
        kept_runs: list[Attempt] = []
        kept_inputs: list[tuple[int, bytes]] = []
        for each in chunk:
            if isinstance(each, Job):
                self._number = numbers.get(each.seq)
            elif self._number is not None and isinstance(each, Input):
                kept_inputs.append((self._number, each.data))
            elif self._number is not None and isinstance(each, Attempt):
                kept_runs.append(_moved_run(each, self._number))
        if copies:
            adding.insert_as_they_are(self._tx, [self._placed(job, numbers[job.seq]) for job in copies])
        if kept_runs:
            attempts.insert_as_they_are(self._tx, kept_runs)
        if kept_inputs:
            inputs.insert(self._tx, kept_inputs)
        self.jobs += len(copies)
        self.runs += len(kept_runs)
        if copies:
            self.first_seq = min(self.first_seq or MAX_NUMBER, *numbers.values())
            self.last_seq = max(self.last_seq, *numbers.values())

    def _kept(self, copies: list[Job]) -> tuple[list[Job], frozenset[int]]:
        """Return the jobs that come in, and which of them get a fresh number."""
        if self._is_empty:
            return copies, frozenset()
        places = _places(self._tx, copies, self._rules)
        if places.clashes:
            raise Refused(f"{places.clashes[0]}, since just now", hint="import again; nothing was written")
        passed = [job.id for job in copies if job.seq in places.there]
        self.skipped += len(passed)
        self.skipped_ids += passed[: NAMED - len(self.skipped_ids)]
        self.moved += len(places.moved)
        return [job for job in copies if job.seq not in places.there], places.moved

    def _numbers(self, copies: list[Job], moved: frozenset[int]) -> dict[int, int]:
        """Return the number each job gets, by its number in the file."""
        fresh = [job.seq for job in copies if self._rules.renumber or job.seq in moved]
        numbers = {job.seq: job.seq for job in copies}
        if fresh:
            numbers.update(zip(fresh, self._tx.dialect.reserve_seqs(len(fresh)), strict=True))
        return numbers

    def _placed(self, job: Job, number: int) -> Job:
        lane = (job.queue, job.needs or "")
        if lane not in self._lanes:
            self._lanes[lane] = queues.lane_of(self._tx, *lane)
        if job.state not in FINAL:
            self.limit_names.update(names_in(job.limit_list, LIMIT))
        placed = job.replace(seq=number, lane_id=self._lanes[lane], state=job.state.value)
        if job.parked_for is not None:
            # Ready, and not parked: whoever held its limit may not be here to let it go. A claim parks it if need be.
            return placed.replace(state=State.PENDING.value, parked_for=None)
        if job.state is not State.PROCESSING:
            return placed
        stopped = placed.replace(worker_id=None, cancel_requested=0, units=None, updated_at=self._tx.now)
        if job.cancel_requested:  # as a rescue does: what somebody wanted stopped is not begun again
            now = self._tx.now
            return stopped.replace(state=State.CANCELLED.value, finished_at=now, error="cancelled while running")
        self.waiting_again += 1
        return stopped.replace(state=State.PENDING.value)


def _moved_run(run: Attempt, number: int) -> Attempt:
    """Return a run under the number of its job here; output files are named by number, so a new one has none."""
    outcome = None if run.outcome is None else run.outcome.value
    if number == run.job_seq:
        return run.replace(outcome=outcome)
    return run.replace(outcome=outcome, job_seq=number, output_file=None, stderr_file=None)


def _is_there(database: "Database", seq: int) -> bool:
    try:
        return seq > 0 and database.read(lambda tx: jobs.get(tx, seq)) is not None
    except StoreError:
        return False
