"""The poll loop: descriptors with a callback each, and one wait with a deadline. What to do is the callers' affair."""

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ONCE = select.EPOLLIN | select.EPOLLONESHOT


class Loop:
    """One epoll set; all of a process's waiting happens here."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._once: dict[int, Callable[[], None]] = {}
        self._ring_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.watch(self._ring_fd, self._on_ring)
        self.turned_at = time.monotonic()

    def fileno(self) -> int:
        """Return a descriptor that can be read while something waits to be handled."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Let go of the epoll set; what it watched stays open."""
        self._epoll.close()
        os.close(self._ring_fd)

    def ring(self) -> None:
        """Let it wait no longer; the one act that another thread may do."""
        os.eventfd_write(self._ring_fd, 1)

    def watch(self, fd: int, callback: "Callable[[], None]") -> None:
        """Call back whenever a descriptor is readable or at its end."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, select.EPOLLIN)

    def watch_once(self, fd: int, callback: "Callable[[], None]") -> None:
        """Call back when a descriptor is readable, and then never again: it may be closed without a word to us.

        Whoever else has a copy of it then, as a process that was just started, rings no more with it.
        """
        self._callbacks.pop(fd, None)  # of another that was closed without a word: the number is not its any more
        self._once[fd] = callback
        self._epoll.register(fd, _ONCE)

    def unwatch(self, fd: int, callback: "Callable[[], None] | None" = None) -> None:
        """Forget a descriptor; do it before closing it, where that is in our hands.

        To close it alone is not enough: a process that was just started has a copy until its program is loaded, and so
        long the kernel goes on telling of it, under a number that may be another's by then.

        Where it is not (a library closed it), name the callback: the number may be another's by now, and then stays.
        """
        if callback is not None and self._callbacks.get(fd) != callback:
            return
        if self._callbacks.pop(fd, None) is not None:
            try:
                self._epoll.unregister(fd)
            except OSError:
                pass  # closed already, and the kernel forgot it then

    def turn(self, until: float) -> None:
        """Wait for the first event or until a monotonic time, and handle what came."""
        for fd, _ in self._epoll.poll(max(0.0, until - time.monotonic())):
            callback = self._once.pop(fd, None) or self._callbacks.get(fd)
            if callback is not None:  # an earlier callback of this turn may have removed it
                callback()
        self.turned_at = time.monotonic()

    def _on_ring(self) -> None:
        os.eventfd_read(self._ring_fd)
