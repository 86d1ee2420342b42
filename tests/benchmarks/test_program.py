"""What the benchmarks start, and that none of it outlives them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import program


def test_what_was_started_ends_with_a_run_that_is_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def stop(process: subprocess.Popen[bytes]) -> float:
        started.append(process)
        sys.exit(143)

    monkeypatch.setattr(program, "_reap", stop)

    with pytest.raises(SystemExit):
        program.spend(["sleep", "600"], os.environ)
    with pytest.raises(SystemExit):
        program.spend_together(["sleep", "600"], 2, os.environ)

    assert [process.returncode for process in started] == [-15, -15]


def test_a_command_that_fails_is_told_of() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        program.spend(["sh", "-c", "exit 3"], os.environ)
