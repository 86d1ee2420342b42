"""Workers that are forked from their supervisor are to everybody what they would be as processes of their own."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from queuectl.actions.connect import point_at
from tests.program import Cli, pids_with, wait_for
from tests.scenarios.working import environment_of, on_sqlite, wait_for_workers

COUNT = 3
PATCHED = """
import sys
from queuectl.system import guise
{patch}
del sys.argv[0]
from queuectl.cli.main import entry
entry()
"""


def start_workers(cli: Cli, *prefix: str) -> tuple[int, dict[str, int]]:
    """Start workers in the foreground; return the pid of their supervisor, and theirs by their ids."""
    cli.prefix = prefix
    supervisor = cli.start("worker", "start", "-n", str(COUNT))
    cli.prefix = ()
    found = wait_for_workers(cli, COUNT)
    return supervisor.pid, {str(worker["id"]): int(str(worker["pid"])) for worker in found}


def is_fresh(pid: int) -> bool:
    """Whether a process shows the environment it was started with, beyond its stack, and not one it made itself."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    stack, environment = int(stat[28 - 3]), int(stat[50 - 3])
    return environment > stack


def channels_of(pid: int) -> set[str]:
    """Return the pipes and sockets that a process holds, but for its output, however often that is open."""
    folder = f"/proc/{pid}/fd"
    found = {fd: os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)}
    return {target for target in found.values() if re.match(r"(pipe|socket):", target)} - {found["1"], found["2"]}


def test_a_forked_worker_shows_its_own_id_and_nothing_of_the_job_it_was_started_in(cli: Cli) -> None:
    marks = ("QUEUECTL_CLAIM=0123456789abcdef:1:1", "QUEUECTL_WORKER=0123456789abcdef", "QUEUECTL_RESTARTED=1")

    supervisor, workers = start_workers(cli, "env", *marks)

    usual = point_at(cli.target, environment_of(supervisor))
    for mark in marks:
        usual.pop(mark.partition("=")[0])
    assert [is_fresh(pid) for pid in (supervisor, *workers.values())] == [True] + [False] * COUNT
    for worker_id, pid in workers.items():
        assert environment_of(pid) == {**usual, "QUEUECTL_WORKER": worker_id}
        assert worker_id in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_forked_worker_holds_nothing_of_its_supervisor_or_of_its_siblings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "given").touch()

    supervisor, workers = start_workers(cli, "sh", "-c", f'exec 7<{tmp_path}/given; exec "$@"', "sh")

    theirs = channels_of(supervisor)
    assert os.readlink(f"/proc/{supervisor}/fd/7") == str(tmp_path / "given")
    for pid in workers.values():
        control = os.readlink(f"/proc/{pid}/fd/0")
        assert channels_of(pid) & theirs == {control}
        assert not any(control in channels_of(other) for other in workers.values() if other != pid)
        assert str(tmp_path / "given") not in [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]


def test_every_forked_worker_leaves_when_its_supervisor_is_killed(cli: Cli) -> None:
    supervisor, workers = start_workers(cli)

    os.kill(supervisor, signal.SIGKILL)

    wait_for(lambda: not any(pids_with("QUEUECTL_WORKER", one) for one in workers) or None, "the end of all")


def test_a_forked_worker_that_is_killed_is_replaced_by_a_fresh_one(cli: Cli) -> None:
    _, workers = start_workers(cli)
    killed = next(iter(workers.values()))

    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in [one["pid"] for one in cli.json("worker", "list")] or None, "death")
    found = {str(one["id"]): int(str(one["pid"])) for one in wait_for_workers(cli, COUNT)}

    (fresh,) = found.keys() - workers.keys()
    # A signal to the group of the supervisor must not find a command that has no session of its own yet.
    assert {os.getpgid(pid) == pid for pid in found.values()} == {True}
    assert environment_of(found[fresh])["QUEUECTL_WORKER"] == fresh
    assert {pid for pid in found.values() if is_fresh(pid)} == {found[fresh]}


@on_sqlite
def test_forked_workers_leave_with_a_supervisor_that_cannot_start(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_text("not a database at all" * 1000)
    env = {"QUEUECTL_DATABASE_URL": f"sqlite:///{tmp_path}/queue.db", "STARTED_BY": str(tmp_path)}

    done = cli.run("worker", "start", "-n", str(COUNT), env=env)

    assert (done.returncode, "Traceback" in done.stderr) == (5, False), done.stderr
    wait_for(lambda: not pids_with("STARTED_BY", str(tmp_path)) or None, "the end of all that was started")


@on_sqlite
@pytest.mark.parametrize(
    "patch",
    ["guise._PR_SET_MM = -1", "guise._show = lambda *_: None"],
    ids=["a kernel that refuses", "a kernel that pretends"],
)
def test_workers_start_afresh_where_they_could_not_show_their_ids(cli: Cli, patch: str) -> None:
    supervisor, workers = start_workers(cli, sys.executable, "-c", PATCHED.format(patch=patch))

    for worker_id, pid in workers.items():
        assert environment_of(pid)["QUEUECTL_WORKER"] == worker_id
        assert worker_id in Path(f"/proc/{pid}/cmdline").read_text()
        assert channels_of(pid) & channels_of(supervisor) == {os.readlink(f"/proc/{pid}/fd/0")}
    assert cli.wait_for_state(cli.enqueue("true"), "completed")
