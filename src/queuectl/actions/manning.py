"""Manning: the gates of a job that are workers: whether one serves it, has what it needs, and is free."""

from queuectl.actions.scene import NAMED, Gate, Scene, jobs_text, when_one_ends, workers_text
from queuectl.actions.unservable import least_missing, start_command
from queuectl.model.job import Claim
from queuectl.model.needs import Needs, fits, free_text
from queuectl.model.value import Value
from queuectl.model.verdict import ALONE_FROM_LOSSES
from queuectl.store import claims
from queuectl.store.gates import kept_for_the_patient, unit_holders
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.workers import Worker

WORKER = "worker"
LABELS = "labels"
RESOURCES = "resources"
SLOT = "slot"
ALONE = "alone"


def worker(scene: Scene) -> Gate:
    """Tell whether anybody takes jobs of its queue."""
    queue, found = scene.job.queue, scene.serving
    if found:
        return Gate(
            name=WORKER,
            is_open=True,
            words=f"{workers_text(found)} {_verb(found, 'serve')} queue {queue}",
            workers=_ids(found),
        )
    return Gate(
        name=WORKER,
        is_open=False,
        words=f"none is running for queue {queue}",
        reason=f"a worker: none is running for queue {queue}",
        remedy=start_command(queue, scene.needs),
    )


def labels(scene: Scene) -> Gate:
    """Tell whether anybody who serves its queue has the labels it needs."""
    wanted = Needs(labels=scene.needs.labels)
    if not wanted.labels:
        return Gate(name=LABELS, is_open=True, words="it needs none")
    found = scene.labelled
    if found:
        words = f"{workers_text(found)} {_verb(found, 'have', 'has')} {wanted.words}"
        return Gate(name=LABELS, is_open=True, words=words, workers=_ids(found))
    return _lacking(scene, LABELS, scene.serving, wanted)


def resources(scene: Scene) -> Gate:
    """Tell whether anybody has enough left of what it uses: of those with the labels it needs, where there are any."""
    use = Needs(use=scene.needs.use)
    if not use.use:
        return Gate(name=RESOURCES, is_open=True, words="it uses none")
    asked = scene.labelled or scene.serving
    enough = [one for one in asked if one.supply.could_take(use)]
    if not enough:
        return _lacking(scene, RESOURCES, asked, use)
    shares = [_share(scene, one) for one in _apart(enough)]
    jobs = tuple(dict.fromkeys(job for share in shares for job in share.holders))
    words = f"{use.words}: {', '.join([part for share in shares for part in share.parts][:NAMED])}"
    roomy = [share for share in shares if share.is_enough]
    if any(not share.kept_for for share in roomy):
        ids = _ids([share.worker for share in roomy if not share.kept_for])
        return Gate(name=RESOURCES, is_open=True, words=words, jobs=jobs, workers=ids)
    if roomy:
        kept_for = tuple(dict.fromkeys(job for share in roomy for job in share.kept_for))
        words, ends = f"{words}; kept for {jobs_text(kept_for)}, waiting for longer", "when that has run"
    else:
        kept_for, words, ends = (), f"{words}; taken by {jobs_text(jobs)}", "when enough of them have ended"
    return Gate(
        name=RESOURCES,
        is_open=False,
        words=words,
        reason=words,
        jobs=(*jobs, *kept_for),
        workers=_ids(enough),
        ends=ends,
        remedy=start_command(scene.job.queue, scene.needs),
    )


def slot(scene: Scene) -> Gate:
    """Tell whether anybody who could run it runs less than it may."""
    if not scene.able:
        return Gate(name=SLOT, is_open=False, words="nobody is there who could run it", reason="a free worker")
    held = {one.id: len(scene.held_by([one.id])) for one in scene.able}
    free = [one for one in _with_room(scene) if held[one.id] < one.slots]
    if free:
        left = sum(one.slots - held[one.id] for one in free)
        return Gate(name=SLOT, is_open=True, words=f"{left} free: {workers_text(free)}", workers=_ids(free))
    busy = _with_room(scene)
    jobs = tuple(job.id for job in scene.held_by(_ids(busy)))
    total = sum(one.slots for one in busy)
    return Gate(
        name=SLOT,
        is_open=False,
        words=f"none of {total} free: {workers_text(busy)} {_verb(busy, 'run')} {jobs_text(jobs)}",
        reason="a free worker",
        jobs=jobs,
        workers=_ids(busy),
        ends=f"{when_one_ends(jobs)}; or with more workers: {start_command(scene.job.queue, scene.needs)}",
    )


