"""Faults of disks and databases, made for real, and a command that tells what became of it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from tests.program import lines_of, wait_for
from tests.scenarios.working import runs_of


class Witness:
    """A command that ends when the test says so, writes down what befalls it, and notices a second copy of itself."""

    def __init__(self, folder: Path, name: str = "witness", *, is_stubborn: bool = False) -> None:
        self.ledger = folder / f"{name}.ledger"
        self._gate = folder / f"{name}.go"
        on_term = "" if is_stubborn else f"{self._note('stopped')}; exit 143"
        # The lock is the shell's alone: a sleep that outlives its shell for a moment is no second copy.
        self.line = (
            f"exec 9>>{self.ledger}.lock; flock -n 9 || {self._note('overlap')}; "
            f"trap '{on_term}' TERM; {self._note('start')}; "
            f"while ! test -e {self._gate}; do sleep 0.05 9>&-; done; {self._note('end')}"
        )

    @property
    def events(self) -> list[str]:
        """What happened, in order: `start 1` of run 1, `end 1` or `stopped 1`; `overlap 2` if both ran at once."""
        return [" ".join(line.split()[:2]) for line in lines_of(self.ledger)]

    def time_of(self, event: str) -> float:
        """Return when something happened, on the clock of `boot_clock`."""
        return next(float(line.split()[2]) for line in lines_of(self.ledger) if line.startswith(f"{event} "))

    def wait_for(self, event: str) -> None:
        """Wait until something happened."""
        wait_for(lambda: event in self.events or None, f"{event!r} in {self.ledger.name}, which has {self.events}")

    def let_end(self) -> None:
        """Let every run of the command come to its end."""
        self._gate.touch()

    def end(self, run: int = 1) -> None:
        """Let the command come to its end, and wait for it."""
        self.let_end()
        self.wait_for(f"end {run}")

    def _note(self, what: str) -> str:
        return f'echo {what} $QUEUECTL_RUN "$(cut -d" " -f1 /proc/uptime)" >>{self.ledger}'


def boot_clock() -> float:
    """Return the clock a witness writes down: seconds since boot."""
    return float(Path("/proc/uptime").read_text().split()[0])


def pass_the_time(until: float) -> None:
    """Let a fault last until a monotonic time: the fault is the time it takes."""
    time.sleep(max(0.0, until - time.monotonic()))


def need_root() -> None:
    """Skip a test that only root can run; a run for everybody (CI) must not leave it out."""
    if os.geteuid() != 0:
        (pytest.fail if "CI" in os.environ else pytest.skip)("only root may do what this test does")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount an empty file system of a few bytes on a folder."""
    need_root()
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def filled(folder: Path, *, but: int = 0) -> Iterator[None]:
    """Leave no byte of a file system free, or only so many."""
    ballast, spared = folder / "ballast", folder / "spared"
    spared.write_bytes(bytes(but))
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    spared.unlink()
    try:
        yield
    finally:
        ballast.unlink()


def bound_by_modes() -> tuple[str, ...]:
    """Return what makes the modes of files count for a program though root runs it."""
    return ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take away the permission to write a folder and all in it; what is open for writing stays so."""
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Hold the write lock of a SQLite database, as another program might."""
    connection = apsw.Connection(database)
    connection.set_busy_timeout(10_000)  # a heartbeat may be at it
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextmanager
def connections_terminated(url: str) -> Iterator[None]:
    """End every connection to a PostgreSQL database from the server's side, once."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert ended
    yield


def damage(database: str) -> str:
    """Return what SQLite finds wrong with a file; `ok` when it is whole."""
    connection = apsw.Connection(database)
    found = "\n".join(str(row[0]) for row in connection.execute("PRAGMA integrity_check"))
    connection.close()
    return found


def last_words(supervisor: "subprocess.Popen[str]") -> str:
    """Stop a foreground supervisor when its jobs end, and return all that it and its workers said."""
    supervisor.send_signal(signal.SIGTERM)
    said = supervisor.communicate(timeout=60)[1]
    assert supervisor.returncode == 0, said
    return said


def assert_ran_once(job: dict[str, object], witness: Witness) -> None:
    """One run that came to its own end, charged once."""
    assert (job["state"], job["attempts"], job["losses"]) == ("completed", 1, 0)
    assert [run["outcome"] for run in runs_of(job)] == ["exited"]
    assert witness.events == ["start 1", "end 1"]
