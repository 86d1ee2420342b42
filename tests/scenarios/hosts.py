"""Other hosts and other clocks: what the program takes for another machine, or for a clock that was stepped."""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, locate
from queuectl.system.host import boot_id
from tests.program import PROGRAM, Cli

# libfaketime 0.9.10 breaks clock_nanosleep with an absolute time, which is how Python sleeps, when it leaves the
# monotonic clock alone: every time.sleep fails. A wait in select does not pass through it.
_SLEEP_BY_SELECT = """\
import select
import time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


def start_under(cli: Cli, prefix: Sequence[str], *words: str, env: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
    """Start the program through another that becomes it, such as `setpriv`; ended with the test at the latest."""
    process = subprocess.Popen(
        [*prefix, PROGRAM, *words], env={**cli.environ, **env}, cwd=cli.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    cli._started.append(process)
    return process


def need_root(probe: Sequence[str], what: str) -> None:
    """Skip the test where a command fails that takes root; fail there when CI is set."""
    tried = subprocess.run(probe, capture_output=True, text=True)
    if tried.returncode != 0:
        (pytest.fail if "CI" in os.environ else pytest.skip)(f"needs root, to {what}: {tried.stderr.strip()}")


class OtherHost(Cli):
    """The program where the host has another name, and another boot where that is asked for: own home, same store."""

    def __init__(self, target: Target, folder: Path, name: str, *, has_own_boot: bool) -> None:
        super().__init__(target, folder)
        self.name = name
        self._boot = folder / "boot_id"
        self._boot.write_text(f"{uuid.uuid4() if has_own_boot else boot_id()}\n")

    def start(self, *words: str, env: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
        """Start a command there that stays in the foreground; its process is the program itself."""
        script = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && hostname "$2" && shift 2 && exec "$@"'
        prefix = ["unshare", "--uts", "--mount", "sh", "-c", script, "sh", str(self._boot), self.name]
        return start_under(self, prefix, *words, env=env)


class WallClock:
    """A wall clock of one's own, for processes that get its environment; all other clocks stay as they are."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "wall-clock"
        self._python = folder / "wall-clock-python"
        self._python.mkdir()
        (self._python / "sitecustomize.py").write_text(_SLEEP_BY_SELECT)
        self.set(0)

    def set(self, seconds: int) -> None:
        """Step it to so far ahead of the true time (behind, when negative), for running processes too."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.rename(self._file)  # whole or not at all: it is read with every look at the clock

    @property
    def environ(self) -> dict[str, str]:
        """What a process must have in its environment to go by this clock."""
        return {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": str(self._python),
        }


@contextmanager
def other_host(cli: Cli, name: str = "elsewhere", *, home: str | None = None) -> Iterator[OtherHost]:
    """Give the program on another host that shares the store, and end its processes afterwards.

    It has a home of its own, and is another machine; a home that is given instead has come to be in another container.
    """
    need_root(["unshare", "--uts", "--mount", "true"], "give a process another host name")
    folder = cli.folder / name
    folder.mkdir()
    root = home or str(folder / "home")
    target = locate(None, {"QUEUECTL_HOME": root, "QUEUECTL_DATABASE_URL": cli.target.url})
    host = OtherHost(target, folder, name, has_own_boot=home is None)
    try:
        yield host
    finally:
        host.clean_up()


def _library() -> str:
    """Ask the installed program where its library is."""
    argv = ["faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
