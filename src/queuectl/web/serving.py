"""Serving: the process behind `queuectl serve`: uvicorn around the app, its sockets, signals and log."""

import logging
import os
import sys
import threading
import time
from contextlib import contextmanager

import uvicorn

from queuectl.system.leaving import leave_now
from queuectl.system.signals import on_stop_signals
from queuectl.web.connection import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI

STOP_SECONDS = 5
"""How long answers under way may take once the server was asked to stop; streams end at once."""
LEAVE_SECONDS = 1.0
"""How long threads are waited for that still do something when all else has ended."""
BACKLOG = 1024


class Server(uvicorn.Server):
    """uvicorn that ends its streams when asked to stop, says when it listens, and leaves with exit code 0."""

    def __init__(self, config: uvicorn.Config, on_started: "Callable[[], None]" = lambda: None) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: "list[socket.socket] | None" = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: "list[socket.socket] | None" = None) -> None:
        """End the streams first: uvicorn waits for every answer under way, and a stream never ends by itself."""
        app = self.config.app
        app.state.closing.set()  # type: ignore[union-attr]
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> "Iterator[None]":
        """Stop in order at the first signal, at once at the second; uvicorn's own would die of it afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with on_stop_signals(self._hear):
            yield

    def _hear(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def make_server(
    app: "FastAPI",
    *,
    certificate: tuple[str, str] | None = None,
    access_log: bool = False,
    on_started: "Callable[[], None]" = lambda: None,
) -> Server:
    """Return a server for sockets that are bound already."""
    cert, key = certificate or (None, None)
    config = uvicorn.Config(
        app,
        ssl_certfile=cert,
        ssl_keyfile=key,
        log_config=None,
        access_log=access_log,
        # What a proxy says of addresses is for the guard to judge: believed here, it would make anybody local.
        proxy_headers=False,
        server_header=False,
        http=Connection,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS,
        backlog=BACKLOG,
    )
    _log_to_stderr(access_log=access_log)
    return Server(config, on_started)


def leave_the_stuck() -> None:
    """End the process where a thread waits for a store that does not answer; Python would wait for that thread.

    Nobody waits for its answer any more. What it writes is written whole or not at all, as when a process is killed.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                leave_now()


class _OneLine(logging.Formatter):
    """A line a message; how an error came about is shown with QUEUECTL_DEBUG alone."""

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        if os.environ.get("QUEUECTL_DEBUG"):
            return super().formatException(ei)  # type: ignore[arg-type]
        return ""

    def format(self, record: logging.LogRecord) -> str:
        said = super().format(record)
        if record.exc_info and not os.environ.get("QUEUECTL_DEBUG"):
            error = record.exc_info[1]
            return f"queuectl serve: internal error: {type(error).__name__}: {str(error)[:300]!r}"
        return said


def _log_to_stderr(*, access_log: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("queuectl serve: %(message)s"))
    for name, level in (("uvicorn.error", logging.ERROR), ("uvicorn.access", logging.INFO)):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if access_log or name == "uvicorn.error" else []
        logger.propagate = False
        logger.setLevel(level)
