"""Brokers: a Redis of our own, and a fresh PostgreSQL database, as they come."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from benchmarks.bench import POSTGRES, Bench

REDIS_DURABILITY = "Redis as it comes: in memory, RDB snapshots every 1-60 min, no fsync per job"
REDIS_TAG = "Redis, no sync"
POSTGRES_DURABILITY = "PostgreSQL as it comes: fsync on every commit"
POSTGRES_TAG = "PostgreSQL, fsync"
DEADLINE_S = 10


@dataclass(frozen=True, kw_only=True)
class Broker:
    """Something that keeps the queue of a peer."""

    address: str
    pid: int


def why_no_redis() -> str:
    """Say what is missing for a Redis; nothing where nothing is."""
    return "" if which("redis-server") else "no program redis-server; on Debian: apt-get install redis-server"


@contextmanager
def redis_server(folder: Path) -> Iterator[Broker]:
    """Start a Redis on a socket in a folder with its default settings, and end it afterwards."""
    path = folder / "redis.sock"
    argv = ["redis-server", "--port", "0", "--unixsocket", str(path), "--dir", str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_until_it_answers(path)
            yield Broker(address=str(path), pid=server.pid)
        finally:
            server.kill()


@contextmanager
def postgres_database(bench: Bench) -> Iterator[Broker]:
    """Give a fresh database of the bench's server."""
    with bench.store(POSTGRES) as target:
        yield Broker(address=target.url, pid=postmaster_pid(target.url))


def postmaster_pid(url: str) -> int:
    """Return the first process of the server behind an address."""
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int(Path(row[0], "postmaster.pid").read_text().split()[0])


def _wait_until_it_answers(path: Path) -> None:
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"PING\r\n")
                if client.recv(64) == b"+PONG\r\n":
                    return
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # not there yet
        if time.monotonic() > until:
            raise TimeoutError(f"no Redis on {path} within {DEADLINE_S} s")
        time.sleep(0.005)
