"""Submit: writing jobs into the store, one or a hundred thousand, all or none."""

from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreError
from queuectl.settings import resolve
from queuectl.store import audit, config, jobs, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx


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
        if given_ids and (taken := jobs.taken_ids(tx, given_ids)):
            raise Refused(
                f"job {taken[0]!r} exists already",
                hint=f"see it with: queuectl show {taken[0]}; nothing was added",
            )
        lanes = {queue: queues.lane_of(tx, queue) for queue in {spec.queue for spec in specs}}
        settings, _ = resolve(config.stored(tx), environ)
        seqs = jobs.insert(tx, specs, lanes, settings.max_retries)
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
