"""Deadlines: burying the jobs whose time is over while they wait. Those that run are stopped by their worker."""

from queuectl.actions.endings import follow
from queuectl.store import deadlines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx

EXPIRED_AT_ONCE = 200


def expire_overdue(database: "Database", most: int = EXPIRED_AT_ONCE) -> bool:
    """Bury one portion of the jobs whose deadline passed while they waited; True means there may be more.

    Looked for first: most of the time there are none, and then nobody's write waits for this one.
    """
    if not database.read(deadlines.has_overdue):
        return False

    def work(tx: "Tx") -> int:
        looked_at, dead = deadlines.expire_overdue(tx, most)
        follow(tx, dead)
        return looked_at

    return database.write(work) == most
