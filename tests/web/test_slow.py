"""Who takes their time, or every place: nobody is waited for without end, and nobody keeps the others out."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest
from starlette.requests import ClientDisconnect

from queuectl.web import connection, edge
from queuectl.web.edge import Edge
from queuectl.web.rest import events, following
from tests.program import wait_for
from tests.web.loops import run_apart
from tests.web.serving import Site
from tests.web.streams import streaming
from tests.web.tokens import bearer, token_of

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Message, Send

EVENTS = "/api/v1/events"
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"


@contextmanager
def connected(site: Site) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", site.port), timeout=60)) as found:
        yield found


def status_of(found: socket.socket) -> int:
    return int(found.makefile("rb").readline().split()[1])


def test_nobody_is_waited_for_longer_than_the_slowest_need() -> None:
    assert connection.HEAD_SECONDS <= 30
    assert edge.SILENCE_SECONDS <= 60
    assert edge.BODY_SECONDS <= 900


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", HEAD], ids=["nothing", "a part of a line", "no end"])
def test_whoever_does_not_say_in_time_what_they_ask_for_is_left(
    local_site: Site, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    with connected(local_site) as found:
        found.sendall(sent)

        assert found.recv(1) == b""


def test_also_the_second_request_of_a_connection_is_waited_for_no_longer(
    local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(local_site) as found:
        found.sendall(HEAD + b"\r\n")
        while not found.recv(4096).endswith(b"}"):
            pass
        monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
        found.sendall(HEAD)

        assert found.recv(1) == b""


def test_once_a_request_is_whole_nothing_is_left_that_would_hang_up(
    local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 600.0)
    made: list[connection.Connection] = []
    begin = connection.Connection.connection_made

    def noting(self: connection.Connection, transport: "asyncio.Transport") -> None:
        made.append(self)
        begin(self, transport)

    monkeypatch.setattr(connection.Connection, "connection_made", noting)
    with connected(local_site) as found:
        wait_for(lambda: made and made[0]._hanging_up is not None, "it waits for the first head", 30)
        found.sendall(HEAD + b"\r\n")
        while not found.recv(4096).endswith(b"}"):
            pass

        assert made[0]._hanging_up is None
        found.sendall(HEAD)
        wait_for(lambda: made[0]._hanging_up is not None, "it waits for the second head", 30)


def test_a_stream_goes_on_beyond_the_time_for_a_head(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(events, "BEAT_S", 0.05)
    with streaming(local_site) as stream:
        for _ in range(5):
            stream.next_event("beat")


def test_whoever_asks_for_the_head_of_a_stream_is_not_given_its_body(local_site: Site) -> None:
    with closing(HTTPConnection("127.0.0.1", local_site.port, timeout=10)) as found:
        found.request("HEAD", EVENTS)
        head = found.getresponse()
        assert (head.status, head.read()) == (200, b"")
        found.request("GET", "/healthz")

        assert found.getresponse().status == 200  # had the stream gone on, this would wait for its end


def test_whoever_would_send_the_body_of_a_stream_is_stopped_when_its_head_was_asked_for() -> None:
    given: list[int] = []
    sent: list[dict[str, object]] = []

    async def app(_scope: object, _receive: object, send: "Send") -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in range(3):
            given.append(part)
            await send({"type": "http.response.body", "body": b"x", "more_body": True})

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: "Message") -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": "HEAD", "path": EVENTS, "query_string": b"", "headers": []}
    run_apart(Edge(app)(scope, receive, send))

    assert given == [0]
    assert sent[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]


@pytest.mark.parametrize("bound", ["SILENCE_SECONDS", "BODY_SECONDS"])
@pytest.mark.parametrize("path", [b"/api/v1/jobs", b"/login"])
def test_a_body_that_does_not_come_in_time_is_refused(
    local_site: Site, monkeypatch: pytest.MonkeyPatch, path: bytes, bound: str
) -> None:
    for each in ("SILENCE_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(edge, each, 0.05 if each == bound else 600.0)
    body = BODY.replace(b"application/json", b"application/x-www-form-urlencoded") if path == b"/login" else BODY
    with connected(local_site) as found:
        found.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + body)

        assert status_of(found) == 408


def test_whoever_hangs_up_amid_a_body_fills_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    sent: list[object] = []

    async def app(*_: object) -> None:
        raise ClientDisconnect

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/login", "query_string": b"", "headers": []}
    run_apart(Edge(app)(scope, receive, send))

    assert (sent, capfd.readouterr().err) == ([], "")


def test_nobody_takes_every_stream_of_events(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EACH", 1)
    other = bearer(token_of(local_site.target, "read", "other"))
    with streaming(local_site) as stream:
        stream.next_event()

        refused = local_site.get(EVENTS)
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        with streaming(local_site, **other) as second:
            second.next_event()
            monkeypatch.setattr(events, "MOST", 2)
            assert local_site.get(EVENTS, **bearer(token_of(local_site.target, "read", "third"))).status == 503


def test_nobody_takes_every_place_of_those_who_follow(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_EACH", 0)
    local_site.post("/api/v1/jobs", {"command": "true"})

    assert local_site.get("/api/v1/jobs/1/output?follow=true").status == 503
