"""Commands end to end: what they find, what is kept of them, and how they end, as `show` and `logs` tell it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from queuectl.system.home import Home, log_path
from tests.program import PROGRAM, QUOTED, Cli, wait_for
from tests.runtime.running import STEP_BY_STEP, WAYS, start_by
from tests.scenarios.working import (
    last_run,
    marked,
    on_sqlite,
    outcome_of,
    seconds,
    tree_of,
    wait_for_workers,
    workers_of,
)

KIB = 1 << 10


@on_sqlite
def test_both_streams_are_logged_in_order(cli: Cli) -> None:
    job_id = cli.enqueue("echo one; echo two >/dev/stderr; echo three")

    cli.drain()

    assert cli.ok("logs", job_id) == "one\ntwo\nthree\n"
    assert not os.listdir(cli.target.home.own_logs)


def test_each_way_to_end_is_on_record(cli: Cli) -> None:
    def add(*words: str) -> str:
        return cli.enqueue("--max-retries", "0", *words)

    ends = {
        add("exit 3"): ("exited", 3, None),
        add("kill -9 $$"): ("killed", None, 9),
        add("--timeout", "0.2", "exec sleep 600"): ("timed_out", None, 15),
        add("--cwd", "/no/such/folder", "true"): ("not_started", 126, None),
        add("--", "no-such-program"): ("not_started", 127, None),
        add("--", "/etc/passwd"): ("not_started", 126, None),
    }

    cli.drain("-j", "3")

    assert {job_id: outcome_of(cli, job_id) for job_id in ends} == ends
    assert {cli.job(job_id)["state"] for job_id in ends} == {"dead"}


def test_a_command_finds_what_its_flags_ask_for(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("from the file\n")
    memory = r"grep -q /queuectl\. /proc/self/cgroup && echo 524288 || ulimit -v"
    job_id = cli.enqueue(
        *("--memory", "512M", "--cpu-seconds", "90", "--nofile", "77", "--file-size", "3M", "--nice", "7"),
        *("--umask", "027", "--shell", "/bin/bash", "--stdin", str(tmp_path / "in")),
        f"{memory}; ulimit -t -n -f | grep -o '[0-9]*$'; nice; umask; echo ${{BASH_VERSION:+bash}}; cat",
    )

    cli.drain()

    assert cli.ok("logs", job_id).split("\n") == [
        *("524288", "90", "77", "3072", "7", "0027", "bash", "from the file", ""),
    ]


@on_sqlite
def test_a_missing_shell_is_a_run_that_did_not_start(cli: Cli) -> None:
    cli.ok("config", "set", "shell", "/no/such/shell")
    job_id = cli.enqueue("--max-retries", "0", "true")

    cli.drain()

    assert outcome_of(cli, job_id) == ("not_started", 127, None)
    assert "/no/such/shell" in str(cli.job(job_id)["error"])


@on_sqlite
def test_a_timeout_is_a_failed_run_that_is_retried(cli: Cli) -> None:
    job_id = cli.enqueue("--max-retries", "1", "--backoff-base", "0", "--timeout", "0.3", "sleep 600")

    cli.drain()

    job = cli.job(job_id)
    assert (job["state"], job["attempts"], job["error"]) == ("dead", 2, "timed out after 0.3 s")


@on_sqlite
def test_a_command_finds_out_who_it_is_and_where_it_belongs(cli: Cli, tmp_path: Path) -> None:
    job_id = cli.enqueue(
        "--id", "who", "--queue", "mail", "--env", "COLOUR=deep blue", "--cwd", str(tmp_path),
        "--max-retries", "1", "--backoff-base", "0", "env; pwd; exit $((QUEUECTL_ATTEMPT == 1))",
    )  # fmt: skip

    cli.drain()

    said = cli.ok("logs", job_id).splitlines()
    env = dict(line.split("=", 1) for line in said[:-1] if "=" in line)
    assert (env["QUEUECTL_JOB_ID"], env["QUEUECTL_ATTEMPT"], env["QUEUECTL_QUEUE"]) == ("who", "2", "mail")
    assert (env["QUEUECTL_HOME"], env["COLOUR"]) == (cli.target.home.root, "deep blue")
    assert env["PWD"] == said[-1] == str(tmp_path)
    assert "QUEUECTL_WORKER" not in env


@on_sqlite
@pytest.mark.parametrize("way", WAYS)
def test_a_command_finds_each_variable_once_and_its_own_before_its_workers(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    start_by(way, monkeypatch)
    show = ("--", "/bin/cat", "/proc/self/environ")
    coloured = cli.enqueue("--cwd", str(tmp_path), "--env", "COLOUR=red", "--env", "PWD=/of/its/own", *show)
    plain = cli.enqueue("--cwd", str(tmp_path), *show)
    (tmp_path / "sitecustomize.py").write_text(
        f"from queuectl.system import launch\nif {way == STEP_BY_STEP}: launch._launch = None\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    cli.ok("worker", "start", "--until-idle", env={"COLOUR": "blue", "PWD": "/of/the/worker", "PYTHONPATH": path})

    for job_id, colour in ((coloured, "red"), (plain, "blue")):
        pairs = [entry.partition("=")[::2] for entry in cli.ok("logs", job_id).strip("\0\n").split("\0")]
        found = dict(pairs)
        assert (found["COLOUR"], found["PWD"]) == (colour, str(tmp_path))
        assert len(found) == len(pairs)


@on_sqlite
def test_text_reaches_a_command_whatever_the_language_of_its_worker(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "für 3 €"
    folder.mkdir()
    (folder / "größe").write_text("read\n")
    (folder / "tür").symlink_to("/bin/sh")
    line = 'printf "%s|" ü "$PREIS" "${PWD##*/}"; cat'
    options = ("--env", "PREIS=3 €", "--cwd", str(folder))
    ways = ((), ("--split-output",), ("--nofile", "99", "--stdin", str(folder / "größe")))
    ids = [cli.enqueue(*way, *options, line) for way in ways]
    named = [cli.enqueue(*options, "--", program, "-c", line) for program in ("./tür", "tür")]

    cli.ok(
        "worker", "start", "--until-idle", env={"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C",
        "PATH": f"{os.environ['PATH']}:."},
    )  # fmt: skip

    said = [cli.ok("logs", job_id) for job_id in (*ids, *named)]
    assert said == [f"ü|3 €|für 3 €|{read}" for read in ("", "", "read\n", "", "")]


def test_queuectl_inside_a_command_reaches_the_same_queue(cli: Cli) -> None:
    job_id = cli.enqueue(f"{QUOTED} show $QUEUECTL_JOB_ID && {QUOTED} enqueue --id child 'echo I am the child'")

    cli.drain()

    assert "processing" in cli.ok("logs", job_id)
    assert cli.ok("logs", "child") == "I am the child\n"


@on_sqlite
def test_a_long_shell_line_runs_and_leaves_nothing_behind(cli: Cli) -> None:
    line = f"x='{'y' * (200 * KIB)}'; echo ${{#x}}"
    job_id = cli.ok("enqueue", "--from", "-", stdin=line + "\n").strip()

    cli.drain()

    assert cli.ok("logs", job_id) == "204800\n"
    assert not [name for name in os.listdir(cli.target.home.run) if name.endswith(".sh")]


@on_sqlite
def test_what_a_command_used_is_on_record(cli: Cli) -> None:
    job_id = cli.enqueue("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")

    cli.drain()

    run = last_run(cli, job_id)
    assert int(str(run["cpu_ms"])) >= 10
    assert int(str(run["peak_memory_bytes"])) > 100_000


@on_sqlite
def test_output_can_be_read_while_the_command_runs(cli: Cli) -> None:
    job_id = cli.enqueue("echo begun; sleep 600")
    cli.start("worker", "start")

    seen = wait_for(lambda: cli.ok("logs", job_id), "live output")

    assert seen == "begun\n"
    assert cli.job(job_id)["state"] == "processing"


def test_binary_output_survives_byte_for_byte(cli: Cli, tmp_path: Path) -> None:
    data = bytes(range(256)) * 500
    (tmp_path / "data").write_bytes(data)
    short, long = (cli.enqueue(f"head -c {size} data") for size in (1000, len(data)))

    cli.drain()

    assert (binary_log(cli, short), binary_log(cli, long)) == (data[:1000], data)


@on_sqlite
def test_a_log_of_an_earlier_queue_is_not_touched(cli: Cli) -> None:
    earlier = Path(log_path(Home(root=cli.target.home.root), 1, 1))
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of an earlier queue")
    job_id = cli.enqueue("seq 20000")

    cli.drain()

    assert earlier.read_text() == "of an earlier queue"
    assert cli.ok("logs", job_id) == "".join(f"{number}\n" for number in range(1, 20001))


@on_sqlite
@pytest.mark.parametrize("limit", ["64KiB", "10MiB"])
def test_endless_output_leaves_a_log_within_the_limit_and_the_workers_memory_flat(cli: Cli, limit: str) -> None:
    max_bytes = {"64KiB": 64 << 10, "10MiB": 10 << 20}[limit]
    cli.ok("config", "set", "max_output_bytes", limit)
    cli.start("worker", "start")
    worker = int(str(wait_for_workers(cli, 1)[0]["pid"]))
    cli.wait_for_state(cli.enqueue("seq 100000"), "completed")
    before = resident_bytes(worker)

    job_id = cli.enqueue("--max-retries", "0", "--timeout", "3", "echo the head; yes; echo never")
    during = [before]

    def is_over() -> bool:
        during.append(resident_bytes(worker))
        return cli.job(job_id)["state"] == "dead"

    wait_for(is_over, "the timeout")

    log = binary_log(cli, job_id)
    run = last_run(cli, job_id)
    head, notice, tail = log.partition(b"\n[queuectl: ")
    missing = int(tail.split(b" ")[0])
    assert head.startswith(b"the head\ny\ny\n")
    assert notice
    assert log.endswith(b"y\ny\n")
    assert len(log) <= max_bytes
    assert missing > int(str(run["output_bytes"])) - max_bytes
    assert max(during) - before < 6 << 20


@on_sqlite
def test_a_command_that_ends_leaves_its_background_child_alone(cli: Cli, tmp_path: Path) -> None:
    job_id = cli.enqueue(f"sleep 600 & echo $! >{tmp_path}/pid; echo done")

    cli.drain()
    left = int((tmp_path / "pid").read_text())
    os.kill(left, 0)
    os.kill(left, signal.SIGKILL)

    job = cli.job(job_id)
    assert (job["state"], cli.ok("logs", job_id)) == ("completed", "done\n")
    assert seconds(job["finished_at"]) - seconds(job["started_at"]) < 5


def test_a_running_job_is_cancelled_with_all_it_started(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600 & setsid sleep 600 & sleep 600")
    cli.ok("config", "set", "kill_grace_seconds", "1")
    cli.start("worker", "start")
    wait_for(lambda: len(tree_of(cli, job_id)) == 4 or None, "the tree")
    job = cli.job(job_id)

    cli.ok("cancel", job_id)
    after = cli.wait_for_state(job_id, "cancelled")

    assert outcome_of(cli, job_id)[0] == "cancelled"
    assert (after["attempts"], after["error"]) == (0, "cancelled while running")
    assert seconds(after["finished_at"]) - seconds(job["started_at"]) < 15
    assert marked(job) == []


def test_a_waiting_job_is_cancelled_at_once(cli: Cli) -> None:
    ids = [cli.enqueue("true"), cli.enqueue("--delay", "1h", "true")]

    cli.ok("cancel", *ids)

    assert [cli.job(job_id)["state"] for job_id in ids] == ["cancelled", "cancelled"]
    cli.drain()
    assert [cli.job(job_id)["runs"] for job_id in ids] == [[], []]


@on_sqlite
def test_cancelling_one_job_leaves_the_others_of_its_worker_running(cli: Cli) -> None:
    first, second = cli.enqueue("sleep 600"), cli.enqueue("sleep 600")
    cli.start("worker", "start", "-j", "2")
    for job_id in (first, second):
        cli.wait_for_state(job_id, "processing")

    cli.ok("cancel", first)
    cli.wait_for_state(first, "cancelled")

    assert cli.job(second)["state"] == "processing"
    assert workers_of(cli)[0]["jobs"] == [second]


def binary_log(cli: Cli, job_id: str) -> bytes:
    """Return what `logs` prints, byte for byte."""
    return subprocess.run([PROGRAM, "logs", job_id], env=cli.environ, capture_output=True, check=True).stdout


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) << 10
