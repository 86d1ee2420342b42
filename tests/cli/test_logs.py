"""queuectl logs: following, two streams, bytes that are no text, and terminals that must not be steered."""

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.cli.terminal import on_terminal
from tests.program import PROGRAM, QUOTED, Cli, wait_for

EVIL = r"\033]0;owned\007 \033[2J\033[H \033[31mred\033[0m \007\302\2332J caf\303\251 \377"
UNTIL_GO = "until [ -e go ]; do sleep 0.02; done"


@pytest.fixture
def worker(local: Cli) -> Cli:
    """The program, with a worker that runs four commands at once."""
    local.ok("worker", "start", "-d", "-j", "4")
    return local


class Following:
    """`queuectl logs -f`, as it goes on."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "logs", "-f", *words], env=cli.environ, cwd=cli.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def line(self) -> str:
        """Wait for a line of output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def told(self) -> str:
        """Wait for a line that is no output."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def end(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code and what was still printed."""
        output, told = self.process.communicate(timeout=60)
        return self.process.returncode, output, told


def test_output_is_printed_as_it_comes_and_the_end_of_the_job_is_the_end(worker: Cli) -> None:
    job_id = worker.enqueue(f"echo one; {UNTIL_GO}; echo two")

    following = Following(worker, job_id)
    first = following.line()
    (worker.folder / "go").touch()

    assert first == "one\n"
    assert following.end() == (0, "two\n", "")


def test_each_further_run_has_a_line_that_says_so_and_a_bad_end_is_told(worker: Cli) -> None:
    job_id = worker.enqueue(
        "--max-retries", "1", "--backoff-base", "0", "echo attempt $QUEUECTL_ATTEMPT; sleep 0.3; exit 3"
    )

    following = Following(worker, job_id)
    lines = following.line(), following.line()
    code, rest, told = following.end()

    assert (code, lines, rest) == (0, ("attempt 1\n", "attempt 2\n"), "")
    assert told.splitlines() == ["-- attempt 2 (run 2) --", f"-- job {job_id} is dead: exit code 3 --"]


def test_what_a_job_waits_for_is_said_once(local: Cli) -> None:
    job_id = local.enqueue("echo hello")

    following = Following(local, job_id)
    told = following.told()
    local.drain()

    assert told == f"-- job {job_id} is pending, waiting for a worker: none is running for queue default --\n"
    assert following.end() == (0, "hello\n", "")


def test_a_job_that_is_deleted_ends_it(local: Cli) -> None:
    job_id = local.enqueue("--delay", "1h", "true")

    following = Following(local, job_id)
    told = following.told()
    local.ok("delete", job_id)

    assert told == f"-- job {job_id} is scheduled, waiting for its time --\n"
    assert following.end() == (0, "", f"-- job {job_id} was deleted --\n")


def test_an_interrupt_ends_it_quietly(worker: Cli) -> None:
    job_id = worker.enqueue("echo one; sleep 60")

    following = Following(worker, job_id)
    first = following.line()
    following.process.send_signal(signal.SIGINT)

    assert first == "one\n"
    assert following.end() == (130, "", "")


def test_it_ends_when_nobody_reads_any_more(worker: Cli) -> None:
    job_id = worker.enqueue("echo ready; sleep 60")

    line = f"{QUOTED} logs -f {job_id} | grep -q ready"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=worker.environ, capture_output=True, timeout=100)

    assert (done.returncode, done.stderr) == (0, b"")
    assert worker.job(job_id)["state"] == "processing"


def test_one_attempt_is_followed_alone(worker: Cli) -> None:
    job_id = worker.enqueue("--backoff-base", "100", f"echo one; {UNTIL_GO}; echo two; exit 1")
    worker.wait_for_state(job_id, "processing")

    following = Following(worker, job_id, "--attempt", "1")
    first = following.line()
    (worker.folder / "go").touch()

    assert first == "one\n"
    assert following.end() == (0, "two\n", "")
    assert worker.job(job_id)["state"] == "failed"
    assert worker.run("logs", "-f", job_id, "--attempt", "2").returncode == 3


def test_following_begins_with_the_first_run_or_with_the_last_lines_of_the_newest(local: Cli) -> None:
    job_id = local.enqueue("--max-retries", "1", "--backoff-base", "0", "seq 3; echo run $QUEUECTL_RUN; exit 1")
    local.drain()

    assert local.ok("logs", "-f", job_id) == "1\n2\n3\nrun 1\n1\n2\n3\nrun 2\n"
    assert local.ok("logs", "-f", job_id, "-n", "2") == "3\nrun 2\n"


