"""PostgreSQL away, end to end: restarted, cut off, silent, an answer lost. No job is lost, none runs twice at once."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import pytest

from queuectl.actions.connect import Target, locate
from tests import postgres
from tests.program import Cli, running_cli
from tests.proxy import Proxy, proxied, through
from tests.scenarios.faults import (
    Witness,
    assert_ran_once,
    boot_clock,
    connections_terminated,
    last_words,
    pass_the_time,
)
from tests.scenarios.hosts import other_host
from tests.scenarios.working import on_postgres, runs_of, seconds, wait_for_workers

LEASE_S = 10  # short, and long enough for a busy machine to stop commands in time
SOON_S = 3.0  # well under the net poll of five seconds, with room for a busy machine


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    """The network between this test's program and its PostgreSQL."""
    with proxied(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def distant(proxy: Proxy, postgres_url: str, sqlite_home: Path, tmp_path: Path) -> Iterator[Cli]:
    """The program, which reaches its PostgreSQL through the proxy alone."""
    with running_cli(_target(sqlite_home, through(proxy, postgres_url)), tmp_path) as cli:
        yield cli


@pytest.fixture
def near(postgres_url: str, sqlite_home: Path, tmp_path: Path) -> Cli:
    """The program on the same home and store, past the proxy: for looking, and for what is not cut off."""
    return Cli(_target(sqlite_home, postgres_url), tmp_path)


@pytest.fixture
def own_server() -> Iterator[postgres.Server]:
    """A PostgreSQL of this test's own, to be stopped and started."""
    server = postgres.Server()
    try:
        server.url()
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_commands_outlive_a_restart_of_postgresql(
    own_server: postgres.Server, sqlite_home: Path, tmp_path: Path, mode: str
) -> None:
    with running_cli(_target(sqlite_home, own_server.url()), tmp_path) as cli:
        assert_outlived(cli, own_server.down(mode), tmp_path)


@on_postgres
def test_commands_outlive_the_end_of_all_connections(cli: Cli, tmp_path: Path) -> None:
    assert_outlived(cli, connections_terminated(cli.target.url), tmp_path)


def test_commands_outlive_a_cut_network(proxy: Proxy, distant: Cli, tmp_path: Path) -> None:
    assert_outlived(distant, proxy.cut(), tmp_path)


@pytest.mark.parametrize("silence", ["swallowing", "holding"])
def test_commands_outlive_a_silence_shorter_than_the_lease(
    proxy: Proxy, distant: Cli, tmp_path: Path, silence: str
) -> None:
    set_lease(distant, 30)
    assert_outlived(distant, proxy.swallowing() if silence == "swallowing" else proxy.holding(), tmp_path, lasts_s=6)


@pytest.mark.parametrize("silence", ["swallowing", "holding"])
@pytest.mark.parametrize("is_stubborn", [False, True], ids=["obeying", "stubborn"])
def test_a_worker_cut_off_for_longer_than_its_lease_stops_its_commands_before_another_runs_them(
    proxy: Proxy, distant: Cli, near: Cli, tmp_path: Path, silence: str, is_stubborn: bool
) -> None:
    set_lease(near, LEASE_S)
    witness = Witness(tmp_path, is_stubborn=is_stubborn)
    job_id = distant.enqueue(witness.line)
    cut_off = distant.start("worker", "start")
    witness.wait_for("start 1")

    with other_host(near) as elsewhere:
        rescuer = elsewhere.start("worker", "start")
        wait_for_workers(near, 2)
        with proxy.swallowing() if silence == "swallowing" else proxy.holding():
            began = boot_clock()
            witness.wait_for("start 2")
            witness.end(run=2)
            job = near.wait_for_state(job_id, "completed", "failed", "dead")
        wait_for_workers(near, 2)
        said = last_words(rescuer) + last_words(cut_off)

    assert (job["state"], job["attempts"], job["max_retries"]) == ("completed", 1, 3)
    assert witness.events == ["start 1", *([] if is_stubborn else ["stopped 1"]), "start 2", "end 2"]
    assert [run["outcome"] for run in runs_of(job)] == ["lost", "exited"]
    assert witness.time_of("start 2") - began > LEASE_S / 2
    assert "Traceback" not in said


def test_a_worker_cut_off_for_longer_than_its_lease_hands_its_jobs_back_uncharged(
    proxy: Proxy, distant: Cli, near: Cli, tmp_path: Path
) -> None:
    set_lease(near, LEASE_S)
    witness = Witness(tmp_path)
    job_id = distant.enqueue(witness.line)
    supervisor = distant.start("worker", "start")
    witness.wait_for("start 1")

    with proxy.swallowing():
        began = boot_clock()
        witness.wait_for("stopped 1")
        pass_the_time(time.monotonic() + LEASE_S + 1 - (boot_clock() - began))
        witness.let_end()
    job = near.wait_for_state(job_id, "completed", "failed", "dead")

    assert witness.time_of("stopped 1") - began < LEASE_S
    assert witness.events == ["start 1", "stopped 1", "start 2", "end 2"]
    assert (job["state"], job["attempts"], job["losses"]) == ("completed", 1, 0)
    assert [run["outcome"] for run in runs_of(job)] == ["handed_back", "exited"]
    assert "Traceback" not in last_words(supervisor)


def test_idle_workers_can_be_stopped_while_their_database_is_away(proxy: Proxy, distant: Cli, near: Cli) -> None:
    supervisor = distant.start("worker", "start")
    wait_for_workers(near, 1)

    with proxy.cut():
        pass_the_time(time.monotonic() + 2)
        said = last_words(supervisor)

    assert "Traceback" not in said


def test_a_second_signal_stops_workers_that_run_something_while_their_database_is_away(
    proxy: Proxy, distant: Cli, near: Cli, tmp_path: Path
) -> None:
    witness = Witness(tmp_path)
    job_id = distant.enqueue(witness.line)
    supervisor = distant.start("worker", "start")
    witness.wait_for("start 1")

    with proxy.cut():
        supervisor.send_signal(signal.SIGINT)  # the same signal twice at once would be one
        said = last_words(supervisor)
    after = near.start("worker", "start")
    witness.end(run=2)
    job = near.wait_for_state(job_id, "completed", "failed", "dead")
    last_words(after)

    assert "leaving 1 job to whoever rescues what dead workers held" in said
    assert witness.events == ["start 1", "stopped 1", "start 2", "end 2"]
    assert (job["state"], job["attempts"], job["losses"]) == ("completed", 1, 0)


def test_enqueue_does_not_wait_for_ever_for_a_server_that_never_answers(proxy: Proxy, distant: Cli, near: Cli) -> None:
    before = distant.enqueue("true")

    with proxy.swallowing():
        began = time.monotonic()
        refused = distant.run("enqueue", "true")
        took = time.monotonic() - began

    assert (refused.returncode, refused.stdout) == (5, "")
    assert "cannot use PostgreSQL at postgresql://postgres@127.0.0.1" in refused.stderr
    assert took < 30
    assert [job["id"] for job in near.json("list")] == [before]


def test_enqueue_does_not_wait_for_ever_for_an_answer(proxy: Proxy, distant: Cli, near: Cli) -> None:
    before = distant.enqueue("true")

    with proxy.swallowing(after=b"INSERT INTO jobs") as has_begun:
        began = time.monotonic()
        refused = distant.run("enqueue", "true")
        took = time.monotonic() - began

    assert has_begun(0)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "no answer for" in refused.stderr
    assert took < 45
    assert [job["id"] for job in near.json("list")] == [before]


@pytest.mark.parametrize("then", ["close", "silence", "blackout"])
def test_an_enqueue_whose_commit_was_not_confirmed_is_there_once_and_says_what_it_knows(
    proxy: Proxy, distant: Cli, near: Cli, then: Literal["close", "silence", "blackout"]
) -> None:
    distant.enqueue("true")

    with proxy.losing_answer_to_commit(b"INSERT INTO jobs", then=then) as is_lost:
        done = distant.run("enqueue", "echo once")

    assert is_lost(0)
    added = [job for job in near.json("list") if job["command"] == "echo once"]
    assert len(added) == 1
    if done.returncode == 0:
        assert done.stdout.strip() == added[0]["id"]
    else:
        assert (done.returncode, done.stdout) == (5, "")
        assert "may have been added" in done.stderr
        assert re.search(r"queuectl (show|list)", done.stderr)
    assert (done.returncode == 5) == (then == "blackout")  # where the store can be reached again, it was asked


@pytest.mark.parametrize("then", ["close", "silence"])
def test_a_settle_whose_commit_was_not_confirmed_runs_nothing_twice(
    proxy: Proxy, distant: Cli, near: Cli, tmp_path: Path, then: Literal["close", "silence"]
) -> None:
    set_lease(near, 30)
    witnesses = [Witness(tmp_path, name) for name in ("settled", "claimed")]
    ids = [distant.enqueue(witness.line) for witness in witnesses]
    supervisor = distant.start("worker", "start")
    witnesses[0].wait_for("start 1")

    with proxy.losing_answer_to_commit(b"INSERT INTO attempts", then=then) as is_lost:
        witnesses[0].end()
        assert is_lost(30)
    meanwhile = [near.job(job_id)["state"] for job_id in ids]
    witnesses[1].wait_for("start 1")
    witnesses[1].end()
    near.wait_for_state(ids[1], "completed", "failed", "pending")

    assert meanwhile == ["completed", "processing"]
    for job_id, witness in zip(ids, witnesses, strict=True):
        assert_ran_once(near.job(job_id), witness)
    near.wait_for_state(distant.enqueue("true"), "completed")
    assert "Traceback" not in last_words(supervisor)


def test_a_transaction_cut_off_in_the_middle_does_not_hold_its_job_for_ever(
    proxy: Proxy, distant: Cli, near: Cli, tmp_path: Path
) -> None:
    set_lease(near, LEASE_S)
    witness = Witness(tmp_path)
    job_id = distant.enqueue(witness.line)
    cut_off = distant.start("worker", "start")
    witness.wait_for("start 1")

    with other_host(near) as elsewhere:
        elsewhere.start("worker", "start")
        wait_for_workers(near, 2)
        with proxy.swallowing(after=b"INSERT INTO attempts") as has_begun:
            witness.end()
            assert has_begun(30)
            job = near.wait_for_state(job_id, "completed", "failed", "dead")
        wait_for_workers(near, 2)
        said = last_words(cut_off)

    assert (job["state"], job["attempts"]) == ("completed", 1)
    assert witness.events == ["start 1", "end 1", "start 2", "end 2"]
    assert "Traceback" not in said


def assert_outlived(cli: Cli, outage: AbstractContextManager[object], tmp_path: Path, *, lasts_s: float = 2.0) -> None:
    """Two commands run, one ends in the outage and one after; both are settled once, and the worker is as before."""
    during, after = Witness(tmp_path, "during"), Witness(tmp_path, "after")
    ids = [cli.enqueue(witness.line) for witness in (during, after)]
    supervisor = cli.start("worker", "start", "-j", "2")
    for witness in (during, after):
        witness.wait_for("start 1")

    with outage:
        began = time.monotonic()
        during.end()
        pass_the_time(began + lasts_s)
    assert_ran_once(cli.wait_for_state(ids[0], "completed", "failed", "pending"), during)
    after.end()
    assert_ran_once(cli.wait_for_state(ids[1], "completed", "failed", "pending"), after)

    cli.wait_for_state(cli.enqueue("true"), "completed")
    woken = [cli.wait_for_state(cli.enqueue("true"), "completed") for _ in range(3)]
    assert max(seconds(job["started_at"]) - seconds(job["created_at"]) for job in woken) < SOON_S
    assert "Traceback" not in last_words(supervisor)


def set_lease(cli: Cli, lease_s: int) -> None:
    """Let hosts give each other up sooner, so that tests need not wait for a minute."""
    cli.ok("config", "set", "worker_heartbeat_interval", "1")
    cli.ok("config", "set", "lock_lease_seconds", str(lease_s))


def _target(home: Path, url: str) -> Target:
    return locate(None, {"QUEUECTL_HOME": str(home), "QUEUECTL_DATABASE_URL": url})
