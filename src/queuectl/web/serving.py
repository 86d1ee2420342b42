"""Serving: the process behind `queuectl serve`: uvicorn around the app, its sockets, signals and log."""

import logging
import os
import socket
import ssl
import sys
import threading
from contextlib import contextmanager

import uvicorn

from queuectl.errors import BadInput
from queuectl.system.signals import on_stop_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI

STOP_SECONDS = 5
"""How long answers under way may take once the server was asked to stop; streams end at once."""
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
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS,
        backlog=BACKLOG,
    )
    _log_to_stderr(access_log=access_log)
    return Server(config, on_started)


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or raise what a person can mend; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise BadInput(f"cannot listen on {host!r}: {error}", hint="give an address of this machine") from None
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        hint = "choose another: --port 0 takes a free one" if port else "give an address of this machine"
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror}", hint=hint) from None
    return found


def check_certificate(cert: str, key: str) -> None:
    """Raise what is wrong with a certificate and its key, before the server needs them."""
    for path in (cert, key):
        if not os.path.isfile(path):
            raise BadInput(f"no file {path!r}", hint="give --tls-cert and --tls-key in PEM form")
    try:
        # The password keeps OpenSSL from asking for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadInput(
            f"cannot use certificate {cert!r} with key {key!r}: {error}",
            hint="both in PEM form, the key without a password and belonging to the certificate",
        ) from None


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