def test_what_is_followed_as_json_is_an_object_per_chunk(worker: Cli) -> None:
    job_id = worker.enqueue("--id", "j1", rf"printf 'caf\303'; {UNTIL_GO}; printf '\251 \377'")

    following = Following(worker, job_id, "--json")
    first = json.loads(following.line())
    (worker.folder / "go").touch()
    code, rest, _ = following.end()

    same = {"id": "j1", "run": 1, "attempt": 1, "stream": "output"}
    assert first == {**same, "text": "caf"}
    assert [json.loads(line) for line in rest.splitlines()] == [{**same, "text": "é \ufffd"}]
    assert code == 0


def test_what_a_run_left_unfinished_is_not_carried_into_the_next(local: Cli) -> None:
    job_id = local.enqueue(
        "--max-retries", "1", "--backoff-base", "0",
        r"[ $QUEUECTL_RUN = 1 ] && printf '\033[31m\303' || printf '\251'; exit 1",
    )  # fmt: skip
    local.drain()

    objects = local.json("logs", "-f", job_id)
    screen = on_terminal(local, "logs", "-f", job_id).screen

    assert [(each["run"], each["text"]) for each in objects] == [(1, "\x1b[31m"), (1, "\ufffd"), (2, "\ufffd")]
    assert screen.startswith("\x1b[31m\\xc3\x1b[0m\n-- attempt 2 (run 2) --\n\\xa9")


def test_a_split_job_prints_each_stream_to_its_own(cli: Cli) -> None:
    job_id = cli.enqueue("--split-output", "echo out; echo err >&2")
    cli.drain()

    for words in (("logs", job_id), ("logs", "-f", job_id)):
        done = cli.run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "err\n")
    assert cli.ok("logs", job_id, "--stdout") == "out\n"
    assert cli.ok("logs", job_id, "--stderr") == "err\n"
    assert cli.json("logs", job_id) == [{"id": job_id, "run": 1, "attempt": 1, "stdout": "out\n", "stderr": "err\n"}]
    assert cli.json("logs", job_id, "--stderr")[0]["stdout"] is None
    (run,) = runs_of(cli.job(job_id))
    assert (run["output_bytes"], run["stderr_bytes"], run["stderr_tail"]) == (4, 4, "err\n")


def test_show_has_a_column_for_stderr_where_a_run_kept_it_apart(local: Cli) -> None:
    local.enqueue("--split-output", "echo out; echo error >&2")
    local.enqueue("echo both")
    local.drain()

    header, row = local.ok("show", "1").splitlines()[-2:]
    assert re.split(r"  +", header)[-2:] == ["OUTPUT", "STDERR"]
    assert re.split(r"  +", row)[-2:] == ["4 B", "6 B"]
    assert "STDERR" not in local.ok("show", "2")


def test_one_stream_of_a_job_that_keeps_both_together_is_refused_with_a_hint(local: Cli) -> None:
    local.enqueue("echo hello")
    local.drain()

    for words in (("--stdout",), ("--stderr",), ("-f", "--stderr"), ("--stderr", "-n", "1")):
        done = local.run("logs", "1", *words)
        assert (done.returncode, done.stdout) == (6, "")
        assert "job 1 keeps stdout and stderr together" in done.stderr
        assert "--split-output" in done.stderr
    assert local.run("logs", "1", "--stdout", "--stderr").returncode == 2


@pytest.mark.parametrize("words", [("delete", "1"), ("dlq", "purge", "--yes")])
def test_both_files_of_a_split_job_go_with_it(cli: Cli, words: tuple[str, ...]) -> None:
    cli.enqueue("--split-output", "--max-retries", "0", "seq 20000; seq 20000 >&2; exit 1")
    cli.drain()
    folder = Path(cli.target.home.own_logs, "0")
    before = sorted(path.name for path in folder.iterdir())

    cli.ok(*words)

    assert before == ["1.1.err.log", "1.1.log"]
    assert list(folder.iterdir()) == []


def test_show_gives_the_size_so_far_of_a_run_under_way(worker: Cli) -> None:
    job_id = worker.enqueue("--split-output", f"seq 5000; echo error >&2; {UNTIL_GO}")

    def sizes() -> list[object]:
        return [(run["output_bytes"], run["stderr_bytes"]) for run in runs_of(worker.job(job_id))]

    wait_for(lambda: sizes() == [(23_893, 6)] or None, "the sizes so far")
    (worker.folder / "go").touch()