def alone(scene: Scene) -> Gate:
    """Tell whether a job that lost too many workers finds one that is idle."""
    job = scene.job
    if not claims.runs_alone(Claim(job=job)):
        return Gate(name=ALONE, is_open=True, words="it may run beside others")
    words = f"it has lost {job.losses} workers, and runs alone now"
    busy_hosts = {
        holder.boot_id
        for other in scene.running
        if other.losses >= ALONE_FROM_LOSSES and (holder := scene.worker_of(other)) is not None
    }
    idle = [one for one in scene.able if not scene.held_by([one.id]) and one.boot_id not in busy_hosts]
    if idle:
        return Gate(name=ALONE, is_open=True, words=f"{words}; {workers_text(idle)} idle", workers=_ids(idle))
    jobs = tuple(other.id for other in scene.held_by(_ids(scene.able)))
    return Gate(
        name=ALONE,
        is_open=False,
        words=words,
        reason=f"an idle worker: {words}",
        jobs=jobs,
        workers=_ids(scene.able),
        ends="when a worker has nothing else to run" if scene.able else None,
    )


def _lacking(scene: Scene, name: str, asked: "Sequence[Worker]", wanted: Needs) -> Gate:
    """Return the gate of what nobody has, however idle; only where somebody serves the queue is that told as a lack."""
    missing = [f"worker {one.id[:6]} lacks {', '.join(one.supply.missing(wanted))}" for one in asked]
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    told = f"; {'; '.join(missing[:NAMED])}{more}" if missing else ""
    return Gate(
        name=name,
        is_open=False,
        words=f"no running worker has {wanted.words}{told}",
        reason=f"what no running worker has: {least_missing([one.supply for one in scene.serving], scene.needs)}",
        workers=_ids(asked),
        remedy=start_command(scene.job.queue, scene.needs),
    )


class _Share(Value):
    """What the workers of one start have together, and how that stands for a job."""

    worker: "Worker"
    parts: tuple[str, ...]
    """How much is free of what the job uses, in words."""
    is_enough: bool
    holders: tuple[str, ...]
    kept_for: tuple[str, ...]
    """Jobs that want more than is free and have waited so long that nobody else gets any."""


def _share(scene: Scene, one: "Worker") -> _Share:
    use, taker = scene.needs.use, Taker.of_worker(one)
    holders = unit_holders(scene.tx, taker)
    free = one.supply.left(units for _, units in holders)
    starved = [
        lane
        for lane in scene.lanes.values()
        if lane.needs and lane.paused_at is None and taker.serves(lane) and not fits(lane.asks.use, free)
    ]
    kept = kept_for_the_patient(scene.tx, starved, free)
    return _Share(
        worker=one,
        parts=tuple(f"{free_text(name, free, one.supply)} on worker {one.id[:6]}" for name in use),
        is_enough=fits(use, free),
        holders=tuple(job_id for job_id, units in holders if units.keys() & use.keys()),
        kept_for=tuple(dict.fromkeys(kept[name] for name in use if name in kept)),
    )


def _with_room(scene: Scene) -> "list[Worker]":
    """Return those that could run it now but for a slot; all that ever could, where none has enough left."""
    if not scene.needs.use:
        return scene.able
    return [one for one in scene.able if _share(scene, one).is_enough] or scene.able


def _apart(found: "Sequence[Worker]") -> "list[Worker]":
    """Return one worker of each group that shares its resources."""
    return list({one.supervisor_id or one.id: one for one in reversed(found)}.values())[::-1]


def _ids(found: "Sequence[Worker]") -> tuple[str, ...]:
    return tuple(one.id for one in found)


def _verb(found: "Sequence[Worker]", many: str, one: str = "") -> str:
    return (one or f"{many}s") if len(found) == 1 else many
