"""Leaving: how a process of ours ends, once what must not be lost is written and closed."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def leave(code: int = 0) -> "NoReturn":
    """End this process at once; where another thread of it still has work, as Python would, after that.

    The interpreter would first take itself to pieces, object by object: 5 ms for which the caller would wait, and 30
    where it had to import psycopg. So no finalizer and nothing that was registered with atexit is run.
    """
    threading = sys.modules.get("threading")
    if threading is not None and any(
        thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()
    ):
        sys.exit(code)
    leave_now(code)


def leave_now(code: int = 0) -> "NoReturn":
    """End this process whatever its threads do; what is printed by then is written where it can be."""
    flush_streams()
    os._exit(code)


def flush_streams() -> None:
    """Write what is printed by now where it can be."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # there is none, nobody reads it, it is closed, or full: whoever minds has flushed it before
