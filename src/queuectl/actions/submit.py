"""Submit: writing jobs into the store, all or none. Many that differ in little go by batching.py."""

from collections.abc import Sequence
from enum import StrEnum

from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreError, did_you_mean
from queuectl.model.limits import LIMIT, names_in
from queuectl.model.states import State
from queuectl.model.unique import OnConflict
from queuectl.model.value import Value
from queuectl.settings import resolve
from queuectl.store import adding, audit, config, jobs, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import TypeVar

    from queuectl.model.after import Parent
    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx

    Entries = TypeVar("Entries", bound="Sequence[Entry]")

MOST_LOCKED = 100


class Fate(StrEnum):
    """What became of a job that was handed in."""

    ADDED = "added"
    ATTACHED = "attached"
    SKIPPED = "skipped"


class Entry(Value):
    """A job that was handed in: its own number and id, or those of the one that has its key."""

    seq: int
    id: str
    fate: Fate = Fate.ADDED
    note: str | None = None
    """What a person should know of it."""
    is_removed: bool = False
    """Whether the one that has its key completed and was removed since."""


class Added(Sequence[Entry]):
    """Entries of jobs that were all added, and of which nothing else is to be known; each made when looked at."""

    __slots__ = ("ids", "seqs")

    def __init__(self, seqs: "Sequence[int]", ids: "Sequence[str]") -> None:
        self.seqs = seqs
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self.ids)))]
        return Entry(seq=self.seqs[place], id=self.ids[place])

    def __iter__(self) -> "Iterator[Entry]":
        return (Entry(seq=seq, id=name) for seq, name in zip(self.seqs, self.ids, strict=True))


def ids_of(entries: "Sequence[Entry]") -> "Sequence[str]":
    """Return the ids people may use for jobs that were handed in, but for those that were skipped."""
    return entries.ids if isinstance(entries, Added) else [each.id for each in entries if each.fate is not Fate.SKIPPED]


def notes_of(entries: "Sequence[Entry]") -> list[str]:
    """Return what a person should know of jobs that were handed in."""
    return [] if isinstance(entries, Added) else [each.note for each in entries if each.note is not None]


def submit(database: "Database", specs: "Sequence[JobSpec]", *, who: str, environ: "Mapping[str, str]") -> list[str]:
    """Write jobs in one transaction and return the ids people may use for them, but for those that were skipped."""
    return list(ids_of(enter(database, specs, who=who, environ=environ)))


def enter(database: "Database", specs: "Sequence[JobSpec]", *, who: str, environ: "Mapping[str, str]") -> list[Entry]:
    """Write jobs in one transaction and return what became of each; a duplicate id refuses them all."""
    if not specs:
        return []
    refuse_twins(spec.given_id for spec in specs)
    return commit(database, lambda tx: add(tx, specs, who=who, environ=environ))


def commit(database: "Database", work: "Callable[[Tx], Entries]") -> "Entries":
    """Add jobs in one transaction and return what became of each.

    When the answer to the COMMIT is lost, the numbers it would have used tell whether it was made.
    """
    made: list[Entries] = []

    def kept(tx: "Tx") -> "Entries":
        made.append(work(tx))
        return made[-1]

    try:
        return database.write(kept)
    except CommitInDoubt as error:
        entries = made[-1]
        added = [entry for entry in entries if entry.fate is Fate.ADDED]
        if not added or _is_there(database, added[-1].seq):
            return entries
        names = _span(added)
        error.hint = (
            f"{names} may have been added all the same; look before you repeat it: queuectl show {added[-1].id}"
        )
        raise


def add(
    tx: "Tx",
    specs: "Sequence[JobSpec]",
    *,
    who: str,
    environ: "Mapping[str, str] | None" = None,
    why: str = "",
) -> list[Entry]:
    """Write jobs in an open transaction and return what became of each; `why` is put on record beside their ids."""
    settings, _ = resolve(config.stored(tx), environ or {})
    if any(spec.unique_key is not None for spec in specs):
        entries, ours = _add_unique(tx, specs, settings.max_retries)
    else:
        seqs = tx.dialect.reserve_seqs(len(specs))
        entries = ours = _write(tx, specs, seqs, settings.max_retries)
    if ours:
        announce(tx, ours, who=who, why=why)
    return entries


def announce(tx: "Tx", entries: "Sequence[Entry]", *, who: str, why: str = "") -> None:
    """Put on record that jobs were added, and have workers look for them."""
    audit.record(tx, who, "enqueue", f"{_span(entries)}{why}", len(entries))
    tx.wake()