@pytest.mark.parametrize("flag", [(), ("-f",), ("-n", "1000")])
def test_every_byte_passes_unchanged_through_a_pipe(local: Cli, flag: tuple[str, ...]) -> None:
    data = bytes(range(256)) * 200
    (local.folder / "data").write_bytes(data)
    job_id = local.enqueue("cat data")
    local.drain()

    done = subprocess.run([PROGRAM, "logs", job_id, *flag], env=local.environ, capture_output=True, check=True)

    assert done.stdout == data


def test_on_a_terminal_colours_pass_and_all_else_that_steers_it_is_spelt_out(local: Cli) -> None:
    job_id = local.enqueue(f"printf '{EVIL}'")
    local.drain()

    for words in (("logs", job_id), ("logs", "-f", job_id)):
        screen = on_terminal(local, *words).screen
        assert screen == ("\\x1b]0;owned\\x07 \\x1b[2J\\x1b[H \x1b[31mred\x1b[0m \\x07\\xc2\\x9b2J café \\xff")


def test_a_colour_left_on_is_set_back_on_a_terminal(local: Cli) -> None:
    job_id = local.enqueue(r"printf '\033[1;31mred'")
    local.drain()

    assert on_terminal(local, "logs", job_id).screen == "\x1b[1;31mred\x1b[0m"


def test_both_streams_of_a_split_job_are_made_harmless_on_a_terminal(local: Cli) -> None:
    job_id = local.enqueue("--split-output", r"printf '\033]0;a\007'; printf '\033]0;b\007' >&2")
    local.drain()

    screen = on_terminal(local, "logs", job_id).screen

    assert "\x1b" not in screen
    assert {r"\x1b]0;a\x07", r"\x1b]0;b\x07"} == set(re.findall(r"\\x1b\]0;.\\x07", screen))


def test_raw_output_passes_unchanged_also_on_a_terminal(local: Cli) -> None:
    job_id = local.enqueue(r"printf '\033]0;owned\007\033[2J'")
    local.drain()

    assert on_terminal(local, "logs", job_id, "--raw").screen == "\x1b]0;owned\x07\x1b[2J"


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    """A terminal that obeys what it is sent."""
    words = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    yield words
    subprocess.run([*words, "kill-server"], capture_output=True)


@pytest.mark.needs("tmux")
@pytest.mark.parametrize("flag, is_obeyed", [("", False), ("--raw", True)])
def test_a_real_terminal_is_not_steered_by_what_a_job_printed(
    local: Cli, tmux: list[str], flag: str, is_obeyed: bool
) -> None:
    job_id = local.enqueue(r"echo before; printf '\033]2;owned\033\\\033[2J\033[Hafter\n'")
    local.drain()
    line = f"{QUOTED} logs {shlex.quote(job_id)} {flag}; echo end; sleep 60"

    subprocess.run([*tmux, "new-session", "-d", "-s", "t", line], check=True, env=local.environ)
    screen = wait_for(lambda: seen if "end" in (seen := look(tmux, "capture-pane", "-p")) else None, "the end")

    title = look(tmux, "display-message", "-p", "#{pane_title}").strip()
    assert (title == "owned", "before" not in screen) == (is_obeyed, is_obeyed)
    assert ("[2J" in screen) is not is_obeyed


def runs_of(job: dict[str, object]) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", job["runs"])


def look(tmux: list[str], *words: str) -> str:
    return subprocess.run([*tmux, words[0], "-t", "t", *words[1:]], capture_output=True, text=True).stdout


def test_output_whose_file_was_removed_on_this_host_is_said_to_be_gone(cli: Cli) -> None:
    cli.enqueue("--split-output", "seq 20000; seq 30000 >&2")
    cli.drain()
    for path in Path(cli.target.home.own_logs, "0").iterdir():
        path.unlink()

    done = cli.run("logs", "1")

    folder = f"{cli.target.home.folder}/" * bool(cli.target.home.folder)
    assert done.stdout.endswith("\n20000\n")
    assert f"the file with the whole stdout (108894 bytes) is gone: logs/{folder}0/1.1.log. Its end:\n" in done.stderr
    assert f"stderr (168894 bytes) is gone: logs/{folder}0/1.1.err.log. Its end:\n" in done.stderr
