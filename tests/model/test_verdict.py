"""What follows from a run: every outcome, with and without retries left, cancelled or not, after 0 to 2 losses."""

import pytest

from queuectl.model.retry import Backoff, BackoffStrategy
from queuectl.model.states import MOVES, Move, State
from queuectl.model.verdict import Outcome, OutcomeKind, Verdict, judge
from tests.model.jobs import a_job

BACKOFF = Backoff(strategy=BackoffStrategy.EXPONENTIAL, base=2.0, max_ms=300_000, fixed_ms=2_000, jitter=0.0)

SUCCESS = Outcome.exited(0)
FAILURES = [
    Outcome.exited(3),
    Outcome.killed(9, "SIGKILL"),
    Outcome.out_of_memory(9, limit="512MiB"),
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
            Outcome.out_of_memory(9, limit="512MiB"),
            OutcomeKind.OUT_OF_MEMORY,
            "out of memory: killed by the kernel at its limit of 512MiB",
        ),
        (
            Outcome.out_of_memory(9),
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