def _write(
    tx: "Tx",
    specs: "Sequence[JobSpec]",
    seqs: "Sequence[int]",
    max_retries: int,
    aliases: "Mapping[str, int] | None" = None,
) -> list[Entry]:
    """Write jobs whose keys are theirs under reserved numbers; `aliases` are other names for them, by their place."""
    refuse_taken(tx, [spec.given_id for spec in specs if spec.given_id is not None])
    limited = [spec for spec in specs if spec.names_limits]
    if any(spec.group is not None for spec in specs):
        if limited:
            tx.lock(_limits_to_lock(limited))  # as whoever settles does: limits, then groups, then jobs
        _join_groups(tx, specs)
    graph = None
    if any(spec.after for spec in specs):
        from queuectl.actions.dependencies import Graph  # most jobs wait for none

        graph = Graph(tx, specs, aliases)
        specs = graph.specs
    terms = terms_of(tx, {(spec.queue, spec.needs_text) for spec in specs}, max_retries)
    adding.insert(tx, specs, seqs, terms, _parked(tx, specs) if limited else {})
    if limited:
        _let_go(tx, limited)
    if any(spec.input is not None for spec in specs):
        from queuectl.store import inputs  # few jobs bring one

        inputs.insert(tx, ((seq, spec.input) for seq, spec in zip(seqs, specs, strict=True) if spec.input is not None))
    notes: dict[int, str] = {}
    if graph is not None:
        from queuectl.actions.endings import follow

        graph.link(seqs)
        starved = graph.tell()
        notes = {job.seq: f"warning: job {job.id} is cancelled already: {job.error}" for job in starved}
        follow(tx, starved)
    added, of_row = Fate.ADDED, Entry.of_row
    return [
        of_row((seq, spec.given_id or str(seq), added, notes.get(seq), False))
        for spec, seq in zip(specs, seqs, strict=True)
    ]


def _add_unique(tx: "Tx", specs: "Sequence[JobSpec]", max_retries: int) -> "tuple[list[Entry], list[Entry]]":
    """Write jobs of which some have keys; return what became of each, and those that were written."""
    from queuectl.actions.uniqueness import Keys

    keys = Keys(tx, specs)
    places = [place for place in range(len(specs)) if place not in keys.conflicts and place not in keys.twins]
    seqs = tx.dialect.reserve_seqs(len(places)) if places else []
    waits = keys.take(places, seqs)
    numbers = dict(zip(places, seqs, strict=True))
    ours = [place for place in places if place not in keys.conflicts]
    at = {place: number for number, place in enumerate(ours)}
    stands_for: dict[str, str | None] = {}
    aliases: dict[str, int] = {}
    for place in (*keys.conflicts, *keys.twins):
        name, chosen = specs[place].given_id, keys.twins.get(place, place)
        if name is not None and chosen in at:
            aliases[name] = at[chosen]
        elif name is not None:
            holder = jobs.get(tx, keys.conflicts[chosen].seq)
            stands_for[name] = None if holder is None else str(holder.seq)
    mine = [_redirected(specs[place], stands_for, waits.get(place, ())) for place in ours]
    written = _write(tx, mine, [numbers[place] for place in ours], max_retries, aliases) if ours else []
    entries = dict(zip(ours, written, strict=True))
    for place, old in keys.replaced.items():
        how = "is being stopped" if old.state is State.PROCESSING else "is cancelled"
        note = f"job {entries[place].id} takes the place of job {old.id}, which {how}"
        entries[place] = entries[place].replace(note=note)
    for place, conflict in keys.conflicts.items():
        entries[place] = _conflicting(tx, specs[place], conflict.seq, is_attached=conflict.is_attached)
    for place, twin in keys.twins.items():
        is_skipped = specs[place].on_conflict == OnConflict.SKIP
        entries[place] = entries[twin].replace(fate=Fate.SKIPPED if is_skipped else Fate.ATTACHED)
    return [entries[place] for place in range(len(specs))], written


def _redirected(spec: "JobSpec", stands_for: "Mapping[str, str | None]", waits: "tuple[Parent, ...]") -> "JobSpec":
    """Return a job that waits for those that stand for the ones it names, and for what it replaces.

    One that is removed by now, and has its key all the same, has completed.
    """
    if not spec.after and not waits:
        return spec
    from queuectl.model.after import Kind

    after: list[Parent] = []
    for parent in spec.after:
        other = stands_for.get(parent.id, parent.id)
        if other is not None:
            after.append(parent.replace(id=other))
        elif parent.kind is Kind.FAIL:
            raise BadInput(
                f"{spec.given_id or 'a job'} is to run after {parent.text}, which stands for a job that completed",
                hint="leave it out; nothing was added",
            )
    return spec.replace(after=(*after, *waits))


def _conflicting(tx: "Tx", spec: "JobSpec", seq: int, *, is_attached: bool) -> Entry:
    job = jobs.get(tx, seq)
    name, where = (str(seq), " (removed by now)") if job is None else (job.id, "")
    what = "it stands for this one" if is_attached else "this one is skipped"
    return Entry(
        seq=seq,
        id=name,
        fate=Fate.ATTACHED if is_attached else Fate.SKIPPED,
        note=f"job {name}{where} has the key {spec.unique_key!r}; {what}",
        is_removed=job is None,
    )


