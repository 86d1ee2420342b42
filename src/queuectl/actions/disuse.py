"""Disuse: forgetting the needs that no job has any more, since a claim looks at every lane, and old fires."""

from queuectl.store import jobs, lanes, schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx

SPARED = 100
"""So many different needs cost little, and looking for those in disuse costs a walk over all jobs."""
MOST_BATCHES = 20


def forget_fires(database: "Database") -> int:
    """Forget what came of instants of long ago, a batch per transaction; return how many."""
    gone = 0
    for name in database.read(schedules.crowded):
        for _ in range(MOST_BATCHES):
            forgotten = database.write(lambda tx, name=name: schedules.forget(tx, name))  # type: ignore[misc]
            gone += forgotten
            if forgotten < schedules.MOST_FORGOTTEN:
                break
    return gone


def forget_needs(database: "Database", spared: int = SPARED) -> int:
    """Forget the lanes of needs that no job, also none that is over, stands in; return how many."""

    def unused(tx: "Tx") -> list[int]:
        of_needs = [lane.id for lane in lanes.all_lanes(tx) if lane.needs]
        if len(of_needs) <= spared:
            return []
        used = jobs.used_lanes(tx)
        return [lane_id for lane_id in of_needs if lane_id not in used]

    def work(tx: "Tx") -> int:
        tx.dialect.keep_out("lanes")  # else a job that is just being added could come to stand in none
        return lanes.drop(tx, unused(tx))

    return database.write(work) if database.read(unused) else 0
