"""Control groups played by folders and files: a test may not make groups in those of whoever runs it."""

import errno
import os
from pathlib import Path

import pytest

from queuectl.system import cgroups

FILES = {
    1: ("cgroup.procs", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
    2: (
        "cgroup.procs",
        "cgroup.controllers",
        "cgroup.subtree_control",
        "memory.max",
        "memory.swap.max",
        "memory.events",
    ),
}


class Kernel:
    """Folders that behave like control groups: files of their own, and no removal while somebody lives in them."""

    def __init__(self, top: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.top = top
        self.version = version
        self.delegated: set[str] = set()
        self._mkdir, self._rmdir = os.mkdir, os.rmdir
        self._lies = monkeypatch
        self.make(top)
        monkeypatch.setattr(os, "mkdir", self.make)
        monkeypatch.setattr(os, "rmdir", self.remove)
        monkeypatch.setattr(cgroups, "is_handed_over", lambda path: path in self.delegated)
        mounts = top.parent / "mountinfo"
        kind = "cgroup2 cgroup2 rw" if version == 2 else "cgroup cgroup rw,memory"
        mounts.write_text(f"24 1 0:22 / /proc rw - proc proc rw\n30 1 0:26 / {top} rw,nosuid shared:4 - {kind}\n")
        monkeypatch.setattr(cgroups, "MOUNTS", str(mounts))

    def make(self, path: str | Path, mode: int = 0o777) -> None:
        self._mkdir(path, mode)
        if not Path(path).is_relative_to(self.top):
            return  # a folder for output, say
        for name in FILES[self.version]:
            Path(path, name).touch()
        if self.version == 2:
            Path(path, "cgroup.controllers").write_text("cpu memory pids\n")

    def remove(self, path: str) -> None:
        if Path(path, "cgroup.procs").read_text() or any(each.is_dir() for each in Path(path).iterdir()):
            raise OSError(errno.EBUSY, "Device or resource busy")
        for name in FILES[self.version]:
            Path(path, name).unlink()
        self._rmdir(path)

    def live_in(self, path: str, *, is_delegated: bool = False) -> Path:
        """Put this process into a group, made where it is missing."""
        own = Path(f"{self.top}{path}".rstrip("/"))
        for folder in [*reversed(own.parents), own]:
            if not folder.exists():
                self.make(folder)
        (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
        told = self.top.parent / "own"
        told.write_text(f"0::{path}\n" if self.version == 2 else f"9:name=systemd:/x\n4:memory:{path}\n0::/\n")
        self._lies.setattr(cgroups, "OWN_GROUPS", str(told))
        if is_delegated:
            self.delegated.add(str(own))
        return own
