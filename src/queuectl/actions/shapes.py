"""Shapes of views: queues, limits, groups, schedules and what was done as JSON. Jobs are in model/shapes.py."""

from queuectl.model.queue import queue_settings_shape
from queuectl.model.scheduleshapes import fire_shape, schedule_shape
from queuectl.model.shapes import changes_shape, counts_shape, time_shape
from queuectl.model.units import iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.acts import Done
    from queuectl.actions.error_groups import Canary
    from queuectl.actions.gatekeeping import LimitSet, QueueSet
    from queuectl.actions.scene import Gate
    from queuectl.actions.standing import Standing
    from queuectl.actions.submit import Entry
    from queuectl.model.schedule import Schedule
    from queuectl.model.states import State
    from queuectl.store.audit import Act
    from queuectl.store.group_views import GroupView
    from queuectl.store.overview import LaneView, LimitView, QueueView
    from queuectl.store.schedules import LastFire
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
    """Return since when the oldest ready job of a queue has been ready."""
    assert view.oldest is not None
    return view.oldest.ready_at


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


def group_shape(view: "GroupView") -> "Shape":
    """Return a group as JSON."""
    return {
        "group": view.name,
        "total": view.total,
        "ended": view.ended,
        "jobs": counts_shape(view.counts),
        "created_at": time_shape(view.group.created_at or None),
        "started_at": time_shape(view.started_at),
        "finished_at": time_shape(view.finished_at if view.is_over else None),
        "took": None if view.took_ms is None else view.took_ms / 1000,
        "rate": None if view.per_s is None else round(view.per_s, 3),
        "time_left": None if view.left_ms is None else view.left_ms / 1000,
        "max_failures": view.group.max_failures,
        "may_fail": view.may_fail,
        "stopped_at": time_shape(view.group.stopped_at),
        "on_group_done": view.closing_command,
        "done_at": time_shape(view.group.done_at),
        "failures": [
            {
                "state": kind.state.value,
                "error": kind.error,
                "count": kind.count,
                "ids": [job.id for job in kind.samples],
            }
            for kind in view.failures
        ],
    }


def standing_shape(found: "Standing") -> "Shape":
    """Return what decides about a job."""
    wait, place = found.wait, found.place
    return {
        "id": found.job.id,
        "number": found.job.seq,
        "state": found.job.state.value,
        "summary": found.summary,
        "waits_for": wait and wait.reason,
        "remedy": wait.remedy if wait else found.remedy,
        "position": place and {"place": place.ahead + 1, "ahead": place.ahead, "line": place.line},
        "gates": [_gate_shape(gate) for gate in found.gates],
        "holds": list(found.holds),
    }


def _gate_shape(gate: "Gate") -> "Shape":
    return {
        "gate": gate.name,
        "open": gate.is_open,
        "what": gate.words,
        "jobs": list(gate.jobs),
        "workers": list(gate.workers),
        "ends": gate.ends,
        "remedy": gate.remedy,
    }


def entry_shape(entry: "Entry") -> "Shape":
    """Return what became of a job that was handed in."""
    return {"id": entry.id, "result": entry.fate.value}


def done_shape(done: "Done", *, is_trial: bool = False) -> "Shape":
    """Return what an act did, or would do, to one job."""
    would = "would be: " if is_trial else ""
    shape: Shape = {"id": done.job.id, "was": done.job.state.value, "result": f"{would}{done.note}"}
    return shape if done.after is None else {**shape, "changes": changes_shape(done.job, done.after)}


def canary_shape(canary: "Canary") -> "Shape":
    """Return the one of many dead jobs that was given a fresh life, and how many are left."""
    return {"canary": done_shape(canary.done, is_trial=False), "rest": canary.rest}


def tally_shape(count: int, passed: "Mapping[State, int]", *, is_trial: bool = False) -> "Shape":
    """Return what an act on many jobs came to, or would come to."""
    by_name = {state.value: number for state, number in sorted(passed.items())}
    return {"count": count, "passed_by": by_name, "dry_run": is_trial}


def listed_schedule_shape(schedule: "Schedule", last: "LastFire | None") -> "Shape":
    """Return a schedule with what came of its last instant."""
    return {**schedule_shape(schedule), "last": last and fire_shape(last.fire, last.job)}


def full_schedule_shape(schedule: "Schedule", fires: "Sequence[LastFire]") -> "Shape":
    """Return a schedule with its newest fires."""
    return {**schedule_shape(schedule), "fires": [fire_shape(each.fire, each.job) for each in fires]}


def act_shape(act: "Act") -> "Shape":
    """Return an act of the audit trail."""
    return {**act.as_dict(), "at": iso_text(act.at)}
