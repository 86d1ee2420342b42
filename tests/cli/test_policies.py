"""Policies and deadlines as people meet them: each flag with its effect, in `show`, in `run` and in `wait`."""

import re

import pytest

from tests.program import Cli


def test_each_flag_of_a_policy_decides_what_becomes_of_a_run(local: Cli) -> None:
    local.enqueue("--id", "good", "--success-codes", "0,3", "exit 3")
    local.enqueue("--id", "zero", "--success-codes", "3", "--max-retries", "0", "true")
    local.enqueue("--id", "never", "--no-retry-on", "2,126-127", "exit 2")
    local.enqueue("--id", "only", "--retry-on", "75,timeout", "exit 3")
    local.enqueue("--id", "slow", "--retry-on", "75", "--timeout", "0.1s", "sleep 60")
    local.enqueue("--id", "killed", "--no-retry-on", "SIGSEGV", "kill -SEGV $$")
    local.enqueue("--id", "later", "--snooze-code", "99:1h", "exit 99")
    local.enqueue("--id", "hopeless", "--deadline", "1h", "--snooze-code", "99:2h", "exit 99")

    local.drain("-j", "9")

    assert {str(job["id"]): (job["state"], job["attempts"], job["error"]) for job in local.json("list")} == {
        "good": ("completed", 1, None),
        "zero": ("dead", 1, "exit code 0 (success codes: 3)"),
        "never": ("dead", 1, "exit code 2; not retried (no_retry_on)"),
        "only": ("dead", 1, "exit code 3; not retried (retry_on 75, timeout)"),
        "slow": ("dead", 1, "timed out after 0.1 s; not retried (retry_on 75)"),
        "killed": ("dead", 1, "killed by SIGSEGV; not retried (no_retry_on)"),
        "later": ("scheduled", 0, "asked to run again later (exit code 99)"),
        "hopeless": (
            "dead",
            0,
            "asked to run again later (exit code 99); its deadline leaves no time for another run",
        ),
    }
    assert local.run("wait", "good").returncode == 0


def test_a_snoozed_job_runs_again_until_it_does_not_ask_for_more(local: Cli) -> None:
    done = local.run(
        "run", "--snooze-code", "99:100ms", 'echo "run $QUEUECTL_RUN"; test "$QUEUECTL_RUN" = 3 || exit 99'
    )

    job = local.job("1")
    assert (done.returncode, done.stdout) == (0, "run 1\nrun 2\nrun 3\n")
    assert (job["state"], job["attempts"], job["run"], job["error"]) == ("completed", 1, 3, None)


def test_the_log_of_a_worker_says_that_a_job_was_snoozed(local: Cli) -> None:
    local.enqueue("--snooze-code", "99:5m", "exit 99")

    done = local.run("worker", "start", "--until-idle")

    assert re.search(r"job 1 run 1: snoozed \(exit code 99, took \S+\); again in 5m\n", done.stderr)


@pytest.mark.parametrize(
    "words, code",
    [
        (["--success-codes", "0,3", "exit 3"], 3),
        (["--success-codes", "3", "true"], 1),
        (["--deadline", "0.3s", "sleep 60"], 124),
        (["--deadline", "0.3s", "--queue", "paused", "true"], 124),
    ],
)
def test_run_passes_on_the_code_of_the_command(local: Cli, words: list[str], code: int) -> None:
    local.ok("queue", "pause", "paused")

    assert local.run("run", *words).returncode == code


def test_show_lists_the_policy(local: Cli) -> None:
    local.enqueue(
        "--deadline", "1h30m", "--retry-on", "64-66,timeout", "--no-retry-on", "SIGSEGV,oom",
        "--success-codes", "0,3-5", "--snooze-code", "99:5m", "--snooze-code", "98:1h", "true",
    )  # fmt: skip

    text = local.ok("show", "1")

    assert {len(lead) for lead in re.findall(r"(?m)^.+?: +", text)} == {14}
    shown = dict(re.findall(r"(?m)^(.+?): +(.+)$", text))
    assert re.fullmatch(r"1h30m in all, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*", shown["Deadline"])
    assert shown["Retry on"] == "64-66, timeout"
    assert shown["No retry on"] == "SIGSEGV, out_of_memory"
    assert shown["Success on"] == "0, 3-5"
    assert shown["Snooze on"] == "99 for 5m, 98 for 1h"


def test_a_plain_job_shows_no_policy(local: Cli) -> None:
    local.enqueue("true")

    assert not re.search(r"(?i)deadline|retry on|success on|snooze on", local.ok("show", "1"))
