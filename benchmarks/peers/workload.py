"""Peers: what people use today, running one command that writes into a fifo, and so not what the drains above run.

What is missing is named with its reason. Everything is queued, then the workers start; a drain ends when every command
has written its byte into the fifo.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from benchmarks.bench import Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, Value, number, percentile
from benchmarks.peers import driver
from benchmarks.peers.driver import Added, Drained, PickedUp, Weighed
from benchmarks.peers.lineup import LINEUP, OWN_SQLITE, PARALLEL, UNIT
from benchmarks.peers.own import Own
from benchmarks.peers.peer import Measure, Peer
from benchmarks.peers.table import ALL
from benchmarks.turns import ratios, take_turns

ROUNDS = 3
DRAIN_WORKERS = (2, 4)

T = TypeVar("T")


def measure(bench: Bench, peers: Sequence[Peer] = LINEUP) -> Iterator[Figure]:
    """Measure one thing after the other, each of all peers."""
    for peer in peers:
        if why := peer.why_missing():
            yield _missing(peer, ALL, why)
    here = [peer for peer in peers if not peer.why_missing()]
    for workers in DRAIN_WORKERS:
        yield from _drains(bench, here, workers)
    for peer in here:
        yield from (_missing(peer, name, why) for name, why in peer.lacks.items() if why)
    yield from _additions(bench, here)
    yield from _pick_ups(bench, here)
    yield from _memory(bench, here)


class Side(Generic[T]):
    """One peer in one measure; once it has failed it is not asked again, and its reason is kept.

    queuectl itself and the unit may not fail: without them there is nothing to compare.
    """

    def __init__(self, act: Callable[[], T], *, may_fail: bool) -> None:
        self._act = act
        self._may_fail = may_fail
        self.found: list[T] = []
        self.failure = ""

    def __call__(self) -> None:
        if self.failure:
            return
        try:
            self.found.append(self._act())
        except Exception as error:
            if not self._may_fail:
                raise
            self.failure = f"{type(error).__name__}: {error}"


def _in_turns(peers: Sequence[Peer], act: Callable[[Peer], T]) -> dict[Peer, Side[T]]:
    sides = {peer: Side(partial(act, peer), may_fail=peer is not UNIT and not isinstance(peer, Own)) for peer in peers}
    if sides:
        take_turns(ROUNDS, {peer.name: side for peer, side in sides.items()})
    return sides


def _drains(bench: Bench, peers: Sequence[Peer], workers: int) -> Iterator[Figure]:
    measure_name = f"{Measure.DRAIN} {workers}"
    sides = _in_turns(peers, lambda peer: driver.drain(bench, peer, workers, peer.drain_jobs))
    unit = sides[UNIT].found
    for peer, side in sides.items():
        if side.failure:
            yield _missing(peer, measure_name, side.failure)
            continue
        yield _figure(
            peer,
            measure_name,
            what=f"drain, {workers} workers",
            unit=f"x of xargs -P {workers}",
            ratios=ratios([each.rate for each in side.found], [each.rate for each in unit]),
            absolute=[each.rate for each in side.found],
            absolute_unit="jobs/s",
            note=_drain_note(side.found, unit),
            values={
                "jobs": peer.drain_jobs,
                "running_ratios": _running_ratios(side.found, unit),
                "start_s": [each.first_s for each in side.found],
            },
        )
    yield from _against_parallel(sides, workers)


def _against_parallel(sides: Mapping[Peer, Side[Drained]], workers: int) -> Iterator[Figure]:
    """Hold our drain against that of GNU parallel, where both are here."""
    if OWN_SQLITE not in sides:
        return
    what = f"{OWN_SQLITE.name}: drain, {workers} workers, against {PARALLEL.name}"
    budget = BUDGETS["drain against GNU parallel"]
    if PARALLEL not in sides or sides[PARALLEL].failure:
        yield Figure.missing(what, f"{PARALLEL.name} could not be measured", budget)
        return
    own, theirs = sides[OWN_SQLITE].found, sides[PARALLEL].found
    if own[0].jobs != theirs[0].jobs:
        raise AssertionError(f"{own[0].jobs} jobs against {theirs[0].jobs} is no comparison")
    yield Figure(
        what=what,
        unit=f"x of parallel -j {workers}",
        ratios=ratios([each.rate for each in own], [each.rate for each in theirs]),
        budget=budget,
        note=f"{own[0].jobs:,} jobs each, start-up included on both sides",
        is_headline=workers == DRAIN_WORKERS[0],
    )


def _drain_note(own: Sequence[Drained], unit: Sequence[Drained]) -> str:
    start_s = statistics.median(each.first_s for each in own)
    running = statistics.median(_running_ratios(own, unit))
    return f"{own[0].jobs} jobs; {number(start_s)} s to the first, {number(running)} x once it runs"


def _running_ratios(own: Sequence[Drained], unit: Sequence[Drained]) -> list[float]:
    return ratios([each.running_rate for each in own], [each.running_rate for each in unit])


def _additions(bench: Bench, peers: Sequence[Peer]) -> Iterator[Figure]:
    able = [peer for peer in peers if Measure.ADD not in peer.lacks]
    sides = _in_turns(able, partial(driver.add, bench))
    for peer, side in sides.items():
        if side.failure:
            yield _missing(peer, Measure.ADD, side.failure)
            continue
        yield _add_figure(peer, side.found)
        yield _bulk_figure(peer, side.found, sides[OWN_SQLITE].found)


def _add_figure(peer: Peer, found: Sequence[Added]) -> Figure:
    own = [each for added in found for each in added.one_s]
    return _figure(
        peer,
        Measure.ADD,
        what="add one from a shell",
        unit="x of python3 -c pass",
        ratios=ratios(own, [each for added in found for each in added.python_s]),
        absolute=[each * 1000 for each in own],
        absolute_unit="ms",
    )


def _bulk_figure(peer: Peer, found: Sequence[Added], unit: Sequence[Added]) -> Figure:
    return _figure(
        peer,
        Measure.BULK,
        what="add many at once",
        unit=f"x of {OWN_SQLITE.name}",
        ratios=ratios([each.bulk_rate for each in found], [each.bulk_rate for each in unit]),
        absolute=[each.bulk_rate for each in found],
        absolute_unit="jobs/s",
        note=f"{peer.bulk_jobs:,} jobs",
        values={"jobs": peer.bulk_jobs},
    )


def _pick_ups(bench: Bench, peers: Sequence[Peer]) -> Iterator[Figure]:
    able = [peer for peer in peers if Measure.PICKUP not in peer.lacks]
    for peer, side in _in_turns(able, partial(driver.pick_up, bench)).items():
        yield _missing(peer, Measure.PICKUP, side.failure) if side.failure else _pick_up_figure(peer, side.found)


def _pick_up_figure(peer: Peer, found: Sequence[PickedUp]) -> Figure:
    own = [each * 1000 for picked_up in found for each in picked_up.own_s]
    unit = [each * 1000 for picked_up in found for each in picked_up.spawn_s]
    p50, p95 = statistics.median(own), percentile(own, 95)
    return _figure(
        peer,
        Measure.PICKUP,
        what="pick-up by an idle worker",
        unit="x of a bare spawn",
        ratios=ratios(own, unit),
        absolute=own,
        absolute_unit="ms",
        note=f"p50 {number(p50)} ms, p95 {number(p95)} ms; a bare spawn {number(statistics.median(unit))} ms",
        values={"p50_ms": p50, "p95_ms": p95},
    )


def _memory(bench: Bench, peers: Sequence[Peer]) -> Iterator[Figure]:
    able = [peer for peer in peers if Measure.MEMORY not in peer.lacks]
    for peer, side in _in_turns(able, partial(driver.weigh, bench)).items():
        yield _missing(peer, Measure.MEMORY, side.failure) if side.failure else _memory_figure(peer, side.found)


def _memory_figure(peer: Peer, found: Sequence[Weighed]) -> Figure:
    whole = [each.workers_mb + each.broker_mb for each in found]
    workers_mb = statistics.median(each.workers_mb for each in found)
    broker_mb = statistics.median(each.broker_mb for each in found)
    return _figure(
        peer,
        Measure.MEMORY,
        what=f"memory (PSS) of {driver.IDLE_WORKERS} idle workers",
        unit="x of a bare Python",
        ratios=ratios(whole, [each.python_mb for each in found]),
        absolute=whole,
        absolute_unit="MB",
        note=f"workers {number(workers_mb)} MB, broker {number(broker_mb)} MB",
        values={"workers_mb": workers_mb, "broker_mb": broker_mb},
    )


def _figure(
    peer: Peer,
    measure_name: str,
    *,
    what: str,
    unit: str,
    ratios: Sequence[float],
    absolute: Sequence[float],
    absolute_unit: str,
    note: str = "",
    values: Mapping[str, Value] | None = None,
) -> Figure:
    """Put a measurement into a row that names the peer and its durability."""
    return Figure(
        what=f"{peer.name}: {what}",
        unit=unit,
        ratios=ratios,
        absolute=absolute,
        absolute_unit=absolute_unit,
        note=f"{note} [{peer.durability}]".lstrip(),
        values={**_identity(peer, measure_name), **(values or {})},
    )


def _missing(peer: Peer, measure_name: str, why: str) -> Figure:
    values = {**_identity(peer, measure_name), "why": why}
    return Figure(what=f"{peer.name}: {measure_name}", note=f"missing: {why}", values=values)


def _identity(peer: Peer, measure_name: str) -> dict[str, Value]:
    version = "" if peer.why_missing() else peer.version()
    durability: dict[str, Value] = {"durability": peer.durability, "durability_tag": peer.durability_tag}
    return {"peer": peer.name, "version": version, **durability, "measure": measure_name}
