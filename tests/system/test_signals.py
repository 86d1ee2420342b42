"""Signals as bytes in a pipe: none is lost, and a worker heeds SIGTERM alone."""

import signal
import subprocess
import sys

LISTENER = """
import select, signal, sys
from queuectl.system.signals import {names}

pipe = SignalPipe({numbers})
print("ready", flush=True)
heard = []
while signal.SIGTERM not in heard:
    select.select([pipe.fd], [], [])
    heard += pipe.read()
print(*heard, pipe.read() == [], flush=True)
"""


def test_each_signal_of_a_stop_is_heard() -> None:
    listener = listen("SignalPipe, STOP_SIGNALS", "STOP_SIGNALS")

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        listener.send_signal(number)
    heard, _ = listener.communicate(timeout=60)

    *numbers, is_empty_after = heard.split()
    assert sorted(map(int, numbers)) == [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]
    assert (is_empty_after, listener.returncode) == ("True", 0)


def test_a_worker_leaves_every_stop_signal_to_its_supervisor() -> None:
    code = (
        "from queuectl.system.signals import leave_signals_to_supervisor as leave; leave(); "
        "print('ready', flush=True); input()"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        worker.send_signal(number)
    worker.communicate("go on\n", timeout=60)

    assert worker.returncode == 0


def test_children_can_be_waited_for_though_our_parent_ignored_theirs() -> None:
    listener = listen("SignalPipe, STOP_SIGNALS", "STOP_SIGNALS", ignored=signal.SIGCHLD)

    with open(f"/proc/{listener.pid}/status") as file:
        ignored = next(line.split()[1] for line in file if line.startswith("SigIgn"))
    listener.send_signal(signal.SIGTERM)
    listener.communicate(timeout=60)

    assert not int(ignored, 16) & 1 << (signal.SIGCHLD - 1)


def listen(names: str, numbers: str, ignored: int | None = None) -> "subprocess.Popen[str]":
    """Start a process that waits for signals and return it once it listens."""
    code = LISTENER.format(names=names, numbers=numbers)
    argv = [sys.executable, "-c", code]
    if ignored is not None:
        argv = ["/bin/bash", "-c", 'trap "" "$1"; shift; exec "$@"', "bash", str(int(ignored)), *argv]
    listener = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "ready\n"
    return listener
