"""A server for tests: the web face of a store on a free port of this process, and a plain client for it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from queuectl.actions.connect import Target
from queuectl.web.app import make_app
from queuectl.web.listening import bind
from queuectl.web.reach import Reach
from queuectl.web.serving import make_server

START_SECONDS = 20.0


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:  # noqa: ANN401 - whatever the server says
        return json.loads(self.body)


class Site:
    """A running server and a client that sends exactly what it is told."""

    def __init__(self, target: Target, port: int) -> None:
        self.target = target
        self.port = port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None, *, timeout: float = 30
    ) -> Answer:
        """Send a request; a body that is no bytes is sent as JSON."""
        given = {} if headers is None else dict(headers)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None and "content-type" not in {name.lower() for name in given}:
            given["Content-Type"] = "application/json"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return self.ask("POST", path, body, headers)


@contextmanager
def serving(target: Target, reach: Reach | None = None, *, port: int = 0) -> Iterator[Site]:
    """Serve a store on a port, or on a free one, until the block ends."""
    listener = bind("127.0.0.1", port)
    server = make_server(make_app(target, reach))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < deadline, "the server took too long to start"
        time.sleep(0.005)
    try:
        yield Site(target, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the server did not stop"
