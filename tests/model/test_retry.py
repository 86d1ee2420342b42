"""The wait between two runs: 2, 4, 8 s by default, never more than the maximum, never an overflow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.model.retry import Backoff, BackoffStrategy, delay_ms

DEFAULT = Backoff(strategy=BackoffStrategy.EXPONENTIAL, base=2.0, max_ms=300_000, fixed_ms=2_000, jitter=0.0)
DICE = st.floats(0, 1, exclude_max=True)


def seconds(backoff: Backoff, *failures: int) -> list[float]:
    """Return the waits after these numbers of failed runs, in seconds."""
    return [delay_ms(count, backoff, dice=0.3) / 1000 for count in failures]


def test_the_default_waits_are_powers_of_two_up_to_five_minutes() -> None:
    assert seconds(DEFAULT, 1, 2, 3, 8, 9) == [2, 4, 8, 256, 300]


def test_base_ten_waits_300_s_from_run_3_on_and_never_overflows() -> None:
    assert seconds(DEFAULT.replace(base=10.0), 1, 2, 3, 4, 308, 309, 500, 1_000_000) == [10, 100, *[300] * 6]


@pytest.mark.parametrize(
    "base, waits", [(0.0, [0, 0, 0]), (1.0, [1, 1, 1]), (0.5, [0.5, 0.25, 0.125]), (1.5, [1.5, 2.25, 3.375])]
)
def test_a_base_need_not_be_a_whole_number(base: float, waits: list[float]) -> None:
    assert seconds(DEFAULT.replace(base=base), 1, 2, 3) == waits


def test_linear_waits_grow_by_the_base() -> None:
    linear = DEFAULT.replace(strategy=BackoffStrategy.LINEAR, base=3.0)

    assert seconds(linear, 1, 2, 3, 100, 101) == [3, 6, 9, 300, 300]


def test_fixed_waits_are_all_the_same_and_within_the_maximum() -> None:
    fixed = DEFAULT.replace(strategy=BackoffStrategy.FIXED, fixed_ms=7_500)

    assert seconds(fixed, 1, 2, 500) == [7.5, 7.5, 7.5]
    assert seconds(fixed.replace(max_ms=1_000), 1) == [1]


def test_a_strategy_may_be_plain_text_as_a_job_stores_it() -> None:
    assert seconds(DEFAULT.replace(strategy="linear"), 3) == [6]


def test_a_maximum_of_nothing_means_no_wait() -> None:
    assert seconds(DEFAULT.replace(max_ms=0), 1, 500) == [0, 0]


@settings(deadline=None)
@given(st.integers(1, 600), st.floats(0, 1), DICE)
def test_jitter_spreads_the_wait_around_itself_and_never_beyond_the_maximum(
    failures: int, jitter: float, dice: float
) -> None:
    plain = delay_ms(failures, DEFAULT, dice)

    spread = delay_ms(failures, DEFAULT.replace(jitter=jitter), dice)

    assert round(plain * (1 - jitter)) - 1 <= spread <= min(round(plain * (1 + jitter)) + 1, DEFAULT.max_ms)


@settings(deadline=None)
@given(
    st.sampled_from(BackoffStrategy),
    st.integers(1, 1_000_000),
    st.floats(0, 1_000_000),
    st.integers(0, 10**12),
    st.floats(0, 1),
    DICE,
)
def test_every_wait_is_a_whole_number_between_nothing_and_the_maximum(
    strategy: BackoffStrategy, failures: int, base: float, max_ms: int, jitter: float, dice: float
) -> None:
    backoff = Backoff(strategy=strategy, base=base, max_ms=max_ms, fixed_ms=2_000, jitter=jitter)

    wait = delay_ms(failures, backoff, dice)

    assert isinstance(wait, int)
    assert 0 <= wait <= max_ms


@settings(deadline=None)
@given(DICE)
def test_without_jitter_the_dice_do_not_matter(dice: float) -> None:
    assert delay_ms(2, DEFAULT, dice) == 4_000
