"""Bell: what wakes a process that waits: a file of the home that is touched, or a notification of PostgreSQL."""

from queuectl.system.wake import WakeWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.actions.connect import Target
    from queuectl.runtime.loop import Loop
    from queuectl.store.database import Database
    from queuectl.store.postgres import PostgresDialect

NET_POLL_S = 5.0
NO_WATCH_POLL_S = 0.2


def make_bell(target: "Target", database: "Database", loop: "Loop", callback: "Callable[[], None]") -> "Bell":
    """Return the bell of this kind of store; it calls back in the loop when somebody made work ready or gave orders."""
    if target.sqlite_path is not None:
        return FileBell(WakeWatch(target.home.wake), loop, callback)
    from queuectl.store.postgres import CHANNEL

    return _notify_bell(database, loop, callback, CHANNEL)


def make_change_bell(target: "Target", database: "Database", loop: "Loop", callback: "Callable[[], None]") -> "Bell":
    """Return a bell that rings when jobs change."""
    if target.sqlite_path is not None:
        return FileBell(WakeWatch(target.home.changed), loop, callback)
    from queuectl.store.postgres import CHANGE_CHANNEL

    return _notify_bell(database, loop, callback, CHANGE_CHANNEL)


def _notify_bell(database: "Database", loop: "Loop", callback: "Callable[[], None]", channel: str) -> "NotifyBell":
    from queuectl.store.postgres import PostgresDialect

    assert isinstance(database.dialect, PostgresDialect)
    return NotifyBell(database.dialect, loop, callback, channel)


class Bell:
    """A bell that nothing rings: `poll_s` is the net below every kind."""

    poll_s = NO_WATCH_POLL_S

    def attend(self) -> None:
        """Call before sleeping: a ring that came while we were busy is heard now."""

    def close(self) -> None:
        """Stop listening."""


class FileBell(Bell):
    """Rung by a touch of the wake file; where the kernel has no inotify, the poll is quick instead."""

    def __init__(self, watch: WakeWatch, loop: "Loop", callback: "Callable[[], None]") -> None:
        self._watch = watch
        self._callback = callback
        if watch.fd is not None:
            self.poll_s = NET_POLL_S
            loop.watch(watch.fd, self._rung)

    def close(self) -> None:
        """Stop watching the file."""
        self._watch.close()

    def _rung(self) -> None:
        self._watch.drain()
        self._callback()


class NotifyBell(Bell):
    """Rung by NOTIFY on the connection that also claims: one connection per worker is enough."""

    poll_s = NET_POLL_S

    def __init__(self, dialect: "PostgresDialect", loop: "Loop", callback: "Callable[[], None]", channel: str) -> None:
        self._dialect = dialect
        self._loop = loop
        self._callback = callback
        dialect.listen(channel)
        self._watched = dialect.descriptor
        loop.watch(self._watched[0], self._rung)

    def close(self) -> None:
        """Stop listening, so that waits on one connection do not pile up."""
        self._loop.unwatch(self._watched[0], self._rung)
        self._dialect.unlisten()

    def attend(self) -> None:
        """Hear what arrived amid a statement, and follow the connection when it was replaced."""
        if self._dialect.take_notified():
            self._callback()
        if self._dialect.connection.closed:
            self._loop.unwatch(self._watched[0], self._rung)
            self._watched = (-1, -1)
        elif self._dialect.descriptor != self._watched:
            self._loop.unwatch(self._watched[0], self._rung)
            self._watched = self._dialect.descriptor
            self._loop.watch(self._watched[0], self._rung)

    def _rung(self) -> None:
        self._dialect.take_in()
        self._callback()
