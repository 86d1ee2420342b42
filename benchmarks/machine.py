"""The machine a run was made on: its parts, their versions, and how long a sync of its disk takes."""

import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import apsw
import psycopg

from queuectl.runtime.hand import HOLD_S
from queuectl.system.launch import is_compiled

SYNCS = 50
MEASURED = ("src", "benchmarks/*.py", "benchmarks/peers", "benchmarks/workloads", "pyproject.toml")
"""What of the tree a figure depends on; results and documents are not part of it."""
PAGE = b"x" * 4096
POSTGRES_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")

COMPILED, STEP_BY_STEP = "commands launched by the compiled module", "no compiled module to launch commands by"

DURABILITY = {
    "SQLite": "every job from the moment `enqueue` returns (synchronous=FULL); results but for those of the last "
    "seconds, which are synced with each heartbeat: such a job runs again",
    "PostgreSQL": "every job from the moment `enqueue` returns: each commit is synced (fsync and synchronous_commit "
    f"on); results but for those of short runs of the last {HOLD_S * 1000:.0f} ms, where it is the workers' host that "
    "loses its power: such a job runs again",
    "xargs": "nothing",
}
"""What each side still has after a power cut."""


def describe(server_url: str) -> dict[str, str | float]:
    """Say what it ran on."""
    folder = tempfile.gettempdir()
    with psycopg.connect(server_url) as connection:
        postgres = str(connection.info.server_version // 10000)
        kept = {name: connection.execute(f"SHOW {name}").fetchone() for name in POSTGRES_DURABILITY}
    return {
        "cores": os.cpu_count() or 1,
        "processor": _processor(),
        "kernel": f"Linux {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "postgresql": postgres,
        "postgresql_durability": ", ".join(f"{name} {row[0]}" for name, row in kept.items() if row),
        "file_system": file_system_of(folder, Path("/proc/mounts").read_text()),
        "sync_ms": round(sync_s(folder) * 1000, 3),
        "launch": COMPILED if is_compiled() else STEP_BY_STEP,
        "load": round(os.getloadavg()[0], 2),
    }


def sentence(machine: Mapping[str, str | float]) -> str:
    """Say the same in one line."""
    durability = f" ({machine['postgresql_durability']})" if "postgresql_durability" in machine else ""
    launch = f", {machine['launch']}" if "launch" in machine else ""
    load = f", load average {machine['load']} before it began" if "load" in machine else ""
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['kernel']}, Python {machine['python']}, "
        f"SQLite {machine['sqlite']}, PostgreSQL {machine['postgresql']}{durability} on the same host, "
        f"{machine['file_system']} with a sync in {machine['sync_ms']} ms{launch}{load}"
    )


def file_system_of(folder: str, mounts: str) -> str:
    """Return the type of the file system a folder is on, by the list of mounts."""
    points = [line.split()[1:3] for line in mounts.splitlines()]
    holding = [(point, kind) for point, kind in points if f"{folder}/".startswith(f"{point.rstrip('/')}/")]
    return max(holding, key=lambda each: len(each[0]))[1]


def sync_s(folder: str) -> float:
    """Return how long it takes to write a page and have it on the disk: the median of some."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            begun = time.perf_counter()
            os.write(file.fileno(), PAGE)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - begun)
    return statistics.median(took)


def commit(root: Path) -> str:
    """Return the commit of a source tree, and whether what runs differs from it; nothing where there is no git."""
    try:
        found = subprocess.check_output(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"], text=True).strip()
        changed = ["git", "-C", str(root), "status", "--porcelain", "--", *MEASURED]
        return found + (" with changes" if subprocess.check_output(changed) else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
