"""How long a failed job waits before it runs again. Pure; the dice come in as a number."""

from enum import StrEnum

from queuectl.model.value import Value


class BackoffStrategy(StrEnum):
    """How the delay grows from run to run."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class Backoff(Value):
    """The numbers a delay is made of; a job's own where it has them, else those of the settings."""

    strategy: BackoffStrategy
    base: float
    max_ms: int
    fixed_ms: int
    jitter: float


def delay_ms(failures: int, backoff: Backoff, dice: float) -> int:
    """Return the wait after `failures` failed runs; `dice` in [0, 1) places it within the jitter.

    A jitter of 0.2 spreads the delay over 80 % to 120 % of itself, and never beyond the maximum.
    """
    delay = min(_plain_ms(failures, backoff), float(backoff.max_ms))
    spread = delay * backoff.jitter * (2 * dice - 1)
    return round(max(0.0, min(delay + spread, float(backoff.max_ms))))


def _plain_ms(failures: int, backoff: Backoff) -> float:
    if backoff.strategy == BackoffStrategy.FIXED:
        return float(backoff.fixed_ms)
    if backoff.strategy == BackoffStrategy.LINEAR:
        return backoff.base * failures * 1000
    try:
        return backoff.base**failures * 1000
    except OverflowError:
        return float(backoff.max_ms)
