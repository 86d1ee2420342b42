"""Once: adding jobs under a key, so that whoever asks again, unsure of being heard, adds nothing twice."""

import json

from queuectl.actions.shapes import entry_shape
from queuectl.actions.submit import add, refuse_twins
from queuectl.errors import BadInput, CommitInDoubt, StoreError
from queuectl.model.units import DAY_MS
from queuectl.model.value import Value
from queuectl.store import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database, Tx

    Shape = dict[str, object]

KEPT_MS = DAY_MS


class Answered(Value):
    """What became of jobs that were handed in, now or when they were handed in first."""

    entries: "list[Shape]"
    is_replayed: bool


def enter_once(
    database: "Database",
    specs: "Sequence[JobSpec]",
    *,
    key: str,
    fingerprint: str,
    who: str,
    environ: "Mapping[str, str]",
) -> Answered:
    """Write jobs and what is answered in one transaction; a key that was used before brings that answer again.

    Keys are of whoever uses them. The same key for something else (another fingerprint) is refused.
    """
    refuse_twins(spec.given_id for spec in specs)
    own = f"{who} {key}"

    def work(tx: "Tx") -> Answered:
        if not requests.take(tx, own, fingerprint, tx.now + KEPT_MS):
            return _replayed(tx, own, key, fingerprint)
        entries = [entry_shape(entry) for entry in add(tx, specs, who=who, environ=environ)] if specs else []
        requests.answer(tx, own, json.dumps(entries))
        return Answered(entries=entries, is_replayed=False)

    try:
        return database.write(work)
    except CommitInDoubt:
        try:  # had it been made, its answer is there
            return database.read(lambda tx: _replayed(tx, own, key, fingerprint)).replace(is_replayed=False)
        except (StoreError, BadInput):
            pass
        raise


def _replayed(tx: "Tx", own: str, key: str, fingerprint: str) -> Answered:
    before = requests.get(tx, own)
    if before is None or before.fingerprint != fingerprint:
        raise BadInput(
            f"the key {key!r} was used for another request",
            hint="give each request a key of its own; keep it to repeat",
        )
    return Answered(entries=json.loads(before.answer), is_replayed=True)
