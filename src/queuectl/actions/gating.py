"""Gating: every gate a job must pass before it starts, in the order they are told. Those of workers are in manning.py.

The claim has a mechanism of its own, store/gates.py, which looks at lanes and never at all gates of one job.
"""

from queuectl.actions.manning import alone, labels, resources, slot, worker
from queuectl.actions.scene import NAMED, Gate, Scene, jobs_text, when_enough_end
from queuectl.actions.waiting import dependencies_gate
from queuectl.model.limits import LIMIT, key_words
from queuectl.model.states import WAITING_FOR_TIME, State
from queuectl.model.units import local_text, rough_duration_text
from queuectl.store import lines, parking
from queuectl.store.limits import UNLIMITED, slots_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queuectl.model.job import Job
    from queuectl.store.database import Tx

AFTER = "after"
TIME = "time"
HOLD = "hold"
DEADLINE = "deadline"
QUEUE = "queue"
CONCURRENCY = "concurrency"
RATE = "rate"


def gates(tx: "Tx", job: "Job") -> list[Gate]:
    """Return every gate of a job that waits, open or shut."""
    return list(each_gate(Scene(tx, job)))


def foremost(gates: "Iterable[Gate]") -> Gate | None:
    """Return the gate a person should know of first: one that does not open by itself; None means all are open.

    A time that is to come is told before all others: what else is shut may be open by then. So are other jobs it runs
    after, unless a person holds it; and a deadline that has passed: whatever else opens, the job is buried.
    """
    shut = [gate for gate in gates if not gate.is_open]
    names = {gate.name: gate for gate in shut}
    if AFTER in names and DEADLINE not in names:
        return names[HOLD] if HOLD in names and names[AFTER].ends is not None else names[AFTER]
    for gate in shut:
        if gate.name in (TIME, DEADLINE):
            return gate
    return next((gate for gate in shut if gate.ends is None), shut[0] if shut else None)


def each_gate(scene: Scene) -> "Iterator[Gate]":
    """Yield the gates of a job in their order, each worked out when it is asked for."""
    yield _after(scene)
    yield _time(scene)
    yield _hold(scene)
    yield _deadline(scene)
    yield _queue(scene)
    yield _concurrency(scene)
    yield _rate(scene)
    for key in scene.job.limit_list:
        yield _limit(scene, key)
    for gate in (worker, labels, resources, slot, alone):
        yield gate(scene)


def _after(scene: Scene) -> Gate:
    return dependencies_gate(scene.tx, scene.job, AFTER)


def _time(scene: Scene) -> Gate:
    job = scene.job
    if job.waits_for and (job.run_at or 0) > scene.now:
        return Gate(
            name=TIME,
            is_open=False,
            words=f"it is to run {_at(job.run_at, scene.now)}, and not before",
            reason="its time",
            ends="at that time",
            remedy=f"queuectl edit {job.id} --delay 0",
        )
    if job.state not in WAITING_FOR_TIME or (job.run_at or 0) <= scene.now:
        return Gate(name=TIME, is_open=True, words="its time has come")
    reason = "its time" if job.state is State.SCHEDULED else "its next retry"
    return Gate(
        name=TIME,
        is_open=False,
        words=f"{'it is to run' if job.state is State.SCHEDULED else 'it runs again'} {_at(job.run_at, scene.now)}",
        reason=reason,
        ends="at that time",
        remedy=f"queuectl retry {job.id}",
    )


def _hold(scene: Scene) -> Gate:
    job = scene.job
    if job.state is not State.BLOCKED or job.parked_for is not None:
        return Gate(name=HOLD, is_open=True, words="nobody holds it")
    if job.held_at is None and job.waits_for:
        return Gate(name=HOLD, is_open=True, words="nobody holds it")
    if job.held_at is None:
        return Gate(name=HOLD, is_open=False, words="it is blocked", reason="being released")
    since = f"a person holds it since {local_text(job.held_at)}"
    return Gate(
        name=HOLD,
        is_open=False,
        words=since,
        reason=f"being released: {since}",
        remedy=f"queuectl release {job.id}",
    )


def _deadline(scene: Scene) -> Gate:
    job = scene.job
    if job.deadline_at is None:
        return Gate(name=DEADLINE, is_open=True, words="it has none")
    if job.deadline_at > scene.now:
        return Gate(name=DEADLINE, is_open=True, words=f"it must start {_by(job.deadline_at, scene.now)}, or is buried")
    return Gate(
        name=DEADLINE,
        is_open=False,
        words=f"it passed at {local_text(job.deadline_at)}",
        reason="being buried: its deadline has passed",
        ends="with its burial, at the next look of a worker",
        remedy=f"queuectl edit {job.id} --deadline none",
    )


