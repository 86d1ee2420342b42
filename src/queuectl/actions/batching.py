"""Batching: adding the jobs of a batch, as one by one but for the time it takes. Whatever needs more is submit.py's."""

from queuectl.actions.submit import Added, announce, commit, enter, refuse_taken, refuse_twins, terms_of
from queuectl.settings import resolve
from queuectl.store import adding, config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.submit import Entry
    from queuectl.model.batch import Batch
    from queuectl.store.database import Database, Tx

# What concerns more than the job that says it.
_SHARED = ("after", "unique_key", "group", "mutexes", "limits", "at_most", "input")


def enter_batch(database: "Database", batch: "Batch", *, who: str, environ: "Mapping[str, str]") -> "Sequence[Entry]":
    """Write jobs in one transaction and return what became of each; a duplicate id refuses them all."""
    if not batch or not _is_alike(batch):
        return enter(database, list(batch), who=who, environ=environ)
    refuse_twins(batch.given_ids)
    return commit(database, lambda tx: _add(tx, batch, who, environ))


def _is_alike(batch: "Batch") -> bool:
    """Whether its jobs differ in columns of their own alone, and none concerns others."""
    return batch.names <= adding.COLUMN_FIELDS and all(getattr(batch.base, name) in (None, ()) for name in _SHARED)


def _add(tx: "Tx", batch: "Batch", who: str, environ: "Mapping[str, str]") -> Added:
    settings, _ = resolve(config.stored(tx), environ)
    seqs = tx.dialect.reserve_seqs(len(batch))
    given_ids = batch.given_ids
    refuse_taken(tx, [name for name in given_ids if name is not None])
    terms = terms_of(tx, {(batch.base.queue, batch.base.needs_text)}, settings.max_retries)
    adding.insert_alike(tx, batch, seqs, terms)
    entries = Added(seqs, [name or str(seq) for name, seq in zip(given_ids, seqs, strict=True)])
    announce(tx, entries, who=who)
    return entries
