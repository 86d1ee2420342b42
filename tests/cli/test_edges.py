"""What a careless or unlucky user meets: closed streams, full disks, almost-JSON, names that are empty or new."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.program import PROGRAM, QUOTED, Cli, wait_for


def shell(cli: Cli, line: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell line with the program as `queuectl`."""
    path = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
    env = {**cli.environ, "PATH": path}
    return subprocess.run(["/bin/sh", "-c", line], env=env, cwd=cli.folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail(local: Cli, closed: str) -> None:
    done = shell(local, f"queuectl enqueue true {closed}")

    assert done.returncode == 0
    assert len(local.json("list")) == 1


def test_an_id_that_could_not_be_printed_is_told_on_the_other_stream(local: Cli) -> None:
    done = shell(local, "queuectl enqueue true >/dev/full")

    assert done.returncode == 1
    assert "added 1, but:" in done.stderr


def test_a_list_that_was_cut_says_so_also_to_programs(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\n" * 3)

    said = "only 2 jobs shown, the newest; see more with --limit 20, or older ones with: --before 2\n"
    for form in ("-q", "--json"):
        assert local.run("list", "--limit", "2", form).stderr == said


@pytest.mark.parametrize(
    "line", ["{", "}", '[{"command": "x"}]', '["echo", "a"]', "{command: x}", "{'command': 'x'}", "  ["]
)
def test_what_was_meant_as_json_is_not_run_as_a_shell_line(local: Cli, line: str) -> None:
    for done in (local.run("enqueue", line), local.run("enqueue", "--from", "-", stdin=f"true\n{line}\n")):
        assert done.returncode == 2
        assert "looks like JSON" in done.stderr

    assert local.json("list") == []


def test_shell_lines_with_brackets_and_braces_stay_legal(local: Cli) -> None:
    for line in ("{ echo x; }", "[ -f /etc/passwd ] && echo x", "[[ a = a ]]"):
        local.enqueue(line)

    assert len(local.json("list")) == 3


def test_comments_and_the_mark_of_windows_editors_are_not_jobs(local: Cli, tmp_path: Path) -> None:
    batch = tmp_path / "batch"
    batch.write_bytes(b'\xef\xbb\xbf{"command": "echo one"}\r\n# a comment\r\n\r\necho two\r\n')

    local.ok("enqueue", "--from", str(batch))

    assert [job["command"] for job in local.json("list")] == ["echo two", "echo one"]


@pytest.mark.parametrize(
    "words, said",
    [
        (("list", "--queue", ""), "bad queue"),
        (("list", "--db", ""), "--db is empty"),
        (("enqueue", "-"), "--from -"),
        (("enqueue", "--from", "a", "--from", "b"), "given twice"),
        (("enqueue", "echo x", "y z"), "not the name of a program"),
        (("logs", "--run", "1", "--attempt", "1"), "either --attempt or --run"),
    ],
)
def test_what_cannot_be_meant_is_refused(local: Cli, words: tuple[str, ...], said: str) -> None:
    local.enqueue("true")

    done = local.run(*words)

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_bad_variable_is_named(local: Cli) -> None:
    done = local.run("enqueue", "true", env={"QUEUECTL_MAX_RETRIES": "abc"})

    assert done.returncode == 2
    assert "QUEUECTL_MAX_RETRIES" in done.stderr


def test_none_of_several_jobs_is_changed_when_one_refuses(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\ntrue\n")
    local.ok("cancel", "1")

    done = local.run("cancel", "2", "1")

    assert done.returncode == 6
    assert "none of the 2 jobs was changed" in done.stderr
    assert local.job("2")["state"] == "pending"


def test_the_output_of_an_earlier_life_can_be_read_by_its_run(local: Cli) -> None:
    local.enqueue("echo run $QUEUECTL_RUN")
    local.drain()
    local.ok("retry", "1")
    local.drain()

    assert local.ok("logs", "1", "--run", "1") == "run 1\n"
    assert local.ok("logs", "1") == "run 2\n"
    assert local.run("logs", "1", "--run", "3").returncode == 3


def test_the_latest_death_comes_first(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", "--max-retries", "0", stdin="exit 1\nexit 2\n")
    local.drain("-j", "1")
    local.ok("dlq", "retry", "1")
    local.drain()

    assert [job["id"] for job in local.json("dlq", "list")] == ["1", "2"]


def test_a_job_may_stop_the_workers_without_waiting_for_itself(cli: Cli) -> None:
    job_id = cli.enqueue("--", PROGRAM, "worker", "stop")
    worker = cli.start("worker", "start")

    assert worker.wait(timeout=60) == 0

    assert cli.job(job_id)["state"] == "completed"


def test_a_job_may_use_another_home(local: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other"
    local.enqueue("--env", f"OTHER={other}", f"QUEUECTL_HOME=$OTHER {QUOTED} enqueue --id there true")

    local.drain()

    assert (other / "queue.db").exists()
    assert [job["id"] for job in local.json("list")] == ["1"]


def test_a_worker_that_is_stopping_is_shown_so(local: Cli) -> None:
    job_id = local.enqueue("sleep 600")
    local.start("worker", "start")
    local.wait_for_state(job_id, "processing")

    local.run("worker", "stop", "--timeout", "0.1s")

    assert "(stopping)" in local.ok("worker", "list")


def test_modules_in_the_current_folder_are_not_run_by_workers(local: Cli) -> None:
    for name in ("secrets", "resource", "json"):
        (local.folder / f"{name}.py").write_text("raise SystemExit(9)")
    job_id = local.enqueue("true")

    local.ok("worker", "start", "-d", "--until-idle")

    local.wait_for_state(job_id, "completed")


def test_a_command_gets_its_three_streams_and_nothing_else(local: Cli) -> None:
    job_id = local.enqueue("ls /proc/self/fd | wc -l")

    done = shell(local, "queuectl worker start --until-idle 7>other 9</dev/null")

    assert done.returncode == 0, done.stderr
    assert local.ok("logs", job_id).strip() == "4"  # the fourth is the folder that ls reads


def test_a_reader_of_the_log_that_stands_still_does_not_stop_the_work(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin=":\n" * 1500)
    read_end, write_end = os.pipe()
    worker = subprocess.Popen(
        [PROGRAM, "worker", "start", "--until-idle"], env=local.environ, stderr=write_end, stdout=subprocess.DEVNULL
    )
    os.close(write_end)

    assert worker.wait(timeout=100) == 0

    os.close(read_end)
    jobs = local.json("status")[0]["jobs"]
    assert isinstance(jobs, dict)
    assert jobs["completed"] == 1500


def test_a_lock_file_that_was_removed_does_not_make_a_living_worker_dead(local: Cli) -> None:
    job_id = local.enqueue("sleep 600")
    local.start("worker", "start")
    local.wait_for_state(job_id, "processing")
    for lock in Path(local.target.home.run).glob("*.lock"):
        lock.unlink()

    local.start("worker", "start")
    wait_for(lambda: len(local.json("worker", "list")) == 2 or None, "the second worker")
    local.ok("enqueue", "--id", "after", "true")
    local.wait_for_state("after", "completed")

    job = local.job(job_id)
    assert (job["state"], job["losses"], job["run"]) == ("processing", 0, 1)


def test_a_removed_wake_file_is_made_anew(local: Cli) -> None:
    local.start("worker", "start")
    wait_for(lambda: len(local.json("worker", "list")) == 1 or None, "the worker")
    wake = Path(local.target.home.wake)

    wake.unlink()

    wait_for(lambda: wake.exists() or None, "the wake file")
    local.wait_for_state(local.enqueue("true"), "completed")
