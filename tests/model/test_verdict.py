"""What follows from a run: every outcome, with and without retries left, cancelled or not, after 0 to 2 losses."""

import json

import pytest

from queuectl.model.job import Job
from queuectl.model.policy import check_ends
from queuectl.model.retry import Backoff, BackoffStrategy
from queuectl.model.states import MOVES, Move, State
from queuectl.model.verdict import Outcome, OutcomeKind, Verdict, judge
from tests.model.jobs import a_job

BACKOFF = Backoff(strategy=BackoffStrategy.EXPONENTIAL, base=2.0, max_ms=300_000, fixed_ms=2_000, jitter=0.0)

SUCCESS = Outcome.exited(0)
FAILURES = [
    Outcome.exited(3),
    Outcome.killed(9, "SIGKILL"),
    Outcome.out_of_memory(signal=9, limit="512MiB"),
    Outcome.timed_out(5_000, signal=15),
    Outcome.not_started(127, "no such program: frob"),
]
CANCELLED = Outcome.cancelled(signal=15)
HANDED_BACK = Outcome.handed_back()
LOST = Outcome.lost()
ALL = [SUCCESS, *FAILURES, CANCELLED, HANDED_BACK, LOST]

STOPPED = Verdict(move=Move.STOP, state=State.CANCELLED, error="cancelled while running")
DONE = Verdict(move=Move.COMPLETE, state=State.COMPLETED, charged=1)


def expected(outcome: Outcome, is_last: bool, is_cancelled: bool, losses: int) -> Verdict:
    """The rules as a table; `is_last` means that no retries are left."""
    failed = outcome in FAILURES
    table = [
        (outcome == SUCCESS, DONE),
        (outcome == CANCELLED, STOPPED),
        (failed and is_last, Verdict(move=Move.BURY, state=State.DEAD, error=outcome.error, charged=1)),
        (failed and is_cancelled, STOPPED.replace(charged=1)),
        (
            failed,
            Verdict(move=Move.FAIL, state=State.FAILED, delay_ms=4_000, error=outcome.error, charged=1),
        ),
        (outcome == HANDED_BACK and is_cancelled, STOPPED),
        (outcome == HANDED_BACK, Verdict(move=Move.HAND_BACK, state=State.PENDING)),
        (is_cancelled, STOPPED.replace(losses=1)),
        (losses == 0, Verdict(move=Move.LOST, state=State.PENDING, error="worker was lost", losses=1)),
        (
            losses == 1,
            Verdict(move=Move.LOST, state=State.FAILED, delay_ms=4_000, error="worker was lost", losses=1),
        ),
        (
            losses == 2,
            Verdict(move=Move.LOST, state=State.DEAD, error="its worker died 3 times while running it", losses=1),
        ),
    ]
    return next(verdict for applies, verdict in table if applies)


@pytest.mark.parametrize("losses", [0, 1, 2])
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["", "cancel-requested"])
@pytest.mark.parametrize("is_last", [False, True], ids=["retries-left", "no-retries-left"])
@pytest.mark.parametrize("outcome", ALL, ids=lambda outcome: f"{outcome.kind}-{outcome.exit_code}")
def test_the_verdict_follows_from_outcome_retries_cancel_and_losses(
    outcome: Outcome, is_last: bool, is_cancelled: bool, losses: int
) -> None:
    job = a_job(attempts=1, max_retries=1 if is_last else 3, cancel_requested=int(is_cancelled), losses=losses)

    verdict = judge(job, outcome, BACKOFF, dice=0.5)

    assert verdict == expected(outcome, is_last, is_cancelled, losses)


@pytest.mark.parametrize("outcome", ALL, ids=lambda outcome: f"{outcome.kind}-{outcome.exit_code}")
def test_every_verdict_is_a_move_out_of_processing(outcome: Outcome) -> None:
    for losses in range(4):
        for attempts in range(4):
            verdict = judge(a_job(losses=losses, attempts=attempts, max_retries=2), outcome, BACKOFF, dice=0.5)

            sources, targets = MOVES[verdict.move]
            assert sources == {State.PROCESSING}
            assert verdict.state in targets


def test_three_retries_mean_four_runs_after_2_4_and_8_seconds() -> None:
    verdicts = [judge(a_job(attempts=count), Outcome.exited(1), BACKOFF, dice=0.5) for count in range(4)]

    assert [verdict.delay_ms for verdict in verdicts] == [2_000, 4_000, 8_000, None]
    assert [verdict.state for verdict in verdicts] == [State.FAILED] * 3 + [State.DEAD]


def test_no_retries_mean_one_run() -> None:
    verdict = judge(a_job(max_retries=0), Outcome.exited(1), BACKOFF, dice=0.5)

    assert (verdict.move, verdict.state) == (Move.BURY, State.DEAD)


