"""Submit: writing jobs into the store, one or a hundred thousand, all or none."""

from queuectl.errors import BadInput, Refused
from queuectl.settings import resolve
from queuectl.store import audit, config, jobs, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx


def submit(database: "Database", specs: "Sequence[JobSpec]", *, who: str, environ: "Mapping[str, str]") -> list[str]:
    """Write jobs in one transaction and return their ids; a duplicate id refuses them all."""
    given_ids = _given_ids(specs)

    def work(tx: "Tx") -> list[str]:
        if given_ids and (taken := jobs.taken_ids(tx, given_ids)):
            raise Refused(
                f"job {taken[0]!r} exists already",
                hint=f"see it with: queuectl show {taken[0]}; nothing was added",
            )
        lanes = {queue: queues.lane_of(tx, queue) for queue in {spec.queue for spec in specs}}
        settings, _ = resolve(config.stored(tx), environ)
        seqs = jobs.insert(tx, specs, lanes, settings.max_retries)
        ids = [spec.given_id or str(seq) for spec, seq in zip(specs, seqs, strict=True)]
        audit.record(tx, who, "enqueue", ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}", len(ids))
        tx.wake()
        return ids

    return database.write(work) if specs else []


def _given_ids(specs: "Sequence[JobSpec]") -> list[str]:
    """Return the ids people gave, each once, or raise."""
    given: dict[str, None] = {}
    for spec in specs:
        if spec.given_id in given:
            raise BadInput(f"id {spec.given_id!r} is given twice", hint="give each job its own id; nothing was added")
        if spec.given_id is not None:
            given[spec.given_id] = None
    return list(given)
