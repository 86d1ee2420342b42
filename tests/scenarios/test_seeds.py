"""Every command line shown in the five earlier designs of this tool: each is understood and does what they say.

`queuectl` stands where a design has `python queuectl.py`; `worker start` stays in the foreground here.
"""

import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from queuectl.actions.connect import connect, locate, settings_of
from queuectl.model.units import counted
from queuectl.model.verdict import Outcome, judge
from queuectl.store import jobs
from tests.program import Cli, running_cli, wait_for
from tests.scenarios.working import wait_for_workers

# (the design, the line as it is shown there)
LINES = [
    ("000", "queuectl worker start"),
    ("000", "queuectl worker start --count 2"),
    ("000", "queuectl worker stop"),
    ("000", "queuectl config get max_retries"),
    ("000", "queuectl config set max_retries 5"),
    ("001", "queuectl enqueue --id job1 --command 'echo hello'"),
    ("001", "queuectl worker start"),
    ("001", "queuectl worker stop"),
    ("001", "queuectl status"),
    ("001", "queuectl list"),
    ("001", "queuectl dlq list"),
    ("001", "queuectl dlq retry fail1"),
    ("001", "queuectl config get max_retries"),
    ("001", "queuectl config get backoff_base"),
    ("001", "queuectl config set max_retries 3"),
    ("001", "queuectl config set backoff_base 2"),
    ("002", """queuectl enqueue '{"id":"job1","command":"echo hello"}'"""),
    ("002", "queuectl config set backoff-base 1.5"),
    ("002", "queuectl config set backoff-base 3"),
    ("002", "queuectl worker start --count 3"),
    ("002", "queuectl worker stop"),
    ("002", """queuectl enqueue '{"id":"hello1","command":"echo Hello World"}'"""),
    ("002", "queuectl worker start"),
    ("002", "queuectl status"),
    ("002", """queuectl enqueue '{"id":"fail1","command":"exit 1","max_retries":3}'"""),
    ("002", "queuectl dlq list"),
    ("002", """queuectl enqueue '{"id":"job1","command":"sleep 2 && echo 1"}'"""),
    ("002", """queuectl enqueue '{"id":"job2","command":"sleep 2 && echo 2"}'"""),
    ("002", """queuectl enqueue '{"id":"job3","command":"sleep 2 && echo 3"}'"""),
    ("002", """queuectl enqueue '{"id":"job4","command":"sleep 2 && echo 4"}'"""),
    ("002", """queuectl enqueue '{"id":"job5","command":"sleep 2 && echo 5"}'"""),
    ("002", "queuectl list --state completed"),
    ("002", "queuectl dlq retry fail1"),
    ("003", """queuectl enqueue '{"id":"job1","command":"echo hello"}'"""),
    ("004", "queuectl worker"),
    ("004", "queuectl status"),
    *[("all", f"queuectl list --state {state}") for state in ("pending", "processing", "completed", "failed", "dead")],
]

# Every setting a design names, with the values it gives it (or one of its kind) and what is then in force.
SETTINGS = [
    ("000", "max_retries", "5", "5"),
    ("000", "backoff_base", "2", "2"),
    ("000", "max_backoff_seconds", "300", "300"),
    ("000", "lock_lease_seconds", "300", "300"),
    ("001", "max_retries", "3", "3"),
    ("002", "backoff-base", "1.5", "1.5"),
    ("002", "backoff-base", "3", "3"),
    ("004", "max_concurrent_jobs", "4", "4"),
    ("004", "job_retry_delay", "10", "10"),
    ("004", "worker_heartbeat_interval", "5", "5"),
    ("004", "job_timeout", "30", "30"),
    ("004", "backoff_strategy", "exponential", "exponential"),
    ("004", "backoff_base", "2", "2"),
    ("004", "default_max_tries", "3", "3"),
]


@pytest.fixture
def local(sqlite_home: Path, tmp_path: Path) -> Iterator[Cli]:
    """The program on SQLite alone."""
    with running_cli(locate(None, {"QUEUECTL_HOME": str(sqlite_home)}), tmp_path) as cli:
        yield cli


@pytest.mark.parametrize("seed, line", LINES)
def test_a_line_is_understood(local: Cli, seed: str, line: str) -> None:
    words = shlex.split(line)[1:]
    if words[-1] == "fail1":
        local.enqueue('{"id":"fail1","command":"exit 1","max_retries":0}')
        local.drain()

    if words[:2] == ["worker", "start"]:
        _start_and_stop(local, words)
    else:
        assert local.run(*words).returncode == 0


@pytest.mark.parametrize("seed, key, value, shown", SETTINGS)
def test_a_setting_is_known_by_its_name(local: Cli, seed: str, key: str, value: str, shown: str) -> None:
    local.ok("config", "get", key)

    local.ok("config", "set", key, value)

    assert local.ok("config", "get", key) == f"{shown}\n"


