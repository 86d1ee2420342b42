"""Processes: a reading of each, or none at all."""

import os
import subprocess
import sys

import pytest

from benchmarks.processes import cpu_s


def test_the_cpu_time_of_a_process_that_is_gone_is_not_nought() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()

    with pytest.raises(ProcessLookupError, match=f"process {gone.pid} is gone"):
        cpu_s([os.getpid(), gone.pid])
