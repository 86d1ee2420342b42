"""Submit: writing jobs into the store, one or a hundred thousand, all or none."""

from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreError, did_you_mean
from queuectl.model.limits import LIMIT, names_in
from queuectl.settings import resolve
from queuectl.store import adding, audit, config, jobs, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx

MOST_LOCKED = 100


def submit(database: "Database", specs: "Sequence[JobSpec]", *, who: str, environ: "Mapping[str, str]") -> list[str]:
    """Write jobs in one transaction and return their ids; a duplicate id refuses them all.

    When the answer to the COMMIT is lost, the numbers it would have used tell whether it was made.
    """
    if not specs:
        return []
    given_ids = _given_ids(specs)
    ids: list[str] = []
    last_seq = 0

    def work(tx: "Tx") -> list[str]:
        nonlocal last_seq, ids
        if given_ids and (taken := adding.taken_ids(tx, given_ids)):
            raise Refused(
                f"job {taken[0]!r} exists already",
                hint=f"see it with: queuectl show {taken[0]}; nothing was added",
            )
        settings, _ = resolve(config.stored(tx), environ)
        terms = _terms(tx, specs, settings.max_retries)
        parked = _parked(tx, specs)
        seqs = adding.insert(tx, specs, terms, parked)
        if limited := [spec for spec in specs if spec.mutexes or spec.limits]:
            _let_go(tx, limited)
        if any(spec.input is not None for spec in specs):
            from queuectl.store import inputs  # few jobs bring one

            inputs.insert(
                tx, ((seq, spec.input) for seq, spec in zip(seqs, specs, strict=True) if spec.input is not None)
            )
        last_seq = seqs[-1]
        ids = [spec.given_id or str(seq) for spec, seq in zip(specs, seqs, strict=True)]
        audit.record(tx, who, "enqueue", ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}", len(ids))
        tx.wake()
        return ids

    try:
        return database.write(work)
    except CommitInDoubt as error:
        if _is_there(database, last_seq):
            return ids
        names = ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
        error.hint = f"{names} may have been added all the same; look before you repeat it: queuectl show {ids[-1]}"
        raise


def _terms(tx: "Tx", specs: "Sequence[JobSpec]", max_retries: int) -> dict[str, adding.Terms]:
    """Return what the queues of some jobs give them, and their lanes; makes what is not there."""
    terms: dict[str, adding.Terms] = {}
    for name, needs in {(spec.queue, spec.needs_text) for spec in specs}:
        lane_id = queues.lane_of(tx, name, needs)
        if name in terms:
            terms[name].lanes[needs] = lane_id
            continue
        queue = queues.get(tx, name)
        assert queue is not None
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
    limited = {place: spec for place, spec in enumerate(specs) if spec.mutexes or spec.limits}
    if not limited:
        return {}
    keys = {key for spec in limited.values() for key in spec.limit_keys}
    refuse_unknown_limits(tx, keys)
    if len(keys) > MOST_LOCKED:
        return {}  # too many to lock; a claim that meets them parks them
    return {
        place: spec.limit_keys[0]
        for place, spec in limited.items()
        if not spec.hold and spec.run_at is None and spec.delay_ms is None
    }


def _let_go(tx: "Tx", specs: "Sequence[JobSpec]") -> None:
    """Put those in the line for which there is room. Locked at the end alone: a large batch takes seconds to write."""
    keys = {key for spec in specs for key in spec.limit_keys}
    if len(keys) > MOST_LOCKED:
        keys = {key for key in keys if key.startswith(LIMIT)}
    from queuectl.store import parking  # most jobs name no limit, and start-up time counts

    tx.lock(keys)
    refuse_unknown_limits(tx, keys)  # again: whoever deletes one locks it, too
    parking.release(tx, keys)


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


def _given_ids(specs: "Sequence[JobSpec]") -> list[str]:
    """Return the ids people gave, each once, or raise."""
    given: dict[str, None] = {}
    for spec in specs:
        if spec.given_id in given:
            raise BadInput(f"id {spec.given_id!r} is given twice", hint="give each job its own id; nothing was added")
        if spec.given_id is not None:
            given[spec.given_id] = None
    return list(given)
