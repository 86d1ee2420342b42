"""Metrics: what Prometheus scrapes, drawn from one reading of the store. See docs/guides/metrics.md."""

import platform
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from queuectl import __version__
from queuectl.model.states import State
from queuectl.model.stats import BOUNDS_MS
from queuectl.model.verdict import Result
from queuectl.store.migrate import LATEST
from queuectl.web.readings import WORKER_STATES, Readings
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI
    from prometheus_client.core import Metric

    from queuectl.model.stats import Histogram
    from queuectl.web.readings import Reading, Tally, Told
    from queuectl.web.snapshot import Board
    from queuectl.web.stores import Stores

router = APIRouter()


def add_metrics(app: "FastAPI", stores: "Stores", board: "Board") -> None:
    """Have an app keep the counters of its store."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(StoreCollector(Readings(stores), board, "sqlite" if stores.target.sqlite_path else "postgres"))
    app.state.registry = registry


@router.get("/metrics")
def metrics(request: Request, _visitor: Reader, accept: Annotated[str, Header()] = "") -> Response:
    """Tell Prometheus where everything stands; also where the store cannot be read, which is told, too."""
    encode, content_type = choose_encoder(accept)
    return Response(encode(request.app.state.registry), media_type=content_type)


class StoreCollector(Collector):
    """Draws the metrics of a store."""

    def __init__(self, readings: Readings, board: "Board", kind: str) -> None:
        self._readings = readings
        self._board = board
        self._kind = kind

    def describe(self) -> "Iterator[Metric]":
        """Promise nothing: what there is depends on what can be read."""
        return iter(())

    def collect(self) -> "Iterator[Metric]":
        """Yield every family."""
        told = self._readings.current()
        yield InfoMetricFamily(
            "queuectl_build",
            "Versions of this server and the kind of its store",
            {"version": __version__, "python": platform.python_version(), "store": self._kind},
        )
        yield _gauge("dashboards", "Pages that are open and follow the store", self._board.viewers)
        yield from _store(told)
        yield from _counters(told.tally)
        if told.reading is not None and not told.trouble:
            yield from _jobs(told.reading)
            yield from _workers(told.reading)


def _store(told: "Told") -> "Iterator[Metric]":
    """Yield what is so of the store; its size only where it could be read."""
    reading = told.reading
    is_up = reading is not None and not told.trouble
    yield _gauge("store_up", "Whether the store could be read", int(is_up))
    yield _gauge("store_read_seconds", "How long reading all of this took", told.took_s)
    if reading is None or told.trouble:
        return
    yield _gauge("store_schema_version", "Schema of the store", reading.schema)
    yield _gauge("store_schema_expected", "Schema that this server knows", LATEST)
    yield _gauge("store_size_bytes", "Size of the store, indexes included", reading.size_bytes)
    yield _gauge(
        "store_disk_free_bytes",
        "Room on the disk of the store, or of the home where that is elsewhere",
        reading.free_bytes,
    )
    if reading.wal_bytes is not None:
        yield _gauge("store_wal_bytes", "Size of the write-ahead log of SQLite", reading.wal_bytes)


def _counters(tally: "Tally") -> "Iterator[Metric]":
    claimed = CounterMetricFamily("queuectl_runs_claimed", "Runs that workers began since this server first looked")
    claimed.add_metric([], tally.claimed)
    yield claimed
    ended = CounterMetricFamily(
        "queuectl_runs", "Runs that ended since this server first looked, by what came of them", labels=["outcome"]
    )
    for result in Result:
        ended.add_metric([result.value], tally.ended.counts.get(result, 0))
    yield ended
    rescues = CounterMetricFamily(
        "queuectl_lease_rescues", "Runs that were lost with their worker and rescued since this server first looked"
    )
    rescues.add_metric([], tally.ended.counts.get(Result.LOST, 0))
    yield rescues
    ran = HistogramMetricFamily("queuectl_run_seconds", "How long runs took that ended since this server first looked")
    ran.add_metric([], *_buckets(tally.ended.run_time))
    yield ran
    waited = HistogramMetricFamily("queuectl_wait_seconds", "How long jobs were ready before a worker took them")
    waited.add_metric([], *_buckets(tally.ended.wait))
    yield waited


def _jobs(reading: "Reading") -> "Iterator[Metric]":
    by_state = _family("jobs", "Jobs on record", ["queue", "state"])
    oldest = _family("oldest_pending_seconds", "How long the oldest ready job of a queue has been ready", ["queue"])
    paused = _family("queue_paused", "Whether a queue hands out no jobs", ["queue"])
    for queue, counts in reading.counts.items():
        for state in State:
            by_state.add_metric([queue, state.value], counts.get(state, 0))
        oldest.add_metric([queue], reading.oldest_s.get(queue, 0.0))
        paused.add_metric([queue], int(reading.paused[queue]))
    yield by_state
    yield oldest
    yield paused
    dead = sum(counts.get(State.DEAD, 0) for counts in reading.counts.values())
    yield _gauge("dead_jobs", "Jobs in the dead letter queue", dead)
    yield _gauge("paused_queues", "Queues that hand out no jobs", sum(reading.paused.values()))


def _workers(reading: "Reading") -> "Iterator[Metric]":
    workers = _family("workers", "Workers by host and state; lost ones wait to be rescued", ["host", "state"])
    slots = _family("worker_slots", "Commands that the workers of a host may run at once", ["host"])
    busy = _family("worker_slots_busy", "Commands that the workers of a host run", ["host"])
    for name, host in reading.hosts.items():
        for state in WORKER_STATES:
            workers.add_metric([name, state], host.states[state])
        slots.add_metric([name], host.slots)
        busy.add_metric([name], host.busy)
    yield workers
    yield slots
    yield busy
    alive = sum(host.states["working"] for host in reading.hosts.values())
    yield _gauge("workers_working", "Workers that live and take jobs, on all hosts", alive)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"queuectl_{name}", about, value)


def _family(name: str, about: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"queuectl_{name}", about, labels=labels)


def _buckets(found: "Histogram") -> "tuple[list[tuple[str, float]], float]":
    """Return a histogram as Prometheus has it: how many took at most so many seconds, and the sum."""
    bounds = [f"{bound / 1000:g}" for bound in BOUNDS_MS]
    counts = [*zip(bounds, map(float, found.at_most), strict=True), ("+Inf", float(found.count))]
    return counts, found.sum_ms / 1000
