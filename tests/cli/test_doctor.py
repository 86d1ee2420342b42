"""`queuectl doctor` as people meet it: its words, its exit code, and faults of real workers and real limits."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from queuectl.actions.doctor import CHECKS
from queuectl.system.limits import FILES_PER_RUN, OWN_FILES
from tests.cli.terminal import on_terminal
from tests.program import QUOTED, Cli, pids_with, wait_for
from tests.scenarios.faults import bound_by_modes, read_only
from tests.scenarios.processes import cut_power, standing_still, worker_pid

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "doctor.md"


def finding(cli: Cli, check: str) -> dict[str, object]:
    """Return the one thing a check has to say."""
    (found,) = [one for one in cli.json("doctor") if one["check"] == check]
    return found


def test_every_check_is_in_the_guide_with_what_it_asks() -> None:
    page = GUIDE.read_text()

    assert [check.name for check in CHECKS if f"| `{check.name}` |" not in page] == []
    assert [check.name for check in CHECKS if not check.about] == []


def test_warnings_are_told_with_their_mending_and_the_exit_code_is_0(cli: Cli) -> None:
    cli.enqueue("true")

    done = cli.run("doctor")

    assert (done.returncode, done.stderr) == (0, "")
    assert "warning: workers: no worker is running while a job waits\n  start a worker: queuectl" in done.stdout
    assert "ok:" not in done.stdout
    assert done.stdout.splitlines()[-1].endswith("0 errors, 2 warnings")  # the test's own home can be read by others


def test_an_error_is_exit_code_1_and_the_other_checks_are_told_too(local: Cli) -> None:
    Path(local.target.home.database).write_text("no database at all, but long enough to be one" * 10)

    done = local.run("doctor", "-v")

    assert (done.returncode, done.stderr) == (1, "")
    assert "error: store: " in done.stdout
    assert "is not a database" in done.stdout
    assert "ok: shell: /bin/sh can be run" in done.stdout


def test_what_is_well_is_told_on_demand(local: Cli) -> None:
    Path(local.target.home.root).chmod(0o700)

    assert local.ok("doctor") == "all is well: 13 checks\n"
    assert "ok: home: " in local.ok("doctor", "-v")
    assert "ok: home: " in local.ok("doctor", "--verbose")


def test_a_terminal_gets_marks_in_colour(local: Cli) -> None:
    local.enqueue("true")

    seen = on_terminal(local, "doctor", "-v")

    assert "\x1b[1;33m! workers:\x1b[0m no worker is running" in seen.screen
    assert "\x1b[1;32m✓ home:\x1b[0m" in seen.screen


def test_a_deep_look_says_so(local: Cli) -> None:
    local.enqueue("true")

    assert "(--deep looks closer)" in local.ok("doctor", "-v")
    assert "every page, row and index is whole" in local.ok("doctor", "-v", "--deep")


def test_a_worker_that_was_killed_is_found_with_its_job(cli: Cli) -> None:
    job = cli.enqueue("sleep 600")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state(job, "processing")
    assert finding(cli, "dead-workers")["level"] == finding(cli, "orphans")["level"] == "ok"

    cut_power(cli)

    def told() -> bool:
        said = str(finding(cli, "dead-workers")["what"])
        return "supervisor " in said and "worker " in said

    wait_for(told, "both to be gone and told")  # a killed process holds its lock until the kernel is done with it
    assert str(finding(cli, "orphans")["what"]).endswith(f"the worker is gone: {job}")


def test_a_worker_that_was_stopped_is_found(local: Cli) -> None:
    settings = {"QUEUECTL_WORKER_HEARTBEAT_INTERVAL": "1", "QUEUECTL_LOCK_LEASE_SECONDS": "7"}
    local.ok("worker", "start", "-d", env=settings)
    pid = worker_pid(local)

    def hung() -> str | None:
        done = local.run("doctor", env=settings)
        assert done.returncode == 0
        return done.stdout if f"kill -CONT {pid}" in done.stdout else None

    with standing_still(pid):
        said = wait_for(hung, "the stopped worker to be told")

    assert f"(pid {pid} on " in said
    assert "is stopped (SIGSTOP)" in said


def test_what_a_command_left_in_the_background_is_found(local: Cli) -> None:
    local.enqueue("sleep 600 >/dev/null 2>&1 &")
    local.drain()

    left = finding(local, "processes")

    (pid,) = [
        pid for pid in pids_with("QUEUECTL_JOB_ID", "1") if pid in pids_with("QUEUECTL_HOME", local.target.home.root)
    ]
    os.kill(pid, signal.SIGKILL)
    assert f"process {pid} (sleep, job number 1)" in str(left["what"])


def test_a_home_that_cannot_be_written_is_an_error(local: Cli) -> None:
    local.enqueue("true")
    local.prefix = bound_by_modes()

    with read_only(Path(local.target.home.root)):
        done = local.run("doctor")

    assert done.returncode == 1
    assert f"error: home: {local.target.home.root} cannot be written" in done.stdout


@pytest.mark.needs("prlimit")
def test_too_few_open_files_for_the_slots_are_told(local: Cli) -> None:
    local.ok("config", "set", "max_concurrent_jobs", "100")
    allowed, needed = OWN_FILES + 20 * FILES_PER_RUN, OWN_FILES + 100 * FILES_PER_RUN
    local.prefix = ("prlimit", f"--nofile={allowed}:{allowed}")

    found = finding(local, "open-files")

    assert found["level"] == "warning"
    assert f"needs {needed} open files, and {allowed} are allowed: a worker runs 20 at once" in str(found["what"])


@pytest.mark.needs("unshare")
def test_watches_that_are_used_up_are_told(local: Cli) -> None:
    script = f"echo 0 >/proc/sys/user/max_inotify_instances && exec {QUOTED} doctor"
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode:
        (pytest.fail if "CI" in os.environ else pytest.skip)("this kernel lets nobody have a user namespace")

    done = subprocess.run(["unshare", "-Ur", "sh", "-c", script], env=local.environ, capture_output=True, text=True)

    assert "warning: inotify: no file can be watched" in done.stdout
    assert "fs.inotify.max_user_instances" in done.stdout


def test_terminal_sequences_in_what_was_found_are_not_obeyed(local: Cli) -> None:
    # Not through the script: in a folder with a blank it is a shell's, which drops such a variable.
    done = subprocess.run(
        [sys.executable, "-m", "queuectl", "doctor"], env={**local.environ, "QUEUECTL_\x1b[2JX": "1"},
        capture_output=True, text=True,
    )  # fmt: skip

    assert "\\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout
