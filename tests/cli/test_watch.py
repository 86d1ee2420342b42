"""`queuectl status --watch`: a screen on a terminal, an object or a block per change elsewhere."""

import json
import signal
import subprocess

from tests.cli.terminal import on_terminal
from tests.program import PROGRAM, Cli


def start_watch(cli: Cli, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PROGRAM, "status", "--watch", *words],
        env=cli.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_each_change_is_an_object_a_line_and_an_interrupt_is_the_end(cli: Cli) -> None:
    process = start_watch(cli, "--json")
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())

    cli.enqueue("true")
    second = json.loads(process.stdout.readline())
    cli.ok("cancel", "last")
    third = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=100)

    assert [one["jobs"]["pending"] for one in (first, second, third)] == [0, 1, 0]
    assert third["jobs"]["cancelled"] == 1
    assert (process.returncode, rest, said) == (0, "", "")


def test_in_a_pipe_each_change_is_a_block_of_text(cli: Cli) -> None:
    cli.enqueue("true")
    process = start_watch(cli)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(4)]

    cli.enqueue("--queue", "mail", "true")
    second = [process.stdout.readline() for _ in range(6)]
    process.send_signal(signal.SIGINT)

    assert first[0].split()[:2] == ["QUEUE", "PENDING"]
    assert first[1].split()[:2] == ["default", "1"]
    assert [line.split()[:2] for line in second[1:4]] == [["default", "1"], ["mail", "1"], ["(all)", "2"]]
    process.communicate(timeout=100)
    assert process.returncode == 0


def test_on_a_terminal_it_is_a_screen_that_q_leaves(cli: Cli) -> None:
    cli.enqueue("--id", "bad", "--max-retries", "0", "printf '\\033]0;title\\007'; exit 3")
    cli.drain()

    seen = on_terminal(cli, "status", "--watch", typed="q")

    assert seen.code == 0
    assert "\x1b[?1049h" in seen.screen
    assert "default" in seen.screen
    assert "exit code 3" in seen.screen
    assert "\x1b]0;title" not in seen.screen
    assert seen.screen.rindex("\x1b[?1049l") > seen.screen.rindex("exit code 3")


def test_an_empty_store_can_be_watched(cli: Cli) -> None:
    seen = on_terminal(cli, "status", "--watch", typed="xq")

    assert seen.code == 0
    assert "no worker is running" in seen.screen
