"""Parking: finding jobs that wait for a limit which has room, should a release ever have passed one by.

A settle lets the next ones go by itself. It passes by a job that somebody is just editing, and a person who takes the
next job out of the line may do so while another is being parked; this finds such jobs within seconds.
"""

from queuectl.store import limits, parking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx


def let_go(database: "Database", after: str = "") -> tuple[str, int]:
    """Look at some of the limits that jobs wait for and let go who can; return where to go on, and how many went."""

    def look(tx: "Tx") -> tuple[list[str], list[str]]:
        keys = parking.parked_keys(tx, after)
        return keys, [key for key, room in limits.rooms(tx, keys).items() if room > 0] if keys else []

    def work(tx: "Tx", key: str) -> int:
        tx.lock([key])
        return parking.release(tx, [key])

    keys, roomy = database.read(look)
    moved = sum(database.write(lambda tx, key=key: work(tx, key)) for key in roomy)  # type: ignore[misc]
    return keys[-1] if len(keys) == parking.KEYS_AT_ONCE else "", moved
