"""The hidden `queuectl _complete KIND PREFIX` behind the completion scripts: quick, silent, and never in the way."""

import os

from queuectl.actions.connect import locate, open_if_there
from queuectl.model.states import State
from queuectl.store import limits, offers, queues, schedules, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.store.database import Tx

LIMIT = 100
WIDTH = 60


def run(words: "Sequence[str]", db: str | None) -> int:
    """Print what can follow, one a line with a few words about it; nothing at all on any trouble."""
    try:
        kind, prefix = words
        database = open_if_there(locate(db, os.environ))
        if database is not None:
            for name, about in database.read(lambda tx: list(_found(tx, kind, prefix))):
                print(f"{name}\t{about}" if about else name)
    except Exception:  # noqa: BLE001 - whoever pressed TAB wants no error on the line being typed
        pass
    return 0


def _found(tx: "Tx", kind: str, prefix: str) -> "Iterable[tuple[str, str]]":
    if kind == "queues":
        return [
            (queue.name, "paused" if queue.paused_at else "")
            for queue in queues.all_queues(tx)
            if queue.name.startswith(prefix)
        ][:LIMIT]
    if kind == "limits":
        known = [limit for limit in limits.all_limits(tx) if limit.name.startswith(prefix)]
        return [(limit.name, str(limit.slots)) for limit in known[:LIMIT]]
    if kind == "schedules":
        return [
            (each.name, "paused" if each.paused_at else "")
            for each in schedules.all_schedules(tx)
            if each.name.startswith(prefix)
        ][:LIMIT]
    if kind == "tokens":
        return [(each.name, each.role.value) for each in tokens.all_tokens(tx) if each.name.startswith(prefix)][:LIMIT]
    if kind == "tags":
        return [(tag, "") for tag in offers.tags(tx, prefix, LIMIT)]
    if kind == "groups":
        return [(name, "") for name in offers.groups(tx, prefix, LIMIT)]
    states = tuple(State(name) for name in kind.removeprefix("ids:").split(",") if name)
    return [(offer.id, _about(offer)) for offer in offers.jobs_named(tx, states, prefix, LIMIT)]


def _about(offer: "offers.Offer") -> str:
    from queuectl.cli.text import short

    return short(f"{offer.state} {offer.line}", WIDTH)
