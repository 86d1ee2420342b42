"""Deadlines: burying the jobs whose time is over while they wait. Those that run are stopped by their worker."""

from queuectl.store import deadlines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database

EXPIRED_AT_ONCE = 200


def expire_overdue(database: "Database", most: int = EXPIRED_AT_ONCE) -> bool:
    """Bury one portion of the jobs whose deadline passed while they waited; True means there may be more.

    Looked for first: most of the time there are none, and then nobody's write waits for this one.
    """
    if not database.read(deadlines.has_overdue):
        return False
    return database.write(lambda tx: deadlines.expire_overdue(tx, most)) == most
