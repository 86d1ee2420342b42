"""`worker install` and `uninstall`: the unit that is written, what systemd is told, and what is said when it is not."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from queuectl.model.unit import SUPERVISED, Unit
from tests.cli.systemd import Recorder
from tests.program import PROGRAM, Cli
from tests.test_service import UNIT as EXAMPLE

IN_UNIT = f'"{PROGRAM}"' if " " in PROGRAM else PROGRAM

NAME = "queuectl.service"
RELOAD = "systemctl --user daemon-reload"
ENABLE = f"systemctl --user enable --now {NAME}"


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A systemctl and a loginctl that write down what they are told, and a folder for the units."""
    return Recorder(tmp_path, monkeypatch)


def settings_of(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def verdict_on(path: Path) -> tuple[int, str, str]:
    """Let systemd read a unit of a user: its exit code and what it said."""
    argv = ["systemd-analyze", "--user", "verify", "--man=no", "--recursive-errors=no", str(path)]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(path.parent)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environ)
    return done.returncode, done.stdout, done.stderr


def test_the_unit_is_written_enabled_and_started(cli: Cli, systemd: Recorder) -> None:
    done = cli.run(
        "worker",
        "install",
        "-n",
        "3",
        "-j",
        "2",
        "--queue",
        "mail:2",
        "--queue",
        "web",
        "--label",
        "gpu",
        "--resource",
        "gpu=2",
    )

    assert done.returncode == 0, done.stderr
    unit = settings_of(systemd.unit(NAME).read_text())
    served = "--queue mail:2 --queue web:1 --label gpu --resource gpu=2"
    assert unit["ExecStart"] == [f"{IN_UNIT} worker start -n 3 -j 2 {served}"]
    assert f"QUEUECTL_HOME={cli.target.home.root}" in unit["Environment"]
    assert (f"QUEUECTL_DATABASE_URL={cli.target.url}" in unit["Environment"]) is (cli.target.sqlite_path is None)
    assert systemd.calls() == [RELOAD, ENABLE]
    assert done.stdout.splitlines() == [
        f"written {systemd.unit(NAME)}",
        f"done: {RELOAD}",
        f"done: {ENABLE}",
        f"log:  journalctl --user -u {NAME}",
        "undo: queuectl worker uninstall",
    ]
    assert "loginctl enable-linger" in done.stderr


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_unit_without_a_word(cli: Cli, systemd: Recorder, tmp_path: Path) -> None:
    secret = tmp_path / "a file.env"
    secret.write_text("X=1\n")
    secret.chmod(0o600)
    cli.ok("worker", "install", "-n", "2", "--queue", "mail", "--env-file", str(secret))

    assert verdict_on(systemd.unit(NAME)) == (0, "", "")


