"""Usage: what a whole tree takes is counted, and nothing else."""

import os
import subprocess
import sys

import pytest

from queuectl.system.process import Links, Processes
from queuectl.system.usage import Meter
from tests.program import wait_for

BUSY = "import sys; held = bytearray(64 << 20); print('ready', flush=True)\nwhile True: pass"


def test_what_children_take_counts_for_the_tree() -> None:
    line = f'"{sys.executable}" -c "$1" & wait'
    with subprocess.Popen(["/bin/sh", "-c", line, "sh", BUSY], stdout=subprocess.PIPE, start_new_session=True) as shell:
        try:
            assert shell.stdout is not None
            shell.stdout.readline()
            meter = Meter()
            meter.look([shell.pid])

            busy = wait_for(
                lambda: usage if (usage := meter.look([shell.pid])[shell.pid]).cores else None, "a busy second look"
            )
        finally:
            for pid in Processes().of_leader(shell.pid):
                subprocess.run(["kill", "-9", str(pid)], check=False)

    assert busy.processes == 2
    assert busy.memory_bytes > 64 << 20
    assert busy.cpu_ms > 0


def test_a_leader_that_is_gone_is_left_out() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as gone:
        gone.wait()

    assert Meter().look([gone.pid]) == {}


def test_a_command_whose_pid_is_not_known_yet_takes_nothing_of_the_kernels_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {os.getpid(): Links(parent=0, group=0, session=0, started=0.0)}
    monkeypatch.setattr(Processes, "table", kernels)

    assert Meter().look([0]) == {}
