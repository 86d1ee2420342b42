"""Signals: as bytes in a pipe for a poll loop, as a call for a command that waits."""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Ctrl-Z would stop supervisor and workers while their commands, in sessions of their own, go on unwatched.
_PAUSE_SIGNALS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class SignalPipe:
    """A descriptor that turns readable when one of the signals arrives."""

    def __init__(self, numbers: "Sequence[int]") -> None:
        self.fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup a hang-up stays ignored
                signal.signal(number, lambda *_: None)
        _keep_going()
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def read(self) -> list[int]:
        """Return the signals that arrived since the last call."""
        try:
            return list(os.read(self.fd, 64))
        except BlockingIOError:
            return []


class on_stop_signals:  # noqa: N801 - used as a statement: `with on_stop_signals(hear):`
    """Call back for each signal that asks to stop, instead of dying of it; between two steps of the main thread.

    The main thread may be amid an import, hold a lock, or be printing: what half an import lacks is missing, what is
    locked stays locked. So `hear` notes that it was called, writes a byte into a pipe or raises KeyboardInterrupt, and
    does nothing else: no import, no connection, no print, no start of a thread.
    """

    def __init__(self, hear: "Callable[[], None]") -> None:
        self._hear = hear
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda *_: self._hear())

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def leave_signals_to_supervisor() -> None:
    """Ignore what asks to stop, in a group of our own: a worker obeys its supervisor alone, whom it reaches as well.

    Else a signal to the whole group (a Ctrl-C) would also find a command that was started this moment, before it has a
    session of its own, and end it.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _keep_going()
    try:
        os.setpgid(0, 0)
    except PermissionError:
        pass  # it leads a session, and so a group, already


def _keep_going() -> None:
    for number in _PAUSE_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, no child could be waited for
