"""Terminal sequences in what jobs are made of are shown, never obeyed: by every command that prints a job."""

import json
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import on_terminal
from tests.program import QUOTED, Cli, wait_for

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J"
EVIL = f"{TITLE}{CLEAR}\x9b2J\u202e\b\x7f"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\x08\x7f"
OBEYED = [char.encode() for char in "\x1b\x07\x9b\u202e\b\x7f"]
COMMANDS = [
    "list", "list --json", "list --state dead", "status", "status --json", "dlq list", "dlq list --json",
    "dlq show evil", "show evil", "show nowhere", "show vector", "show later", "show evil --json",
    "show nowhere --json", "queue list", "worker list --all", "config list", "logs later", "logs nowhere --json",
    "doctor -v",
]  # fmt: skip


@pytest.fixture
def evil(cli: Cli) -> Cli:
    """A store of each kind whose jobs hold sequences wherever a job can."""
    base = {"max_retries": 0}
    lines = [
        {**base, "id": "evil", "command": f": '{EVIL}'; exit 3", "env": {"A": EVIL, f"B{TITLE}": "x"}, "tags": ["t"]},
        {**base, "id": "nowhere", "command": "true", "cwd": f"/{EVIL}"},
        {**base, "id": "vector", "argv": [f"/no/{EVIL}", EVIL]},
        {**base, "id": "later", "command": f"echo {EVIL}", "delay": "1h"},
    ]
    cli.ok("enqueue", "--from", "-", stdin="\n".join(map(json.dumps, lines)))
    cli.drain()
    return cli


def obeyed(data: bytes) -> list[bytes]:
    """Return what a terminal would act upon."""
    return [char for char in OBEYED if char in data]


def test_no_command_that_prints_a_job_lets_a_sequence_into_a_pipe(evil: Cli) -> None:
    for words in COMMANDS:
        done = evil.run(*words.split())
        assert done.returncode == 0, done.stderr
        assert obeyed((done.stdout + done.stderr).encode()) == [], words

    assert SHOWN in evil.ok("list")
    assert f"cannot enter /{SHOWN}" in evil.ok("show", "nowhere")
    assert f"B{SHOWN[:15]}" in evil.ok("show", "evil")
    assert evil.json("show", "evil")[0]["command"] == f": '{EVIL}'; exit 3"


def test_a_terminal_gets_no_sequence_of_a_job_either(evil: Cli) -> None:
    for words in ("list", "show evil", "show nowhere", "dlq list", "list --json"):
        seen = on_terminal(evil, *words.split(), columns=250)
        assert "\x1b]0;" not in seen.screen, words
        assert "\x1b[2J" not in seen.screen
        assert not {"\x9b", "\x07", "\u202e", "\b"} & set(seen.screen)

    typed = on_terminal(evil, "enqueue", f"echo {EVIL}", stdout_in_pipe=True)
    assert f"will run: echo {SHOWN}" in typed.screen


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_lines_of_workers_hold_no_sequence(cli: Cli, form: str) -> None:
    for job in (
        {"command": f"sleep 0.5; : '{EVIL}'", "max_retries": 0},
        {"command": "true", "cwd": f"/{EVIL}", "max_retries": 0},
        {"argv": [f"/no/{EVIL}"], "max_retries": 0},
    ):
        cli.enqueue(json.dumps(job))

    done = cli.run("worker", "start", "--until-idle", "--log-format", form)
    cli.ok("worker", "start", "-d", "--until-idle")

    assert done.returncode == 0
    assert obeyed(done.stderr.encode()) == []
    assert "owned" in done.stderr
    assert "cannot enter" in done.stderr


def test_the_log_file_of_workers_holds_no_sequence(local: Cli) -> None:
    local.enqueue(json.dumps({"id": "evil", "command": "true", "cwd": f"/{EVIL}", "max_retries": 0}))

    local.ok("worker", "start", "-d", "--until-idle")
    local.wait_for_state("evil", "dead")

    log = Path(local.target.home.worker_log)
    wait_for(lambda: log.exists() and "cannot enter" in log.read_text(), "the line about the job")
    assert obeyed(log.read_bytes()) == []


@pytest.fixture
def tmux() -> Iterator[list[str]]:
    """A terminal multiplexer of the test's own."""
    words = ["tmux", "-L", f"queuectl-{uuid.uuid4().hex}", "-f", "/dev/null"]
    yield words
    subprocess.run([*words, "kill-server"], capture_output=True)


@pytest.mark.needs("tmux")
def test_a_real_terminal_keeps_its_title_and_its_screen(local: Cli, tmux: list[str]) -> None:
    local.enqueue(json.dumps({"id": "evil", "command": f": '{EVIL}'", "cwd": f"/{EVIL}", "max_retries": 0}))
    local.drain()
    lines = [f"{QUOTED} {words}" for words in ("list", "show evil", "dlq list", "status", "list --json", "logs evil")]
    script = local.folder / "script"
    script.write_text("\n".join(["echo first", *lines, f"{QUOTED} show {shlex.quote('x' + EVIL)}", "echo over", "cat"]))

    def pane(*words: str) -> str:
        return subprocess.run([*tmux, *words], capture_output=True, text=True, env=local.environ).stdout

    pane("new-session", "-d", "-x", "200", "-y", "100", f"sh {shlex.quote(str(script))}")
    screen = wait_for(lambda: text if "\nover\n" in (text := pane("capture-pane", "-p")) else None, "the last line")

    assert screen.startswith("first\n")
    assert "owned" in screen
    assert "owned" not in pane("display-message", "-p", "#{pane_title}")
