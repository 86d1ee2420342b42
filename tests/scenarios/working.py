"""What the scenarios have in common: looking at jobs, at workers and at their processes."""

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import pytest

from queuectl.actions import fleet
from queuectl.actions.connect import locate
from queuectl.store import jobs
from queuectl.store.database import Tx
from tests.program import Cli, pids_with, wait_for

Run = dict[str, object]

# For what the kind of store has no part in.
on_sqlite = pytest.mark.parametrize("target", ["sqlite"], indirect=True)
# For what needs a store that several hosts share.
on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)


def runs_of(job: dict[str, object]) -> list[Run]:
    """Return the runs of a job."""
    return cast("list[Run]", job["runs"])


def last_run(cli: Cli, job_id: str) -> Run:
    """Return the newest run of a job."""
    return runs_of(cli.job(job_id))[-1]


def outcome_of(cli: Cli, job_id: str) -> tuple[object, object, object]:
    """Return outcome, exit code and signal of the newest run of a job."""
    run = last_run(cli, job_id)
    return run["outcome"], run["exit_code"], run["signal"]


def seconds(text: object) -> float:
    """Return a time of the JSON output in seconds."""
    return datetime.fromisoformat(str(text)).timestamp()


def workers_of(cli: Cli) -> list[dict[str, object]]:
    """Return the living workers."""
    return cli.json("worker", "list")


def wait_for_workers(cli: Cli, count: int) -> list[dict[str, object]]:
    """Wait until so many workers live, and return them."""
    return cli.wait_for(
        lambda: found if len(found := workers_of(cli)) == count else None,
        lambda tx: len(fleet.living(tx)) == count,
        f"{count} workers",
    )


def enqueue_all(cli: Cli, commands: Iterable[str], **fields: object) -> list[str]:
    """Add a job per shell line, all with the same fields, and return their ids; one process does it."""
    lines = [json.dumps({"command": command, **fields}) for command in commands]
    return cli.ok("enqueue", "--from", "-", stdin="\n".join(lines)).split()


def wait_for_all(cli: Cli, ids: Sequence[str], *states: str) -> list[dict[str, object]]:
    """Wait until every job is in one of the states and return them in order; one process looks at all."""

    def look() -> list[dict[str, object]] | None:
        listed = {job["id"]: job for job in cli.json("list", "--limit", "1000")}
        found = [listed[job_id] for job_id in ids]
        return found if all(job["state"] in states for job in found) else None

    def is_likely(tx: Tx) -> bool:
        found = [jobs.find(tx, job_id) for job_id in ids]
        return all(job is None or job.state in states for job in found)

    return cli.wait_for(look, is_likely, f"{ids} {states}")


def wait_for_line(path: Path, line: str) -> None:
    """Wait until a command has written a line into a file of its own."""
    wait_for(lambda: (path.exists() and line in path.read_text().splitlines()) or None, f"{line!r} in {path.name}")


def stays(look: Callable[[], bool], what: str, seconds: float) -> None:
    """Look again and again that something is so, until so much time has passed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert look(), f"no longer so: {what}"
        time.sleep(0.2)


def marked(job: dict[str, object]) -> list[int]:
    """Return the living processes of the run a job was in when it was looked at."""
    mark = f"{job['worker']}:{job['number']}:{job['run']}"
    return [pid for pid in pids_with("QUEUECTL_CLAIM", mark) if is_running(pid)]


def tree_of(cli: Cli, job_id: str) -> list[int]:
    """Return the living processes of the run of a job that is under way."""
    return marked(cli.job(job_id))


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def another(cli: Cli, folder: Path) -> Cli:
    """Return the program with a second home of its own."""
    folder.mkdir()
    return Cli(locate(None, {"QUEUECTL_HOME": str(folder / "home")}), folder)
