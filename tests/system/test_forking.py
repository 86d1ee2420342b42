"""Forking: a child has what its parent has loaded, and nothing that it holds, prints or does at its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, os, signal, sys, threading
from queuectl.system import forking
atexit.register(print, "atexit")
print("before")
{before}
def work():
    {work}
try:
    child = forking.fork(work, is_silent={is_silent})
    {after}
    os.close(child.control)
    _, status = os.waitpid(child.pid, 0)
    print(os.waitstatus_to_exitcode(status))
finally:
    print("finally")
"""


def forked(
    work: str, *, before: str = "", after: str = "", is_silent: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run a program that forks a child for some work, and waits for it; what it prints is buffered, as in a pipe."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    program = PROGRAM.format(work=work, before=before, after=after, is_silent=is_silent)
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "work, code, says",
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('no such thing')", 1, "ValueError: no such thing"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
    ],
)
def test_however_a_child_ends_it_does_nothing_of_what_its_parent_does(work: str, code: int, says: str) -> None:
    done = forked(work)

    assert done.stdout.splitlines() == ["before", str(code), "finally", "atexit"]
    assert says in done.stderr


def test_a_child_holds_its_streams_and_its_control_pipe_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    opened = f"file = open({str(tmp_path / 'file')!r}); os.set_inheritable(file.fileno(), True)"
    sibling = "forking.fork(lambda: os.read(0, 1), is_silent=False)"
    look = "print(*sorted(name for name in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{name}')))"

    done = forked(look, before=f"{opened}; other = {sibling}")

    assert done.stdout.splitlines()[1] == "0 1 2"


def test_a_child_reads_the_end_of_its_pipe_when_its_parent_closes_it_though_another_was_forked_since() -> None:
    done = forked("os.read(0, 1); sys.exit(4)", after="other = forking.fork(lambda: os.read(0, 1), is_silent=False)")

    assert "4" in done.stdout.splitlines()


def test_a_silent_child_says_nothing() -> None:
    done = forked(
        "print('out'); print('err', file=sys.stderr); os.write(1, b'raw'); os.write(2, b'raw')", is_silent=True
    )

    assert done.stdout.splitlines() == ["before", "0", "finally", "atexit"]
    assert done.stderr == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_child_leaves_signals_to_its_parent_from_birth(number: int) -> None:
    done = forked("os.read(0, 1)", after=f"os.kill(child.pid, {number})")

    assert done.stdout.splitlines() == ["before", "0", "finally", "atexit"]


def test_files_of_the_folder_do_not_pass_for_modules_in_a_child() -> None:
    done = forked("sys.exit(4 if '' in sys.path else 0)", before="print('' in sys.path)")

    assert done.stdout.splitlines()[1:3] == ["True", "0"]


def test_a_process_with_a_second_thread_cannot_fork() -> None:
    start = "e = threading.Event(); threading.Thread(target=e.wait, daemon=True).start()"

    alone = forked("pass", before="print(forking.can_fork())")
    two = forked("pass", before=f"{start}; print(forking.can_fork())")

    assert (alone.stdout.splitlines()[1], two.stdout.splitlines()[1]) == ("True", "False")