def test_the_backoff_of_a_job_is_laid_over_that_of_the_settings() -> None:
    job = a_job(backoff='{"strategy": "fixed", "fixed_ms": 700}')

    own = job.own_backoff(BACKOFF)

    assert own == BACKOFF.replace(strategy="fixed", fixed_ms=700)
    assert judge(job, Outcome.exited(1), own, dice=0.5).delay_ms == 700
    assert a_job().own_backoff(BACKOFF) == BACKOFF


@pytest.mark.parametrize(
    "outcome, kind, error",
    [
        (Outcome.exited(0), OutcomeKind.EXITED, None),
        (Outcome.exited(3), OutcomeKind.EXITED, "exit code 3"),
        (Outcome.killed(9, "SIGKILL"), OutcomeKind.KILLED, "killed by SIGKILL"),
        (Outcome.killed(24, "SIGXCPU", why="too slow"), OutcomeKind.KILLED, "killed by SIGXCPU: too slow"),
        (Outcome.exited(1, note="and more"), OutcomeKind.EXITED, "exit code 1; and more"),
        (Outcome.exited(0, note="and more"), OutcomeKind.EXITED, None),
        (
            Outcome.out_of_memory(signal=9, limit="512MiB"),
            OutcomeKind.OUT_OF_MEMORY,
            "out of memory: killed by the kernel at its limit of 512MiB",
        ),
        (
            Outcome.out_of_memory(signal=9),
            OutcomeKind.OUT_OF_MEMORY,
            "out of memory: killed while the kernel killed for lack of memory on this host",
        ),
        (Outcome.timed_out(1_500), OutcomeKind.TIMED_OUT, "timed out after 1.5 s"),
        (Outcome.cancelled(), OutcomeKind.CANCELLED, "cancelled while running"),
        (Outcome.not_started(126, "not executable"), OutcomeKind.NOT_STARTED, "not executable"),
        (Outcome.handed_back(), OutcomeKind.HANDED_BACK, "worker was told to stop; handed back"),
        (Outcome.lost(), OutcomeKind.LOST, "worker was lost"),
    ],
)
def test_an_outcome_says_in_words_what_happened(outcome: Outcome, kind: OutcomeKind, error: str | None) -> None:
    assert (outcome.kind, outcome.error) == (kind, error)


def test_only_exit_code_0_is_a_success() -> None:
    assert [outcome for outcome in ALL if outcome.is_success] == [SUCCESS]
    assert not Outcome.timed_out(1_000, exit_code=0).is_success


def a_job_with(**policy: object) -> Job:
    """Return a running job with a policy of its own."""
    return a_job(policy=json.dumps(policy))


def judged(job: Job, outcome: Outcome, left_ms: int | None = None) -> tuple[Move, int, str | None]:
    """Return the move that follows, whether the run is charged, and what is said of it."""
    verdict = judge(job, outcome, BACKOFF, dice=0.5, left_ms=left_ms)
    return verdict.move, verdict.charged, verdict.error


KILLED = Outcome.killed(11, "SIGSEGV")
TIMED_OUT = Outcome.timed_out(5_000, signal=9)
NOT_STARTED = Outcome.not_started(127, "no such program: frob")
OUT_OF_MEMORY = Outcome.out_of_memory(signal=9, limit="1M")


@pytest.mark.parametrize(
    "codes, code, expected",
    [
        ([0, 3], 0, (Move.COMPLETE, 1, None)),
        ([0, 3], 3, (Move.COMPLETE, 1, None)),
        ([0, 3], 4, (Move.FAIL, 1, "exit code 4")),
        ([3, 5], 0, (Move.FAIL, 1, "exit code 0 (success codes: 3, 5)")),
        ([3, 5], 5, (Move.COMPLETE, 1, None)),
    ],
)
def test_success_is_what_the_success_codes_say(codes: list[int], code: int, expected: object) -> None:
    assert judged(a_job_with(success_codes=codes), Outcome.exited(code)) == expected


@pytest.mark.parametrize("outcome", [TIMED_OUT.replace(exit_code=3), NOT_STARTED.replace(exit_code=3)])
def test_a_success_code_of_a_command_that_did_not_end_by_itself_means_nothing(outcome: Outcome) -> None:
    assert judged(a_job_with(success_codes=[0, 3]), outcome) == (Move.FAIL, 1, outcome.error)


def test_a_snooze_code_means_later_and_costs_no_attempt() -> None:
    job = a_job_with(snooze_codes={"99": 300_000}).replace(attempts=3, max_retries=3)

    verdict = judge(job, Outcome.exited(99), BACKOFF, dice=0.5)

    assert verdict == Verdict(
        move=Move.SNOOZE,
        state=State.SCHEDULED,
        delay_ms=300_000,
        error="asked to run again later (exit code 99)",
    )
    assert judged(job, Outcome.exited(98)) == (Move.BURY, 1, "exit code 98")
    assert judged(job, Outcome.timed_out(1, exit_code=99)) == (Move.BURY, 1, "timed out after 0.001 s")


