"""The processes of one queue, found by the home in their environment, and signals that cannot hit a stranger."""

import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

WORKER_WORDS = "queuectl.runtime.enlist"


class Role(StrEnum):
    """What a process of the queue is."""

    WORKER = "worker"
    COMMAND = "command"
    OTHER = "other"
    """A supervisor, or somebody's `queuectl`; who started it knows which."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """A living process as it was when it was looked at."""

    pid: int
    parent: int
    state: str
    home: str
    role: Role
    worker: str | None
    command_line: str

    def __str__(self) -> str:
        return f"pid {self.pid} (parent {self.parent}, {self.state}, {self.role}): {self.command_line[:120]}"


def processes_of(home: str) -> list[Process]:
    """Return the living processes whose environment names this home; a zombie is gone."""
    return [process for pid in _pids() if (process := _look(pid, home)) is not None]


def workers_of(home: str) -> list[Process]:
    """Return the workers; a command that is just being started still looks like the worker it comes from."""
    found = [process for process in processes_of(home) if process.role is Role.WORKER]
    ids = {process.pid: process.worker for process in found}
    return [process for process in found if ids.get(process.parent) != process.worker]


def commands_of(home: str) -> list[Process]:
    """Return what jobs run just now."""
    return [process for process in processes_of(home) if process.role is Role.COMMAND]


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal to a process if it is still the one that was looked at; False means that it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        now = _look(process.pid, process.home)
        if now is None or (now.role, now.worker) != (process.role, process.worker):
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def users_of(folder: str, but: Collection[int] = ()) -> list[int]:
    """Return the processes that have a folder as their home, or hold a file in it open."""
    return [pid for pid in _pids() if pid not in but and pid != os.getpid() and _uses(pid, folder)]


def _look(pid: int, home: str) -> Process | None:
    try:
        environ = _environ(pid)
        if environ.get("QUEUECTL_HOME") != home:
            return None
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    role = Role.OTHER
    if "QUEUECTL_CLAIM" in environ:
        role = Role.COMMAND
    elif WORKER_WORDS in line:
        role = Role.WORKER
    return Process(
        pid=pid, parent=int(fields[1]), state=fields[0], home=home, role=role,
        worker=environ.get("QUEUECTL_WORKER"), command_line=line,
    )  # fmt: skip


def _uses(pid: int, folder: str) -> bool:
    try:
        if _environ(pid).get("QUEUECTL_HOME") == folder:
            return True
        opened = [_target(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(path.startswith(f"{folder}/") for path in opened)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _environ(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