def test_a_successful_job_is_completed_and_counted(cli: Cli) -> None:
    """Design 002, example 1."""
    assert cli.ok("enqueue", '{"id":"hello1","command":"echo Hello World"}') == "hello1\n"
    job = cli.job("hello1")
    assert (job["state"], job["attempts"], job["max_retries"]) == ("pending", 0, 3)

    process = cli.start("worker", "start")
    cli.wait_for_state("hello1", "completed")

    [status] = cli.json("status")
    counts, workers = status["jobs"], status["workers"]
    assert isinstance(counts, dict)
    assert isinstance(workers, list)
    assert counts | {"completed": 1} == dict.fromkeys(counts, 0) | {"completed": 1}
    assert len(workers) == 1
    assert cli.ok("logs", "hello1") == "Hello World\n"
    cli.ok("worker", "stop")
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_failing_job_runs_at_0_2_6_and_14_seconds_and_can_be_retried_from_the_dlq(cli: Cli) -> None:
    """Design 002, examples 2 and 4: three retries are four runs."""
    cli.ok("enqueue", '{"id":"fail1","command":"exit 1","max_retries":3}')
    cli.start("worker", "start")

    job = cli.wait_for_state("fail1", "dead")

    starts = _starts(job)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert len(gaps) == 3
    assert all(delay <= gap < delay + 1.5 for gap, delay in zip(gaps, (2, 4, 8), strict=True)), gaps
    for words in (("dlq", "list"), ("show", "fail1")):
        assert re.search(r"(?m)^\s*Attempts: +4/3$", cli.ok(*words)), words
    assert re.search(r"(?m)^fail1\n  Command: +exit 1$", cli.ok("dlq", "list"))

    cli.ok("worker", "stop")
    cli.ok("dlq", "retry", "fail1")
    job = cli.job("fail1")
    assert (job["state"], job["attempts"], job["error"], job["max_retries"]) == ("pending", 0, None, 3)


def test_five_jobs_of_two_seconds_take_four_with_three_workers(cli: Cli) -> None:
    """Design 002, example 3."""
    for number in range(1, 6):
        cli.ok("enqueue", f'{{"id":"job{number}","command":"sleep 2 && echo {number}"}}')
    cli.start("worker", "start", "--count", "3")

    done = [cli.wait_for_state(f"job{number}", "completed") for number in range(1, 6)]

    begun = min(_time(job["started_at"]) for job in done)
    ended = max(_time(job["finished_at"]) for job in done)
    assert 4 <= ended - begun < 6.5
    assert sorted(cli.ok("list", "--state", "completed", "-q").split()) == [f"job{number}" for number in range(1, 6)]


def test_a_base_of_ten_waits_300_seconds_from_the_third_run_on(cli: Cli) -> None:
    cli.ok("config", "set", "backoff_base", "10")
    job_id = cli.enqueue("--max-retries", "500", "exit 1")
    cli.start("worker", "start")

    waits = []
    for attempt in range(1, 5):
        job = wait_for(lambda n=attempt: _failed_after(cli, job_id, n), f"attempt {attempt}")  # type: ignore[misc]
        runs = job["runs"]
        assert isinstance(runs, list)
        waits.append(_time(job["run_at"]) - _time(runs[-1]["finished_at"]))
        cli.ok("retry", job_id)

    assert waits == [10, 100, 300, 300]


def test_a_base_of_ten_waits_300_seconds_after_run_500_as_well(cli: Cli) -> None:
    cli.ok("config", "set", "backoff_base", "10")
    job_id = cli.enqueue("--max-retries", "500", "exit 1")
    database = connect(cli.target)
    job = database.read(lambda tx: jobs.find(tx, job_id))
    settings = database.read(lambda tx: settings_of(tx, {}))
    database.close()
    assert job is not None

    delays = {
        run: judge(job.replace(attempts=run - 1), Outcome.exited(1), settings.backoff, 0.5).delay_ms
        for run in (1, 2, 3, 499, 500)
    }

    assert delays == {1: 10_000, 2: 100_000, 3: 300_000, 499: 300_000, 500: 300_000}


def _start_and_stop(cli: Cli, words: list[str]) -> None:
    count = int(words[words.index("--count") + 1]) if "--count" in words else 1
    process = cli.start(*words)
    wait_for_workers(cli, count)

    assert cli.ok("worker", "stop") == f"{counted(count, 'worker')} stopped\n"

    process.communicate(timeout=60)
    assert process.returncode == 0


def _failed_after(cli: Cli, job_id: str, attempts: int) -> dict[str, object] | None:
    job = cli.job(job_id)
    return job if (job["state"], job["attempts"]) == ("failed", attempts) else None


def _starts(job: dict[str, object]) -> list[float]:
    runs = job["runs"]
    assert isinstance(runs, list)
    return [_time(run["started_at"]) for run in runs]


def _time(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()
