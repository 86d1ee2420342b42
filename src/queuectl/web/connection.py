"""Connection: uvicorn's own, that hangs up on whoever does not say in time what they ask for."""

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

HEAD_SECONDS = 10.0
"""From the first moment to the end of the head of a request; who sends a byte now and then holds a place for ever."""


class Connection(H11Protocol):
    """A connection that ends unless the head of a request is whole in time; how long a body may take is edge.py's."""

    _hanging_up: "asyncio.TimerHandle | None" = None

    def connection_made(self, transport: "asyncio.Transport") -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the part of a head begins another wait, a whole one ends it."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect_a_head()
        else:
            self._have_it()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._have_it()
        super().connection_lost(exc)

    def _expect_a_head(self) -> None:
        if self._hanging_up is None:
            self._hanging_up = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _have_it(self) -> None:
        if self._hanging_up is not None:
            self._hanging_up.cancel()
            self._hanging_up = None

    def _hang_up(self) -> None:
        self._hanging_up = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