@pytest.mark.parametrize("name", ["a b%h$HOME;c", "a \"b\" 'c' \\$HOME"])
@pytest.mark.needs("systemd-analyze")
def test_systemd_reads_blanks_quotes_percents_and_dollars_as_they_are(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    program = folder / "queuectl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "odd.service"
    unit = Unit(name="odd.service", argv=(str(program), "x"), variables={"QUEUECTL_HOME": str(folder)}, env_file=None)
    path.write_text(unit.text)

    assert verdict_on(path) == (0, "", ""), unit.text


def test_the_example_stops_workers_with_the_same_words() -> None:
    assert SUPERVISED in EXAMPLE.read_text()


def test_a_dry_run_prints_the_unit_and_does_nothing(local: Cli, systemd: Recorder) -> None:
    done = local.run("worker", "install", "-n", "2", "--dry-run")

    assert done.returncode == 0
    assert f"ExecStart={IN_UNIT} worker start -n 2\n" in done.stdout
    assert not systemd.unit(NAME).exists()
    assert systemd.calls() == []
    assert f"then: {RELOAD}; {ENABLE}" in done.stderr


def test_several_units_have_names_of_their_own(local: Cli, systemd: Recorder) -> None:
    local.ok("worker", "install", "--name", "mail", "--queue", "mail")
    local.ok("worker", "install")
    local.ok("worker", "uninstall", "--name", "mail")

    assert systemd.unit(NAME).exists()
    assert not systemd.unit("queuectl-mail.service").exists()
    assert local.run("worker", "install", "--name", "../x").returncode == 2


def test_the_same_unit_again_is_fine_and_another_is_refused_unless_forced(local: Cli, systemd: Recorder) -> None:
    local.ok("worker", "install", "-n", "2")

    same = local.run("worker", "install", "-n", "2")
    other = local.run("worker", "install", "-n", "4")
    kept = systemd.unit(NAME).read_text()
    systemd.forget()
    forced = local.run("worker", "install", "-n", "4", "--force")

    assert (same.returncode, same.stdout.splitlines()[0]) == (0, f"is there already: {systemd.unit(NAME)}")
    assert (other.returncode, "-n 2" in kept) == (6, True)
    assert "--force" in other.stderr
    assert (forced.returncode, forced.stdout.splitlines()[0]) == (0, f"replaced {systemd.unit(NAME)}")
    assert "-n 4" in systemd.unit(NAME).read_text()
    assert systemd.calls() == [RELOAD, ENABLE, f"systemctl --user restart --no-block {NAME}"]


def test_lingering_is_turned_on_only_when_asked_for(local: Cli, systemd: Recorder) -> None:
    done = local.run("worker", "install", "--linger")

    assert systemd.calls() == [RELOAD, ENABLE, "loginctl enable-linger"]
    assert "say once" not in done.stderr


def test_a_password_does_not_stand_in_the_unit(local: Cli, systemd: Recorder, tmp_path: Path) -> None:
    url = {"QUEUECTL_DATABASE_URL": "postgresql://me:sesame@db/queue"}
    secret = tmp_path / "queuectl.env"
    secret.write_text(f"QUEUECTL_DATABASE_URL={url['QUEUECTL_DATABASE_URL']}\n")

    bare = local.run("worker", "install", env=url)
    secret.chmod(0o644)
    readable = local.run("worker", "install", "--env-file", str(secret), env=url)
    secret.chmod(0o600)
    fine = local.run("worker", "install", "--env-file", str(secret), env=url)

    assert (bare.returncode, "--env-file" in bare.stderr, "sesame" in bare.stderr) == (2, True, False)
    assert (readable.returncode, f"chmod 600 {secret}" in readable.stderr) == (2, True)
    assert fine.returncode == 0, fine.stderr
    text = systemd.unit(NAME).read_text()
    assert "sesame" not in text
    assert settings_of(text)["EnvironmentFile"] == [str(secret)]
    assert "QUEUECTL_DATABASE_URL" not in text


def test_a_password_that_the_file_does_not_hold_is_still_asked_for(
    local: Cli, systemd: Recorder, tmp_path: Path
) -> None:
    secret = tmp_path / "queuectl.env"
    secret.write_text("# QUEUECTL_DATABASE_URL=x\nOTHER=1\n")
    secret.chmod(0o600)

    done = local.run(
        "worker", "install", "--env-file", str(secret), env={"QUEUECTL_DATABASE_URL": "postgresql://me:sesame@db/queue"}
    )

    assert done.returncode == 2
    assert not systemd.unit(NAME).exists()


def test_where_systemd_cannot_be_reached_the_unit_is_written_and_the_rest_is_told(
    local: Cli, systemd: Recorder
) -> None:
    systemd.fail("Failed to connect to bus: No medium found")

    done = local.run("worker", "install")
    shape = json.loads(local.run("worker", "install", "--json").stdout)

    assert done.returncode == 1
    assert systemd.unit(NAME).exists()
    assert f"failed: {RELOAD}: Failed to connect to bus: No medium found" in done.stderr
    assert f"still to do, where systemd runs for you: {RELOAD} && {ENABLE}" in done.stderr
    assert systemd.calls() == [RELOAD, RELOAD], "after one that failed none is tried"
    assert [step["done"] for step in shape["steps"]] == [False, False]


def test_where_there_is_no_systemctl_it_says_so(local: Cli, systemd: Recorder) -> None:
    done = local.run("worker", "install", env={"PATH": str(Path(PROGRAM).parent)})

    assert done.returncode == 1
    assert f"failed: {RELOAD}: there is no systemctl here" in done.stderr


def test_an_uninstall_stops_disables_and_removes(local: Cli, systemd: Recorder) -> None:
    local.ok("worker", "install")
    systemd.forget()

    done = local.run("worker", "uninstall")

    assert done.returncode == 0, done.stderr
    assert not systemd.unit(NAME).exists()
    assert systemd.calls() == [f"systemctl --user disable --now {NAME}", RELOAD]
    assert done.stdout.splitlines()[0] == f"removed {systemd.unit(NAME)}"
    assert local.run("worker", "uninstall").returncode == 3


def test_a_unit_that_cannot_be_stopped_is_left(local: Cli, systemd: Recorder) -> None:
    local.ok("worker", "install")
    systemd.fail("Job for queuectl.service failed", only="disable")

    done = local.run("worker", "uninstall")

    assert done.returncode == 1
    assert systemd.unit(NAME).exists()
    assert f"left {systemd.unit(NAME)} where it is" in done.stdout
    assert "Job for queuectl.service failed" in done.stderr


def test_a_unit_is_removed_also_where_systemd_cannot_be_reached(local: Cli, systemd: Recorder) -> None:
    local.ok("worker", "install")
    wants = systemd.unit(NAME).parent / "default.target.wants"
    wants.mkdir()
    (wants / NAME).symlink_to(systemd.unit(NAME))
    systemd.fail("Failed to connect to bus")

    done = local.run("worker", "uninstall")

    assert done.returncode == 1
    assert not systemd.unit(NAME).exists()
    assert list(wants.iterdir()) == []
    assert f"still to do, where systemd runs for you: systemctl --user stop {NAME} && {RELOAD}" in done.stderr


def test_a_unit_written_by_hand_is_left_unless_forced(local: Cli, systemd: Recorder) -> None:
    systemd.unit(NAME).parent.mkdir(parents=True)
    systemd.unit(NAME).write_text("[Service]\nExecStart=/bin/true\n")

    refused = local.run("worker", "uninstall")
    forced = local.run("worker", "uninstall", "--force")

    assert (refused.returncode, forced.returncode) == (6, 0)
    assert not systemd.unit(NAME).exists()
