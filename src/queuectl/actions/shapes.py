"""Shapes of views: how queues and limits, with who uses them, look as JSON. Those of jobs are in model/shapes.py."""

from queuectl.model.queue import queue_settings_shape
from queuectl.model.shapes import counts_shape, time_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.gatekeeping import LimitSet, QueueSet
    from queuectl.store.overview import LaneView, LimitView, QueueView
    from queuectl.store.workers import Worker

    Shape = dict[str, object]


def queue_shape(view: "QueueView") -> "Shape":
    """Return a queue with how many jobs are in it."""
    queue = view.queue
    return {
        "queue": queue.name,
        "paused_at": time_shape(queue.paused_at),
        "created_at": time_shape(queue.created_at),
        **queue_settings_shape(queue),
        "next_start_at": time_shape(queue.next_start_at),
        **counts_shape(view.counts),
    }


def full_queue_shape(view: "QueueView", serve: "Sequence[Worker]", now: int) -> "Shape":
    """Return all that is known of a queue, with the workers that serve it."""
    oldest = view.oldest
    return {
        **queue_shape(view),
        "oldest_ready": None
        if oldest is None
        else {"id": oldest.id, "since": time_shape(ready_since(view)), "seconds": (now - ready_since(view)) / 1000},
        "workers": [worker.id for worker in serve],
        "lanes": [
            {
                "needs": list(lane.needs.labels),
                "use": lane.needs.use,
                "ready": lane.ready,
                "workers": able(lane, serve),
            }
            for lane in view.lanes
        ],
    }


def queue_set_shape(done: "QueueSet") -> "Shape":
    """Return what setting something for a queue came to."""
    changes = {setting: {"from": old, "to": new} for setting, (old, new) in done.changes.items()}
    return {
        "queue": done.queue.name,
        "created": done.is_new,
        "changes": changes,
        **queue_settings_shape(done.queue),
    }


def ready_since(view: "QueueView") -> int:
    """Return when the oldest ready job of a queue could have run, as far as its own time goes."""
    assert view.oldest is not None
    return max(view.oldest.created_at, view.oldest.run_at or 0)


def able(lane: "LaneView", serve: "Sequence[Worker]") -> int:
    """Return how many of these workers have what the jobs of a lane need."""
    return sum(worker.supply.could_take(lane.needs) for worker in serve)


def limit_shape(view: "LimitView") -> "Shape":
    """Return a limit or a mutex."""
    return {
        "name": view.name,
        "kind": view.kind,
        "slots": view.slots,
        "held": view.held,
        "waiting": view.waiting,
        "created_at": time_shape(view.created_at),
    }


def full_limit_shape(view: "LimitView") -> "Shape":
    """Return a limit or a mutex with who holds it and who is next."""
    holders = [
        {"id": job.id, "queue": job.queue, "worker": job.worker_id, "started_at": time_shape(job.started_at)}
        for job in view.holders
    ]
    return {**limit_shape(view), "holders": holders, "next": list(view.next)}


def limit_set_shape(done: "LimitSet") -> "Shape":
    """Return what setting a limit came to."""
    return {"limit": done.name, "slots": done.slots, "before": done.before, "released": done.released}
