"""The unit for systemd in examples/: that systemd takes it, and that it starts and stops workers the right way."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from queuectl.settings import resolve
from tests.program import PROGRAM, Cli
from tests.scenarios.working import on_sqlite, wait_for_workers

UNIT = Path(__file__).parents[1] / "examples" / "queuectl.service"
SECONDS_IN = {"": 1, "s": 1, "min": 60, "h": 3600}


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_unit_without_a_word() -> None:
    argv = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(UNIT)]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_the_supervisor_hears_of_a_stop() -> None:
    assert unit()["KillMode"] == ["mixed"]
    assert "KillSignal" not in unit()


def test_systemd_hands_the_groups_below_over() -> None:
    assert unit()["Delegate"] == ["memory"]


def test_systemd_waits_longer_for_a_stop_than_the_workers_do() -> None:
    settings, _ = resolve({}, environment())
    found = re.fullmatch(r"(\d+)([a-z]*)", unit()["TimeoutStopSec"][0])
    assert found

    patience_s = int(found[1]) * SECONDS_IN[found[2]]

    assert settings.stop_timeout > 0
    assert patience_s >= settings.stop_timeout + settings.kill_grace_seconds + 15


@on_sqlite
def test_what_the_unit_starts_are_two_workers_that_a_sigterm_ends(cli: Cli) -> None:
    program, *words = unit()["ExecStart"][0].split()
    path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
    home = {"QUEUECTL_HOME": cli.target.home.root, "PATH": path}

    supervisor = subprocess.Popen([program, *words], env=environment() | home, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_workers(cli, 2)
        supervisor.send_signal(signal.SIGTERM)
        said = supervisor.communicate(timeout=100)[1]
    finally:
        supervisor.kill()
        supervisor.communicate()

    assert supervisor.returncode == 0, said


def environment() -> dict[str, str]:
    """Return the variables the unit sets."""
    return dict(word.split("=", 1) for word in unit()["Environment"])


def unit() -> dict[str, list[str]]:
    """Return the settings of the unit, each with all its values: systemd lets some be given several times."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found