def test_a_snoozed_job_that_was_cancelled_meanwhile_is_cancelled() -> None:
    job = a_job_with(snooze_codes={"99": 300_000}).replace(cancel_requested=1)

    assert judge(job, Outcome.exited(99), BACKOFF, dice=0.5) == STOPPED


@pytest.mark.parametrize(
    "outcome, ends",
    [
        (Outcome.exited(75), ("75",)),
        (KILLED, ("signal", "SIGSEGV")),
        (TIMED_OUT, ("timeout",)),
        (NOT_STARTED, ("not_started", "127")),
        (OUT_OF_MEMORY, ("out_of_memory", "signal", "SIGKILL")),
        (Outcome.out_of_memory(exit_code=137), ("out_of_memory", "137")),
    ],
)
def test_a_policy_calls_an_end_by_these_names_and_no_others(outcome: Outcome, ends: tuple[str, ...]) -> None:
    names = ["75", "127", "137", "9", "signal", "SIGSEGV", "SIGKILL", "timeout", "not_started", "out_of_memory"]

    retried = [name for name in names if judged(a_job_with(retry_on=[name]), outcome)[0] is Move.FAIL]
    buried = [name for name in names if judged(a_job_with(no_retry_on=[name]), outcome)[0] is Move.BURY]

    assert sorted(retried) == sorted(buried) == sorted(ends)


def test_every_kind_of_end_that_is_judged_has_a_name_people_can_write() -> None:
    for outcome in [*FAILURES, KILLED, TIMED_OUT, NOT_STARTED, OUT_OF_MEMORY]:
        assert check_ends("retry_on", list(outcome.ends)) == list(outcome.ends)


def test_what_is_not_retried_says_why() -> None:
    only = a_job_with(retry_on=["64", "65", "66", "75", "timeout"])
    never = a_job_with(no_retry_on=["2"])

    assert judged(never, Outcome.exited(2)) == (Move.BURY, 1, "exit code 2; not retried (no_retry_on)")
    assert judged(only, KILLED) == (Move.BURY, 1, "killed by SIGSEGV; not retried (retry_on 64-66, 75, timeout)")


def test_the_last_run_says_nothing_of_a_policy_that_changed_nothing() -> None:
    job = a_job_with(no_retry_on=["2"]).replace(max_retries=0)

    assert judged(job, Outcome.exited(2)) == (Move.BURY, 1, "exit code 2")


@pytest.mark.parametrize("outcome", [LOST, HANDED_BACK, CANCELLED], ids=lambda outcome: outcome.kind)
def test_what_the_command_did_not_do_is_not_judged_by_its_policy(outcome: Outcome) -> None:
    strict = a_job_with(retry_on=["75"], no_retry_on=["signal", "timeout"], snooze_codes={"99": 1}, success_codes=[3])

    assert judge(strict, outcome, BACKOFF, dice=0.5, left_ms=-1) == judge(a_job(), outcome, BACKOFF, dice=0.5)


NO_TIME = "its deadline leaves no time for another run"


@pytest.mark.parametrize(
    "left_ms, expected",
    [
        (None, (Move.FAIL, 1, "exit code 1")),
        (2_001, (Move.FAIL, 1, "exit code 1")),
        (2_000, (Move.BURY, 1, f"exit code 1; {NO_TIME}")),
        (-5, (Move.BURY, 1, f"exit code 1; {NO_TIME}")),
    ],
)
def test_a_retry_that_would_begin_after_the_deadline_is_none(left_ms: int | None, expected: object) -> None:
    assert judged(a_job(), Outcome.exited(1), left_ms) == expected


def test_a_snooze_beyond_the_deadline_buries_the_job_and_costs_no_attempt() -> None:
    job = a_job_with(snooze_codes={"99": 5_000})

    assert judged(job, Outcome.exited(99), 5_001)[0] is Move.SNOOZE
    assert judged(job, Outcome.exited(99), 5_000) == (
        Move.BURY,
        0,
        f"asked to run again later (exit code 99); {NO_TIME}",
    )


def test_a_run_that_the_deadline_stopped_is_the_last() -> None:
    stopped = Outcome.past_deadline(3_600_000, signal=15)

    assert (stopped.kind, stopped.is_success) == (OutcomeKind.TIMED_OUT, False)
    for job in (a_job(), a_job_with(retry_on=["timeout"]), a_job(cancel_requested=1)):
        # The database's clock may have been set back meanwhile: it is the last all the same.
        assert judged(job, stopped, 60_000) == (Move.BURY, 1, "its deadline of 1h passed while it ran")


def test_a_success_counts_also_after_the_deadline() -> None:
    assert judged(a_job(), SUCCESS, -5) == (Move.COMPLETE, 1, None)