def _join_groups(tx: "Tx", specs: "Sequence[JobSpec]") -> None:
    from queuectl.actions.endings import closing_text
    from queuectl.store import groups  # few jobs are of one

    members: dict[str, list[JobSpec]] = {}
    for spec in specs:
        if spec.group is not None:
            members.setdefault(spec.group, []).append(spec)
    for name, joining in sorted(members.items()):
        last = {
            "max_failures": next((spec.max_failures for spec in reversed(joining) if spec.max_failures), None),
            "on_done": next((closing_text(spec) for spec in reversed(joining) if spec.on_group_done), None),
        }
        groups.join(tx, name, len(joining), **last)
        group = groups.get(tx, name)
        if group is not None and group.stopped_at is not None:
            raise Refused(
                f"group {name!r} was stopped: more than {group.max_failures} of its jobs failed",
                hint=f"see: queuectl status --group {name}; let it go on with: queuectl retry --group {name}; "
                "nothing was added",
            )


def refuse_taken(tx: "Tx", given_ids: "Sequence[str]") -> None:
    """Refuse an id that a job has already."""
    if given_ids and (taken := adding.taken_ids(tx, given_ids)):
        raise Refused(
            f"job {taken[0]!r} exists already", hint=f"see it with: queuectl show {taken[0]}; nothing was added"
        )


def _span(entries: "Sequence[Entry]") -> str:
    return entries[0].id if len(entries) == 1 else f"{entries[0].id} to {entries[-1].id}"


def terms_of(tx: "Tx", lines: "Collection[tuple[str, str]]", max_retries: int) -> dict[str, adding.Terms]:
    """Return what queues give their jobs, and the lanes for what these need; makes what is not there."""
    terms: dict[str, adding.Terms] = {}
    for name, needs in lines:
        lane_id, queue = queues.lane_and_queue(tx, name, needs)
        if name in terms:
            terms[name].lanes[needs] = lane_id
            continue
        terms[name] = adding.Terms(
            lanes={needs: lane_id},
            max_retries=max_retries if queue.max_retries is None else queue.max_retries,
            priority=queue.priority or 0,
            timeout_ms=queue.timeout_ms,
        )
    return terms


def _parked(tx: "Tx", specs: "Sequence[JobSpec]") -> dict[int, str]:
    """Return which jobs wait for a limit from the start, by their place, and for which.

    All that name one: those for which there is room are let go when all are written. However many jobs name a mutex,
    the line so holds few of them, and a claim need not pass the others by.
    """
    limited = {place: spec for place, spec in enumerate(specs) if spec.names_limits}
    keys = {key for spec in limited.values() for key in spec.limit_keys}
    refuse_unknown_limits(tx, keys)
    if len(keys) > MOST_LOCKED:
        return {}  # too many to lock; a claim that meets them parks them
    return {
        place: spec.limit_keys[0]
        for place, spec in limited.items()
        if not spec.hold and not spec.after and spec.run_at is None and spec.delay_ms is None
    }


def _let_go(tx: "Tx", specs: "Sequence[JobSpec]") -> None:
    """Put those in the line for which there is room. Locked at the end alone: a large batch takes seconds to write."""
    keys = _limits_to_lock(specs)
    from queuectl.store import parking  # most jobs name no limit, and start-up time counts

    tx.lock(keys)
    refuse_unknown_limits(tx, keys)  # again: whoever deletes one locks it, too
    parking.release(tx, keys)


def _limits_to_lock(specs: "Sequence[JobSpec]") -> set[str]:
    """Return what is locked for jobs that name limits: of too many only those that somebody may delete."""
    keys = {key for spec in specs for key in spec.limit_keys}
    return keys if len(keys) <= MOST_LOCKED else {key for key in keys if key.startswith(LIMIT)}


def refuse_unknown_limits(tx: "Tx", keys: "Collection[str]", what: str = "added") -> None:
    """Refuse a job that names a limit nobody made; `what` is not done then."""
    from queuectl.store import limits  # as above

    known = [limit.name for limit in limits.all_limits(tx)]
    for name in names_in(sorted(keys), LIMIT):
        if name not in known:
            hint = f"make it with: queuectl limit set {name} 4; nothing was {what}"
            raise BadInput(f"no limit {name!r}{did_you_mean(name, known)}", hint=hint)


def _is_there(database: "Database", seq: int) -> bool:
    """Whether a job can be seen; a store that cannot be reached again shows nothing."""
    try:
        return database.read(lambda tx: jobs.get(tx, seq)) is not None
    except StoreError:
        return False


def refuse_twins(given_ids: "Iterable[str | None]") -> None:
    """Refuse an id that two jobs are to have."""
    given: set[str] = set()
    for name in given_ids:
        if name is not None:
            if name in given:
                raise BadInput(f"id {name!r} is given twice", hint="give each job its own id; nothing was added")
            given.add(name)
