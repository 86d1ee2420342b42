"""The clocks of this host, read here alone: the wall clock (PostgreSQL has its own) and the one of leases."""

import time


def wall_ms() -> int:
    """Milliseconds since 1970 UTC: what SQLite stores, since the database's clock is this host's."""
    return time.time_ns() // 1_000_000


def boot_s() -> float:
    """Seconds since this host started, time asleep included: what leases are measured on, never the wall clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
