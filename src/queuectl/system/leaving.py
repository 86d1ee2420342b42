"""Leaving: how a process of ours ends when all that it must give back is given back."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def leave(code: int = 0) -> "NoReturn":
    """End this process at once; where another thread of it still has work, as Python would, after that.

    The interpreter would first take itself to pieces, object by object: 5 ms for which the caller would wait, and 30
    where it had to import psycopg.
    """
    threading = sys.modules.get("threading")
    if threading is not None and any(
        thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate()
    ):
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # nobody reads it, or there is no room: who printed has said so by now, where that could be said
    os._exit(code)
