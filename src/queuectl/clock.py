"""The wall clock of this host, read here alone; PostgreSQL has its own (store/postgres.py)."""

import time


def wall_ms() -> int:
    """Milliseconds since 1970 UTC: what SQLite stores, since the database's clock is this host's."""
    return time.time_ns() // 1_000_000
