"""Checks of this program on this host: its versions, and what the kernel allows it."""

import os
import platform
import sys

from queuectl import __version__
from queuectl.model.finding import error, ok, warning
from queuectl.system.launch import is_compiled, is_of_another_version
from queuectl.system.limits import FILES_PER_RUN, OWN_FILES, most_open_files, slots_that_fit
from queuectl.system.wake import can_watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding

LEAST_PYTHON = (3, 11)
LEAST_SQLITE = (3, 51, 3)  # before: the log of a file that several processes write could corrupt it


def program(case: "Case") -> "Iterator[Finding]":
    """Which versions are at work, and whether what this store needs is installed."""
    from queuectl.store.sqlite import library_version

    sqlite = library_version()
    yield from judge_versions(sys.version_info[:3], sqlite)
    if case.target.sqlite_path is None and not _has_psycopg():
        yield error("the psycopg package is not installed, and this store is a PostgreSQL", _INSTALL)
    yield ok(f"queuectl {__version__}, Python {platform.python_version()}, SQLite {sqlite}, {_launch()}")


def judge_versions(python: tuple[int, ...], sqlite: str) -> "Iterator[Finding]":
    """Judge the versions of Python and SQLite."""
    if python < LEAST_PYTHON:
        yield error(f"Python {'.'.join(map(str, python))} is too old", "use Python 3.11 or newer")
    if tuple(int(part) for part in sqlite.split(".")) < LEAST_SQLITE:
        yield error(
            f"SQLite {sqlite} can corrupt a file that several processes write",
            "upgrade it: pip install --upgrade apsw",
        )


def inotify(case: "Case") -> "Iterator[Finding]":
    """Whether idle workers can be woken by a touch of a file."""
    home = case.target.home
    path = next((path for path in (home.wake, home.run, home.root) if os.path.exists(path)), "/")
    if can_watch(path):
        yield ok("files can be watched (inotify)")
    else:
        yield warning(
            "no file can be watched (inotify): idle workers look five times a second instead",
            "allow more: sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288",
        )


def open_files(case: "Case") -> "Iterator[Finding]":
    """Whether a worker may open as many files as its commands need."""
    slots, most = case.settings.max_concurrent_jobs, most_open_files()
    needed = OWN_FILES + slots * FILES_PER_RUN
    if most is None or needed <= most:
        yield ok(f"{slots} at once need {needed} open files; {'any number' if most is None else most} are allowed")
        return
    yield warning(
        f"max_concurrent_jobs {slots} needs {needed} open files, and {most} are allowed: "
        f"a worker runs {slots_that_fit(slots, most)} at once",
        f"raise the limit before you start workers: ulimit -Hn {needed} (LimitNOFILE= in a systemd unit)",
    )


def _launch() -> str:
    """Say how plain commands are started."""
    if is_compiled():
        return "compiled launch"
    if is_of_another_version():
        return "no compiled launch (what was built is of another version: install queuectl again)"
    return "no compiled launch (install it where there is a C compiler: short commands run a fifth quicker)"


_INSTALL = "install it: pip install 'queuectl[postgres]'"


def _has_psycopg() -> bool:
    from importlib.util import find_spec

    return find_spec("psycopg") is not None
