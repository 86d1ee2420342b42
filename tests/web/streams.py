"""A client of the stream of events, for tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple

from tests.web.serving import Site


class Event(NamedTuple):
    """One event as it came."""

    name: str
    id: str
    data: Any


class Stream:
    """An open stream."""

    def __init__(self, answer: HTTPResponse) -> None:
        self.answer = answer

    def next_event(self, name: str = "change") -> Event:
        """Wait for the next event of a name."""
        while True:
            fields: dict[str, str] = {}
            while line := self.answer.readline().decode().rstrip("\n"):
                key, _, value = line.partition(":")
                fields[key] = value.strip()
            assert fields, "the stream ended"
            if fields.get("event") == name:
                return Event(name, fields.get("id", ""), json.loads(fields["data"]))

    def until(self, state: str, count: int) -> Event:
        """Wait for the event that says that so many jobs are in a state."""
        while True:
            event = self.next_event()
            if event.data["jobs"] and event.data["jobs"][state] == count:
                return event


@contextmanager
def streaming(site: Site, **headers: str) -> Iterator[Stream]:
    """Open the stream of events of a server."""
    connection = HTTPConnection("127.0.0.1", site.port, timeout=60)
    try:
        connection.request("GET", "/api/v1/events", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer)
    finally:
        connection.close()
