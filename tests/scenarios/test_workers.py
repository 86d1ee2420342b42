"""Workers end to end: who runs what, in which order, how many at once, and how soon."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from queuectl.system.limits import FILES_PER_RUN, OWN_FILES
from tests.program import DEADLINE_S, QUOTED, Cli, lines_of, wait_for
from tests.scenarios.hosts import start_under
from tests.scenarios.working import (
    enqueue_all,
    environment_of,
    is_running,
    marked,
    on_postgres,
    on_sqlite,
    runs_of,
    seconds,
    wait_for_line,
    wait_for_workers,
)

SOON_S = 3.0  # well under the net poll of five seconds, with room for a busy machine


def test_five_sleeps_of_two_seconds_take_three_workers_about_four(cli: Cli) -> None:
    ids = [cli.enqueue("sleep 2") for _ in range(5)]

    cli.drain("-n", "3")

    spans = [(seconds(job["started_at"]), seconds(job["finished_at"])) for job in map(cli.job, ids)]
    assert most_at_once(spans) <= 3
    assert max(end for _, end in spans) - min(start for start, _ in spans) < 8


def test_a_thousand_quick_jobs_each_run_exactly_once(cli: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    line = f"echo $QUEUECTL_JOB_ID start >>{ledger}; echo $QUEUECTL_JOB_ID end >>{ledger}\n"
    ids = cli.ok("enqueue", "--from", "-", stdin=line * 1000).split()

    cli.drain("-n", "4")

    expected = {f"{job_id} {what}" for job_id in ids for what in ("start", "end")}
    assert Counter(lines_of(ledger)) == dict.fromkeys(expected, 1)
    done = cli.json("list", "--limit", "1000")
    assert Counter((job["state"], job["run"], job["attempts"]) for job in done) == {("completed", 1, 1): 1000}


def test_one_worker_runs_as_many_at_once_as_it_was_told_and_never_more(cli: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    for _ in range(12):
        cli.enqueue(f"echo + >>{ledger}; sleep 0.5; echo - >>{ledger}")

    cli.drain("-j", "5")

    level, levels = 0, []
    for line in lines_of(ledger):
        level += 1 if line == "+" else -1
        levels.append(level)
    assert (max(levels), levels[-1], len(levels)) == (5, 0, 24)


@on_sqlite
def test_without_a_number_the_setting_says_how_many_run_at_once(cli: Cli) -> None:
    cli.ok("config", "set", "max_concurrent_jobs", "2")
    ids = [cli.enqueue("sleep 600") for _ in range(3)]
    cli.start("worker", "start")

    for job_id in ids[:2]:
        cli.wait_for_state(job_id, "processing")

    assert cli.job(ids[2])["state"] == "pending"


def test_one_worker_keeps_strict_order(cli: Cli, tmp_path: Path) -> None:
    order = tmp_path / "order"
    priorities = [0, 5, -3, 5, 0, 9]
    for number, priority in enumerate(priorities):
        cli.enqueue("--priority", str(priority), "--queue", f"q{number % 2}", f"echo {number} >>{order}")

    cli.drain()

    assert lines_of(order) == ["5", "1", "3", "0", "4", "2"]


def test_a_worker_serves_only_the_queues_it_was_given(cli: Cli) -> None:
    mine, also_mine, other = (cli.enqueue("--queue", queue, "true") for queue in ("a", "b", "c"))

    cli.drain("--queue", "a", "--queue", "b")

    assert [cli.job(job_id)["state"] for job_id in (mine, also_mine, other)] == ["completed", "completed", "pending"]


def test_a_paused_queue_is_not_served_and_resuming_wakes_an_idle_worker(cli: Cli) -> None:
    cli.ok("queue", "pause", "slow")
    cli.start("worker", "start")
    wait_for_workers(cli, 1)
    held = cli.enqueue("--queue", "slow", "true")
    cli.wait_for_state(cli.enqueue("true"), "completed")
    before = cli.job(held)["state"]

    cli.ok("queue", "resume", "slow")
    resumed_at = time.time()
    job = cli.wait_for_state(held, "completed")

    assert before == "pending"
    assert seconds(job["started_at"]) - resumed_at < SOON_S


def test_an_idle_worker_takes_a_new_job_at_once(cli: Cli) -> None:
    cli.start("worker", "start")
    wait_for_workers(cli, 1)
    cli.wait_for_state(cli.enqueue("true"), "completed")

    jobs = [cli.wait_for_state(cli.enqueue("true"), "completed") for _ in range(3)]

    assert max(seconds(job["started_at"]) - seconds(job["created_at"]) for job in jobs) < SOON_S


def test_a_worker_with_a_free_slot_takes_a_new_job_at_once(cli: Cli) -> None:
    cli.start("worker", "start", "-j", "2")
    cli.wait_for_state(cli.enqueue("sleep 600"), "processing")

    job = cli.wait_for_state(cli.enqueue("true"), "completed")

    assert seconds(job["started_at"]) - seconds(job["created_at"]) < SOON_S


def test_a_delayed_job_runs_on_time_in_an_idle_worker(cli: Cli) -> None:
    cli.start("worker", "start")
    wait_for_workers(cli, 1)

    job = cli.wait_for_state(cli.enqueue("--delay", "1.5s", "true"), "completed")

    waited = seconds(job["started_at"]) - seconds(job["created_at"])
    assert 1.5 <= waited < 1.5 + SOON_S


def test_a_retry_due_while_its_worker_is_busy_is_taken_by_an_idle_one(cli: Cli, tmp_path: Path) -> None:
    cli.start("worker", "start", "-n", "2", "--log-format", "json")
    wait_for_workers(cli, 2)
    fails_once = f"test $QUEUECTL_ATTEMPT = 2 && exit; touch {tmp_path}/ran; exit 1"
    retried = cli.enqueue("--max-retries", "1", "--backoff-base", "10", fails_once)
    first = cli.wait_for_state(retried, "failed")
    busy = cli.enqueue("sleep 600")
    cli.wait_for_state(busy, "processing")

    job = cli.wait_for_state(retried, "completed")

    assert cli.job(busy)["state"] == "processing"
    assert 0 <= seconds(job["started_at"]) - seconds(first["run_at"]) < SOON_S


def test_many_quick_commands_in_many_slots_run_once_each_and_no_worker_dies_of_them(cli: Cli) -> None:
    enqueue_all(cli, ["true"] * 400)

    done = cli.run("worker", "start", "-n", "2", "-j", "4", "--until-idle")

    runs = Counter((job["state"], job["attempts"]) for job in cli.json("list", "--limit", "1000"))
    assert (done.returncode, runs) == (0, {("completed", 1): 400})
    assert "died" not in done.stderr


def test_until_idle_waits_for_retries(cli: Cli) -> None:
    job_id = cli.enqueue("--max-retries", "1", "--backoff-base", "1", "test $QUEUECTL_ATTEMPT = 2")

    done = cli.run("worker", "start", "--until-idle")

    assert (done.returncode, cli.job(job_id)["state"]) == (0, "completed")


def test_until_idle_does_not_wait_for_what_it_cannot_run_now(cli: Cli) -> None:
    later = cli.enqueue("--delay", "1h", "true")
    cli.ok("queue", "pause", "slow")
    paused, failing = cli.enqueue("--queue", "slow", "true"), cli.enqueue("--max-retries", "0", "exit 1")
    elsewhere = cli.enqueue("--queue", "other", "true")

    done = cli.run("worker", "start", "--until-idle", "--queue", "default", "--queue", "slow")

    states = [cli.job(job_id)["state"] for job_id in (later, paused, failing, elsewhere)]
    assert (done.returncode, states) == (0, ["scheduled", "pending", "dead", "pending"])
    assert f"a job still waits that no worker here could take now; see: queuectl why {paused}\n" in done.stderr


@pytest.mark.parametrize("way", ["signal", "order"])
def test_until_idle_that_is_told_to_stop_before_all_is_done_says_so_and_fails(
    cli: Cli, tmp_path: Path, way: str
) -> None:
    going = cli.enqueue(f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    left = cli.enqueue("true")
    supervisor = cli.start("worker", "start", "--until-idle")
    cli.wait_for_state(going, "processing")

    if way == "signal":
        supervisor.send_signal(signal.SIGINT)
    else:
        cli.run("worker", "stop", "--timeout", "0.1s")
    wait_for(lambda: all(worker["stopping"] for worker in cli.json("worker", "list")), "the order")
    (tmp_path / "go").touch()
    said = supervisor.communicate(timeout=DEADLINE_S)[1]

    assert (supervisor.returncode, cli.job(left)["state"]) == (130, "pending")
    assert "told to stop before all was done; what is left: queuectl status" in said


def test_until_idle_that_is_told_to_stop_when_all_is_done_has_done_what_it_was_to(cli: Cli, tmp_path: Path) -> None:
    job_id = cli.enqueue(f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    cli.enqueue("--delay", "1h", "true")
    supervisor = cli.start("worker", "start", "--until-idle")
    cli.wait_for_state(job_id, "processing")

    supervisor.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()
    said = supervisor.communicate(timeout=DEADLINE_S)[1]

    assert (supervisor.returncode, cli.job(job_id)["state"]) == (0, "completed")
    assert "before all was done" not in said


def test_until_idle_waits_for_what_another_worker_runs(cli: Cli, tmp_path: Path) -> None:
    first, second = (cli.enqueue(f"while ! test -e {tmp_path}/go; do sleep 0.05; done") for _ in range(2))
    idle = [cli.start("worker", "start", "--until-idle") for _ in range(2)]
    for job_id in (first, second):
        cli.wait_for_state(job_id, "processing")

    (tmp_path / "go").touch()
    codes = [process.wait(DEADLINE_S) for process in idle]

    assert codes == [0, 0]
    assert cli.job(first)["worker"] is None


def test_settings_that_change_take_effect_in_running_workers(cli: Cli) -> None:
    cli.start("worker", "start")
    cli.wait_for_state(cli.enqueue("true"), "completed")

    cli.ok("config", "set", "job_timeout", "0.3s")
    cli.ok("config", "set", "backoff_strategy", "fixed")
    cli.ok("config", "set", "job_retry_delay", "100s")

    def times_out() -> dict[str, object] | None:
        job = cli.wait_for_state(cli.enqueue("sleep 2"), "failed", "completed")
        return job if job["state"] == "failed" else None

    job = wait_for(times_out, "the new timeout")
    assert job["error"] == "timed out after 0.3 s"
    assert seconds(job["run_at"]) - seconds(job["updated_at"]) == pytest.approx(100)


def test_a_killed_worker_is_replaced_and_its_job_run_again_uncharged(cli: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    job_id = cli.enqueue(
        f"echo run $QUEUECTL_RUN attempt $QUEUECTL_ATTEMPT >>{ledger}; test $QUEUECTL_RUN = 2 || sleep 600"
    )
    cli.start("worker", "start")
    wait_for_line(ledger, "run 1 attempt 1")
    before = cli.job(job_id)
    killed = wait_for_workers(cli, 1)[0]

    os.kill(int(str(killed["pid"])), signal.SIGKILL)
    after = cli.wait_for_state(job_id, "completed")

    assert lines_of(ledger) == ["run 1 attempt 1", "run 2 attempt 1"]
    assert (after["attempts"], after["losses"]) == (1, 1)
    assert [run["outcome"] for run in runs_of(after)] == ["lost", "exited"]
    assert marked(before) == []
    assert wait_for_workers(cli, 1)[0]["id"] != killed["id"]


@on_postgres
def test_a_killed_worker_is_replaced_where_the_folder_that_its_files_were_named_from_is_gone(
    cli: Cli, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    supervisor = start_under(cli, ["env", "-C", str(gone)], "worker", "start", env={"PGPASSFILE": "pgpass"})
    killed = wait_for_workers(cli, 1)[0]
    gone.rmdir()

    os.kill(int(str(killed["pid"])), signal.SIGKILL)
    (other,) = wait_for(lambda: [one for one in wait_for_workers(cli, 1) if one["id"] != killed["id"]], "another")

    assert environment_of(int(str(other["pid"])))["PGPASSFILE"] == f"{gone}/pgpass"
    assert supervisor.poll() is None


@on_sqlite
def test_lines_for_people_name_job_and_run(cli: Cli) -> None:
    cli.enqueue("--id", "mail7", "true")
    cli.enqueue("--id", "bad", "--max-retries", "0", "exit 9")

    said = cli.run("worker", "start", "--until-idle").stderr

    assert "job mail7 run 1: completed in " in said
    assert "job bad run 1: dead (exit code 9" in said


@on_sqlite
def test_lines_for_machines_name_job_and_run(cli: Cli) -> None:
    cli.enqueue("--id", "mail7", "sleep 0.3")

    said = cli.run("worker", "start", "--until-idle", "--log-format", "json").stderr

    lines = [json.loads(line) for line in said.splitlines()]
    assert [(line["event"], line["run"]) for line in lines if line.get("job") == "mail7"] == [
        ("running", 1),
        ("completed", 1),
    ]
    assert all({"time", "level", "source", "event", "message"} <= line.keys() for line in lines)


@on_sqlite
def test_children_are_waited_for_though_they_were_ignored_where_we_come_from(cli: Cli) -> None:
    job_id = cli.enqueue("exit 0")

    start_after(cli, 'trap "" CHLD')

    assert cli.job(job_id)["state"] == "completed"


def test_a_worker_does_not_keep_the_folder_it_was_started_in(cli: Cli) -> None:
    cli.start("worker", "start")

    (worker,) = wait_for_workers(cli, 1)

    assert os.readlink(f"/proc/{worker['pid']}/cwd") == "/" != str(cli.folder)


@on_postgres
def test_a_file_that_tells_the_way_to_the_store_is_found_by_workers_and_commands(cli: Cli) -> None:
    words = conninfo_to_dict(cli.target.url).items()
    (cli.folder / "pg.conf").write_text("[q]\n" + "".join(f"{name}={value}\n" for name, value in words))
    by_file = {"QUEUECTL_DATABASE_URL": "postgresql://", "PGSERVICEFILE": "pg.conf", "PGSERVICE": "q"}
    cli.ok("enqueue", "--cwd", "/", f"{QUOTED} list >/dev/null", env=by_file)

    cli.ok("worker", "start", "--until-idle", env=by_file)

    assert [job["state"] for job in cli.json("list")] == ["completed"]


@on_sqlite
def test_a_worker_that_may_open_few_files_runs_fewer_commands_at_once(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="sleep 0.3\n" * 40)

    done = start_after(cli, "ulimit -n 100", "-j", "40")

    jobs = cli.json("list")
    fitting = (100 - OWN_FILES) // FILES_PER_RUN
    assert f"only {fitting} of 40 commands at once" in done.stderr
    assert Counter((job["state"], job["losses"]) for job in jobs) == {("completed", 0): 40}


@on_sqlite
def test_a_worker_raises_its_limit_of_open_files_where_it_must(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="sleep 1; ulimit -n\n" * 40)

    done = start_after(cli, "ulimit -Sn 100", "-j", "40")

    jobs = cli.json("list")
    assert done.returncode == 0
    assert Counter((job["state"], job["losses"]) for job in jobs) == {("completed", 0): 40}
    assert cli.ok("logs") == f"{OWN_FILES + 40 * FILES_PER_RUN}\n"


def test_a_worker_whose_supervisor_was_killed_finishes_its_job_and_leaves(cli: Cli, tmp_path: Path) -> None:
    job_id = cli.enqueue(f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    waiting = cli.enqueue("true")
    supervisor = cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")
    worker = int(str(wait_for_workers(cli, 1)[0]["pid"]))

    supervisor.kill()
    supervisor.wait()
    (tmp_path / "go").touch()
    wait_for(lambda: not is_running(worker) or None, "the worker to leave")

    job = cli.job(job_id)
    assert (job["state"], job["attempts"], job["losses"]) == ("completed", 1, 0)
    assert cli.job(waiting)["state"] == "pending"
    assert {row["kind"]: row["state"] for row in cli.json("worker", "list", "--all")} == {
        "worker": "ended",
        "supervisor": "lost",
    }


def start_after(cli: Cli, line: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run workers until idle from a shell that has run a line before."""
    script = f'{line}; exec {QUOTED} worker start --until-idle "$@"'
    argv = ["/bin/bash", "-c", script, "bash", *words]
    return subprocess.run(argv, env=cli.environ, capture_output=True, text=True, timeout=60)


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """Return how many spans overlap at most."""
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
