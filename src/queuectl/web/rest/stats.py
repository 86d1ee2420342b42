"""Statistics over REST: what came of the runs that ended within the last hour, day or week."""

from typing import Annotated

from fastapi import APIRouter, Query

from queuectl.actions.gatekeeping import unknown_queue
from queuectl.model.checks import check_name
from queuectl.model.stats import Range
from queuectl.model.statshapes import stats_shape
from queuectl.model.verdict import Result
from queuectl.store import error_groups, queues, stats
from queuectl.web.given import Given
from queuectl.web.rest.documenting import documented
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

_COUNTS = {
    "runs": 41,
    "completed": 40,
    "failures": 1,
    "results": {**dict.fromkeys([result.value for result in Result], 0), "completed": 40, "failed": 1},
}
_STATS = {
    "range": "1h",
    "since": "2026-11-16T09:01:00.000Z",
    "until": "2026-11-16T10:01:00.000Z",
    "now": "2026-11-16T10:00:12.345Z",
    "bucket_seconds": 60,
    "queue": None,
    "total": _COUNTS,
    "wait": {"count": 41, "p50_ms": 12, "p95_ms": 80, "max_ms": 140},
    "run_time": {"count": 41, "p50_ms": 1200, "p95_ms": 4100, "max_ms": 9000},
    "today": {"since": "2026-11-16T00:00:00.000Z", "completed": 512},
    "failing": [
        {
            "error": "exit code 3",
            "count": 1,
            "last_at": "2026-11-16T09:30:00.000Z",
            "sample": "812",
            "text": "exit code 3",
        }
    ],
    "buckets": [{"at": "2026-11-16T09:01:00.000Z", **_COUNTS}],
}

router = APIRouter(prefix="/stats", tags=["stats"])


@router.get("", **documented(answer="stats", example=_STATS, problems=[404]))
def show_stats(
    stores: Given,
    _visitor: Reader,
    range_: Annotated[str, Query(alias="range", description="1h, 24h or 7d", examples=["24h"])] = Range.HOUR.value,
    queue: Annotated[str | None, Query(description="only runs of this queue")] = None,
) -> "Shape":
    """Tell what came of the runs of a range of time, counted afresh, and how long jobs waited and ran."""
    over = Range.read(range_)
    name = None if queue is None else check_name("queue", queue)

    def look(tx: "Tx") -> "Shape":
        if name is not None and queues.get(tx, name) is None:
            raise unknown_queue(tx, name)
        return stats_shape(stats.stats(tx, over, name), error_groups.failing(tx, over, name))

    return stores.read(look)
