"""Checkpoint: when the log of a SQLite store is moved into its file. Commands leave that to the supervisor."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.sqlite import SqliteDialect

CHECKPOINT_BYTES = 4 << 20
RESTART_LOG_BYTES = 32 << 20
TIGHT_LOGS = 4
"""So many logs must find room on the disk, or it is tight."""


def keep_log_small(dialect: "SqliteDialect", path: str) -> None:
    """Move the log into its file where it has grown, or the disk has no room for it to grow."""
    try:
        size = os.path.getsize(f"{path}-wal")
    except OSError:
        return
    disk = os.statvfs(os.path.dirname(path) or ".")
    is_tight = disk.f_bavail * disk.f_frsize < TIGHT_LOGS * size  # once the disk is full, no checkpoint helps any more
    if size >= CHECKPOINT_BYTES or is_tight:
        dialect.checkpoint(restart=is_tight or size >= RESTART_LOG_BYTES)
