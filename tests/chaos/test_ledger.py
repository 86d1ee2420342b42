"""The ledger with real shells: what runs write down, and that a second copy is seen whatever is left of the first."""

import os
import random
import secrets
import subprocess
from pathlib import Path

import pytest

from queuectl.actions.connect import connect
from tests.chaos import snapshot
from tests.chaos.checker import Evidence, Record, check
from tests.chaos.commands import WEIGHTS, job_of
from tests.chaos.ledger import Ledger
from tests.program import Cli, lines_of, wait_for

OWN = secrets.token_hex(8)
"""What the workers of these tests are called by: marks are seen on the whole host, by other tests and by a doctor."""
SETTINGS = {"kill_grace_seconds": "1", "backoff_strategy": "fixed", "job_retry_delay": "0.1"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "a ledger")


def shell(ledger: Ledger, words: str, run: int) -> "subprocess.Popen[bytes]":
    """Start a command as a worker would."""
    marks = {"QUEUECTL_JOB_ID": "7", "QUEUECTL_RUN": str(run), "QUEUECTL_CLAIM": f"{OWN}w{run}:7:{run}"}
    argv = ["/bin/sh", "-c", f"{ledger.words}; {words}"]
    return subprocess.Popen(argv, env={**os.environ, **marks})


def story(ledger: Ledger) -> list[str]:
    return [f"{line.run} {line.worker.removeprefix(OWN)} {line.what} {line.code}" for line in ledger.lines()]


def test_a_run_writes_down_its_start_and_its_end(ledger: Ledger) -> None:
    code = shell(ledger, "begin; finish 3", 1).wait()

    assert (code, story(ledger), ledger.held()) == (3, ["1 w1 start None", "1 w1 end 3"], [])


def test_a_child_that_its_run_left_behind_is_seen_by_the_next(ledger: Ledger, tmp_path: Path) -> None:
    child = f"env -i setsid sh -c 'echo >{tmp_path}/born; exec sleep 600'"
    first = shell(ledger, f"begin; ( {child} & echo $! >{tmp_path}/child ); kill -STOP $$", 1)
    wait_for(lambda: lines_of(tmp_path / "born"), "the child")
    first.kill()
    first.wait()

    held = ledger.held()
    shell(ledger, "begin; finish 0", 2).wait()
    os.kill(int((tmp_path / "child").read_text()), 9)

    assert held == ["7"]
    assert story(ledger) == ["1 w1 start None", "2 w2 overlap None", "2 w2 start None", "2 w2 end 0"]
    wait_for(lambda: not ledger.held(), "the lock to be free")


def test_a_command_kills_nobody_but_a_worker(ledger: Ledger) -> None:
    code = shell(ledger, "begin; kill_worker && finish 1; finish 0", 1).wait()

    assert (code, story(ledger)) == (0, ["1 w1 start None", "1 w1 end 0"])


def test_without_faults_every_kind_of_command_leaves_a_good_story(cli: Cli, ledger: Ledger) -> None:
    for name, value in SETTINGS.items():
        cli.ok("config", "set", name, value)
    jobs = [job_of(kind, ledger, random.Random(number)) for kind in WEIGHTS for number in range(2)]
    ids = cli.ok("enqueue", "--from", "-", stdin="\n".join(jobs)).split()

    cli.drain("-n", "2", "-j", "6")

    evidence = evidence_of(cli, ledger, ids)
    assert check(evidence) == []
    assert {line.job for line in evidence.lines} == set(ids)
    assert {line.what for line in evidence.lines} == {"start", "end", "child", "kills"}
    assert ledger.held() == []


def evidence_of(cli: Cli, ledger: Ledger, ids: list[str]) -> Evidence:
    database = connect(cli.target)
    jobs, runs = snapshot.rows(database)
    database.close()
    return Evidence(lines=ledger.lines(), jobs=jobs, runs=runs, record=Record(acknowledged=ids, hand_backs=[]))
