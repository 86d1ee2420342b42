"""The peers on Redis: RQ with both of its workers, Celery and Dramatiq, each on a Redis of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.brokers import REDIS_DURABILITY, REDIS_TAG, redis_server, why_no_redis
from benchmarks.peers.peer import Measure
from benchmarks.peers.venv import AppRoom, PythonPeer, program


class RedisPeer(PythonPeer):
    """A peer whose queue is in Redis."""

    scheme = "unix"
    durability = REDIS_DURABILITY
    durability_tag = REDIS_TAG
    room_class: type["RedisRoom"]

    def why_missing(self) -> str:
        """Say whether package and server are there."""
        return super().why_missing() or why_no_redis()

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[AppRoom]:
        """Give a Redis."""
        with redis_server(folder) as broker:
            room = self.room_class(folder, workers, f"{self.scheme}://{broker.address}")
            room.broker_pids = (broker.pid,)
            yield room


class RedisRoom(AppRoom):
    """A queue in Redis."""


class RqRoom(RedisRoom):
    """A queue of RQ, whose workers fork for every job."""

    app = "rq_app"
    worker_class = "rq.worker.Worker"

    def working(self) -> list[list[str]]:
        """Start a pool."""
        pool = [program("rq"), "worker-pool", "-u", self.environ["PEER_STORE"], "-n", str(self.workers)]
        return [[*pool, "-w", self.worker_class]]


class SimpleRqRoom(RqRoom):
    """The same with workers that do not fork."""

    worker_class = "rq.worker.SimpleWorker"


class CeleryRoom(RedisRoom):
    """A queue of Celery."""

    app = "celery_app"

    def working(self) -> list[list[str]]:
        """Start a worker with a pool of processes, as is its default."""
        return [[program("celery"), "-A", "celery_app", "worker", "-c", str(self.workers)]]


class DramatiqRoom(RedisRoom):
    """A queue of Dramatiq."""

    app = "dramatiq_app"

    def working(self) -> list[list[str]]:
        """Start processes with a thread each, so that N of them run N commands."""
        return [[program("dramatiq"), "dramatiq_app", "-p", str(self.workers), "-t", "1"]]


class Rq(RedisPeer):
    """rq worker-pool -n N."""

    name = "RQ, Redis"
    package = "rq"
    drain_jobs = 100
    bulk_jobs = 4000
    room_class = RqRoom


class SimpleRq(Rq):
    """rq worker-pool -n N -w SimpleWorker."""

    name = "RQ SimpleWorker, Redis"
    drain_jobs = 400
    lacks = dict.fromkeys((Measure.ADD, Measure.BULK), "")  # the same queue as that of RQ
    room_class = SimpleRqRoom


class Celery(RedisPeer):
    """celery worker -c N."""

    name = "Celery, Redis"
    package = "celery"
    scheme = "redis+socket"
    durability = f"{REDIS_DURABILITY}; a job is acknowledged when taken"
    durability_tag = f"{REDIS_TAG}, acked when taken"
    drain_jobs = 500
    bulk_jobs = 1000
    room_class = CeleryRoom


class Dramatiq(RedisPeer):
    """dramatiq -p N -t 1."""

    name = "Dramatiq, Redis"
    package = "dramatiq"
    drain_jobs = 500
    bulk_jobs = 3000
    room_class = DramatiqRoom
