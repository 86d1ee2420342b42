"""The two clocks of this host. The wall clock is read here alone; PostgreSQL has its own (store/postgres.py)."""

import time


def wall_ms() -> int:
    """Milliseconds since 1970 UTC: what SQLite stores, since the database's clock is this host's."""
    return time.time_ns() // 1_000_000


def boot_s() -> float:
    """Seconds since boot, suspended time included: for leases and observation, never for dates."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