def _queue(scene: Scene) -> Gate:
    lane = scene.lane
    if lane.paused_at is None:
        return Gate(name=QUEUE, is_open=True, words=f"{lane.queue} is not paused")
    return Gate(
        name=QUEUE,
        is_open=False,
        words=f"{lane.queue} is paused since {local_text(lane.paused_at)}",
        reason=f"its queue: {lane.queue} is paused",
        remedy=f"queuectl queue resume {lane.queue}",
    )


def _concurrency(scene: Scene) -> Gate:
    queue, most = scene.lane.queue, scene.lane.concurrency
    if most is None:
        return Gate(name=CONCURRENCY, is_open=True, words=f"{queue} lets any number run at once")
    ids = tuple(job.id for job in scene.running if scene.lanes[job.lane_id].queue == queue)
    words = f"{len(ids)} of the {most} that {queue} lets run at once"
    if len(ids) < most:
        return Gate(name=CONCURRENCY, is_open=True, words=words, jobs=ids)
    return Gate(
        name=CONCURRENCY,
        is_open=False,
        words=f"{words}: {jobs_text(ids)}" if ids else words,
        reason=f"room in its queue: {len(ids)} of {most} of queue {queue} run",
        jobs=ids,
        ends=when_enough_end(ids, most),
        remedy=f"queuectl queue set {queue} --concurrency {len(ids) + 1}",
    )


def _rate(scene: Scene) -> Gate:
    queue, rate, next_at = scene.lane.queue, scene.lane.rate, scene.lane.opens_at(scene.now)
    if rate is None:
        return Gate(name=RATE, is_open=True, words=f"{queue} lets jobs start at any time")
    if next_at is None:
        return Gate(name=RATE, is_open=True, words=f"{queue} lets {rate.text} start, and the next one now")
    when = _at(next_at, scene.now)
    return Gate(
        name=RATE,
        is_open=False,
        words=f"{queue} lets {rate.text} start, the next one {when}",
        reason=f"the rate of its queue: {queue} lets {rate.text} start, the next one {when}",
        ends="at that time, for the first in line",
        remedy=f"queuectl queue set {queue} --rate none",
    )


def _limit(scene: Scene, key: str) -> Gate:
    name, most = key_words(key), slots_of(scene.tx, [key])[key]
    if most >= UNLIMITED:
        words = "nobody made it, so it holds nothing back"
        return Gate(name=name, is_open=True, words=words, remedy=f"queuectl limit set {key.removeprefix(LIMIT)} 1")
    ids = tuple(job.id for job in scene.running if key in job.limit_list)
    words = f"{len(ids)} of {most} taken" + (f" by {jobs_text(ids)}" if ids else "")
    if len(ids) < most:
        is_parked = scene.job.parked_for == key
        return _reserved(scene, key, words) if is_parked else Gate(name=name, is_open=True, words=words, jobs=ids)
    return Gate(
        name=name,
        is_open=False,
        words=words,
        reason=f"{name}: {words}",
        jobs=ids,
        ends=when_enough_end(ids, most),
        remedy=f"queuectl limit set {key.removeprefix(LIMIT)} {len(ids) + 1}" if key.startswith(LIMIT) else None,
    )


def _reserved(scene: Scene, key: str, taken: str) -> Gate:
    """Return the gate of a limit that has room, and a job that is parked for it: others go before it."""
    name, ids = key_words(key), tuple(lines.ready_with(scene.tx, key, NAMED))
    patient = parking.kept_for_the_patient(scene.tx).get(key)
    if patient is not None and not patient.yields_to(scene.job.seq, scene.job.priority):
        words = f"{taken}; kept for job {patient.id}, which needs several limits at once and has waited long"
        ids, ends = (patient.id,), "in half a minute"
        return Gate(name=name, is_open=False, words=words, reason=f"{name}: {words}", jobs=ids, ends=ends)
    if not ids:
        words = f"{taken}; it is about to be put back in the line"
        return Gate(name=name, is_open=False, words=words, reason=f"{name}: {words}", ends="at once")
    words = f"{taken}; {jobs_text(ids)} {'is' if len(ids) == 1 else 'are'} ready and before it"
    return Gate(name=name, is_open=False, words=words, reason=f"{name}: {words}", jobs=ids, ends="when its turn comes")


def _at(then: int | None, now: int) -> str:
    return f"at {local_text(then or 0)}, in {rough_duration_text(max(0, (then or 0) - now))}"


def _by(then: int, now: int) -> str:
    return f"by {local_text(then)}, within {rough_duration_text(then - now)}"
