"""A network in front of PostgreSQL that can be cut, go silent, or lose one answer: a TCP proxy on loopback."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Literal
from urllib.parse import parse_qs, urlsplit

CHUNK = 65536
READY = b"Z\x00\x00\x00\x05I"
"""What the server says when a transaction is over and the next statement may come."""


class Mode(Enum):
    """What happens to bytes and to new connections."""

    PASS = "pass"
    HOLD = "hold"
    SWALLOW = "swallow"
    CUT = "cut"


class Proxy:
    """Passes bytes between clients on a port of its own and a server behind a unix socket, as long as it is told to.

    No byte is ever passed on after one before it was dropped: TCP does not do that either.
    """

    def __init__(self, server_socket: str) -> None:
        self._server_socket = server_socket
        self._mode = Mode.PASS
        self._is_deaf = False
        self._changed = threading.Condition()
        self._links: list[_Link] = []
        self._threads: list[threading.Thread] = []
        self._trigger: _Trigger | None = None
        self._lost_answer: _LostAnswer | None = None
        self._listener: socket.socket | None = None
        # Bound and never listening: the port stays ours while nobody answers on it.
        self._reserved = _bound(0)
        self.port: int = self._reserved.getsockname()[1]
        self._listen()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Close all connections, and refuse new ones until the end of the block."""
        self._set(Mode.CUT)
        self._stop_listening()
        for link in self._each_link():
            link.shut()
        try:
            yield
        finally:
            self._listen()
            self._set(Mode.PASS)

    @contextmanager
    def swallowing(self, *, after: bytes = b"") -> Iterator[Callable[[float], bool]]:
        """Drop every byte both ways until the end of the block; a connection that lost some stays silent for ever.

        With `after`, begin when a client has sent these bytes, which still pass. Gives a function that waits so many
        seconds for the beginning and returns whether it came.
        """
        self._trigger = trigger = _Trigger(after)
        if not after:
            self._pull(trigger)
        try:
            yield trigger.is_pulled.wait
        finally:
            self._trigger = None
            self._set(Mode.PASS)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep every byte back until the end of the block, then deliver it, as TCP does when packets got lost."""
        self._set(Mode.HOLD)
        try:
            yield
        finally:
            self._set(Mode.PASS)

    @contextmanager
    def withholding_notifications(self) -> Iterator[None]:
        """Keep notifications from clients that connect from now on, as a pooler that pools transactions does."""
        self._is_deaf = True
        try:
            yield
        finally:
            self._is_deaf = False

    @contextmanager
    def losing_answer_to_commit(
        self, of: bytes, *, then: Literal["close", "silence", "blackout"] = "close"
    ) -> Iterator[Callable[[float], bool]]:
        """Lose the answer to the next COMMIT of a transaction that sent these bytes.

        Then its connection is closed, or stays open and silent for ever, or is closed and all others swallow every byte
        until the end of the block. Gives a function that waits so many seconds for that and returns whether it
        happened; the server has committed by then.
        """
        self._lost_answer = lost = _LostAnswer(of, then)
        try:
            yield lost.is_lost.wait
        finally:
            self._lost_answer = None
            self._set(Mode.PASS)

    def close(self) -> None:
        """Close everything and wait for the threads."""
        self._stop_listening()
        self._set(Mode.CUT)
        for link in self._each_link():
            link.shut()
        for thread in [*self._threads]:
            thread.join()
        self._reserved.close()

    def _set(self, mode: Mode) -> None:
        with self._changed:
            self._mode = mode
            self._changed.notify_all()

    def _each_link(self) -> "list[_Link]":
        with self._changed:
            return [*self._links]

    def _listen(self) -> None:
        self._listener = _bound(self.port)
        self._listener.listen(128)
        self._start(self._accept, self._listener)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._listener.close()
            self._listener = None

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            link = _Link(client)
            link.sieve = _Sieve() if self._is_deaf else None
            with self._changed:
                self._links.append(link)
                link.is_silent = self._mode is Mode.SWALLOW
                is_cut = self._mode is Mode.CUT
            try:
                link.server.connect(self._server_socket)
            except OSError:
                is_cut = True
            if is_cut:
                link.shut()
            self._start(self._pump_answers, link)
            self._start(self._pump_requests, link)

    def _pump_requests(self, link: "_Link") -> None:
        sent = b""
        while data := _receive(link.client):
            if not self._may_pass(link):
                continue
            sent = (sent + data)[-4 * CHUNK :]
            trigger, lost = self._trigger, self._lost_answer
            if trigger is not None and trigger.after in sent:
                self._pull(trigger)
            if b"COMMIT\x00" in sent:
                if lost is not None and lost.of in sent:
                    self._lost_answer, link.lost_answer = None, lost
                sent = b""  # what comes next belongs to another transaction
            _send(link.server, data)
        self._end(link)

    def _pump_answers(self, link: "_Link") -> None:
        answer = b""
        while data := _receive(link.server):
            if not self._may_pass(link):
                continue
            if link.sieve is not None:
                data = link.sieve.pass_on(data)
            if link.lost_answer is None:
                _send(link.client, data)
                continue
            answer += data
            if READY in answer:
                self._lose(link, link.lost_answer)
        self._end(link)

    def _lose(self, link: "_Link", lost: "_LostAnswer") -> None:
        link.is_silent = True
        if lost.then == "blackout":
            self._set(Mode.SWALLOW)
        if lost.then != "silence":
            link.shut()
        lost.is_lost.set()

    def _pull(self, trigger: "_Trigger") -> None:
        with self._changed:
            if self._trigger is not trigger:
                return
            self._trigger, self._mode = None, Mode.SWALLOW
            self._changed.notify_all()
        trigger.is_pulled.set()

    def _may_pass(self, link: "_Link") -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._mode is not Mode.HOLD)
            link.is_silent = link.is_silent or self._mode is Mode.SWALLOW
            return not link.is_silent

    def _end(self, link: "_Link") -> None:
        """Tell the other side that one has closed, once packets pass again."""
        with self._changed:
            self._changed.wait_for(lambda: self._mode not in (Mode.HOLD, Mode.SWALLOW))
            link.shut()
            link.readers -= 1
            if not link.readers:
                link.close()
                self._links.remove(link)


class _Trigger:
    def __init__(self, after: bytes) -> None:
        self.after = after
        self.is_pulled = threading.Event()


class _LostAnswer:
    def __init__(self, of: bytes, then: str) -> None:
        self.of = of
        self.then = then
        self.is_lost = threading.Event()


class _Sieve:
    """Takes notifications out of what a server says, message by message."""

    def __init__(self) -> None:
        self._kept = b""
        self._has_begun = False

    def pass_on(self, data: bytes) -> bytes:
        self._kept += data
        passed = b""
        while not self._has_begun and self._kept[:1] == b"N":  # no encryption, said before the first message
            passed, self._kept = passed + b"N", self._kept[1:]
        self._has_begun = self._has_begun or bool(self._kept)
        while len(self._kept) >= 5:
            end = 1 + int.from_bytes(self._kept[1:5])
            if len(self._kept) < end:
                break
            message, self._kept = self._kept[:end], self._kept[end:]
            if message[:1] != b"A":
                passed += message
        return passed


class _Link:
    """One client and its connection to the server."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server = socket.socket(socket.AF_UNIX)
        self.is_silent = False
        self.lost_answer: _LostAnswer | None = None
        self.sieve: _Sieve | None = None
        self.readers = 2

    def shut(self) -> None:
        """End both sides, which wakes the threads that read from them; twice is fine."""
        for side in (self.client, self.server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        """Close both sides, once nobody reads from them any more: the numbers are another's then."""
        self.client.close()
        self.server.close()


@contextmanager
def proxied(server_url: str) -> Iterator[Proxy]:
    """Give a proxy in front of the server that an address means, and close it afterwards."""
    proxy = Proxy(f"{parse_qs(urlsplit(server_url).query)['host'][0]}/.s.PGSQL.5432")
    try:
        yield proxy
    finally:
        proxy.close()


def through(proxy: Proxy, url: str) -> str:
    """Return the address of the same database by way of a proxy."""
    return f"postgresql://postgres@127.0.0.1:{proxy.port}{urlsplit(url).path}"


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(CHUNK)
    except OSError:
        return b""


def _send(sink: socket.socket, data: bytes) -> None:
    try:
        sink.sendall(data)
    except OSError:
        pass  # closed; the thread that reads from it sees to the other side
