"""Importing: what an export wrote, read and checked whole, then written, all or nothing. How is in landing.py."""

from contextlib import closing

from queuectl.actions.dependencies import find_cycle
from queuectl.actions.landing import Landing, places_of
from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreError
from queuectl.model.attempt import Attempt
from queuectl.model.group import Group
from queuectl.model.job import Job
from queuectl.model.limits import Limit
from queuectl.model.linereading import Reader
from queuectl.model.queue import Queue
from queuectl.model.schedule import Schedule
from queuectl.model.transfer import End, Header, SettingLine
from queuectl.model.value import Value
from queuectl.settings import parse, resolve, shown
from queuectl.store import audit, config, groups, jobs, limits, queues, schedules
from queuectl.system.spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queuectl.actions.landing import Places, Rules, Spooled
    from queuectl.store.database import Database, Tx

NAMED = 5
MOST_OF_A_CIRCLE = 12
BACKUP_BEGINS = b"SQLite format 3\0"
WRITE_SECONDS = 3600.0


class Imported(Value):
    """What an import did."""

    jobs: int
    runs: int
    queues: int
    limits: int
    schedules: int
    groups: int
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
    held: int
    """Jobs that waited for others which are neither in the file nor here: a person must release them."""
    held_ids: tuple[str, ...]
    """The first few of them."""


class Contents(Value):
    """What a file holds, checked: small things here, jobs and runs in the spool."""

    header: Header
    end: End
    queues: tuple[Queue, ...]
    limits: tuple[Limit, ...]
    schedules: tuple[Schedule, ...]
    groups: tuple[Group, ...]
    settings: tuple[SettingLine, ...]
    last_number: int
    parents: frozenset[int]
    """The jobs that others run after, by their number in the file."""
    spool: "Spool[Spooled]"


def import_lines(database: "Database", lines: "Iterable[bytes]", *, rules: "Rules", who: str) -> Imported:
    """Check every line, then write them all in one transaction, or raise and write none."""
    contents = read_lines(lines)
    with closing(contents.spool):
        return import_contents(database, contents, rules=rules, who=who)


def read_lines(lines: "Iterable[bytes]") -> Contents:
    """Read and check a whole file; jobs and runs are put aside on disk, so that memory stays small."""
    reader = Reader()
    spool: Spool[Spooled] = Spool()
    known: list[Queue | Limit | Schedule | Group] = []
    known_settings: list[SettingLine] = []
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
                    if reader.extras.input is not None or reader.extras.after or job.unique_key is not None:
                        spool.put(reader.extras, len(reader.extras.input or b""))
                case Attempt() as run:
                    spool.put(run, len(data))
                case Queue() | Limit() | Schedule() | Group() as small:
                    known.append(small)
                case SettingLine() as setting:
                    known_settings.append(_checked_setting(number, setting))
                case _:
                    pass
        header, end = reader.finish()
        _refuse_circle(reader.waiting)
    except BaseException:
        spool.close()
        raise
    return Contents(
        header=header,
        end=end,
        queues=tuple(each for each in known if isinstance(each, Queue)),
        limits=tuple(each for each in known if isinstance(each, Limit)),
        schedules=tuple(each for each in known if isinstance(each, Schedule)),
        groups=tuple(each for each in known if isinstance(each, Group)),
        settings=tuple(known_settings),
        last_number=last_number,
        parents=frozenset(reader.parents),
        spool=spool,
    )


def import_contents(database: "Database", contents: Contents, *, rules: "Rules", who: str) -> Imported:
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


def _refuse_circle(waiting: "dict[str, list[str]]") -> None:
    if circle := find_cycle(waiting):
        raise BadInput(
            f"jobs of the file wait for each other in a circle: {' -> '.join(circle[:MOST_OF_A_CIRCLE])}",
            hint="no store holds such jobs; export again; nothing was written",
        )


def _is_empty_and_free(tx: "Tx", contents: Contents, rules: "Rules") -> bool:
    """Whether the store has no job; raises when it has some and the file's places are taken."""
    if not jobs.has_any(tx):
        return True
    _refuse_clashes(contents, rules, (places_of(tx, chunk, rules) for chunk in contents.spool.chunks()))
    return False


def _refuse_clashes(contents: Contents, rules: "Rules", found: "Iterable[Places]") -> None:
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


def _way_out(rules: "Rules") -> str:
    fresh = "--renumber gives fresh numbers (ids people gave, and unique keys, must be free)"
    if rules.skip_existing:
        return fresh
    return "--skip-existing passes by what is there already" + ("" if rules.renumber else f", {fresh}")


def _write_all(tx: "Tx", contents: Contents, rules: "Rules", who: str) -> tuple[Imported, int]:
    """Write queues, limits, groups, settings, jobs and runs; return what was done and the number of the last job."""
    made = [queue.name for queue in contents.queues if queues.create_as_it_was(tx, queue)]
    made_limits = [limit.name for limit in contents.limits if limits.create_as_it_was(tx, limit)]
    made_schedules = [
        schedule.name for schedule in contents.schedules if schedules.insert(tx, _planned(schedule, tx.now))
    ]
    is_taking_settings = rules.settings or not config.stored(tx)
    if is_taking_settings:
        _store_settings(tx, contents.settings, who)
    made_groups = [group.name for group in contents.groups if groups.create_as_it_was(tx, group)]
    writer = Landing(
        tx, rules, is_empty=not jobs.has_any(tx), new_groups=frozenset(made_groups), parents=contents.parents
    )
    for chunk in contents.spool.chunks():
        writer.write(chunk)
    writer.finish()
    audit.record(tx, who, "import", _span(writer.first_seq, writer.last_seq), writer.jobs)
    if writer.jobs or made or made_schedules or contents.settings:
        tx.wake()
    done = Imported(
        jobs=writer.jobs,
        runs=writer.runs,
        queues=len(made),
        limits=len(made_limits),
        schedules=len(made_schedules),
        groups=len(made_groups),
        settings=len(contents.settings) if is_taking_settings else 0,
        skipped=writer.skipped,
        skipped_ids=tuple(writer.skipped_ids),
        moved=writer.moved,
        settings_left=0 if is_taking_settings else len(contents.settings),
        waiting_again=writer.waiting_again,
        limits_missing=_missing(tx, writer.limit_names),
        held=len(writer.held),
        held_ids=tuple(writer.held[:NAMED]),
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


def _is_there(database: "Database", seq: int) -> bool:
    try:
        return seq > 0 and database.read(lambda tx: jobs.get(tx, seq)) is not None
    except StoreError:
        return False
