"""Signals as bytes in a pipe, so that a poll loop sees them like everything else."""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalPipe:
    """A descriptor that turns readable when one of the signals arrives."""

    def __init__(self, numbers: "Sequence[int]") -> None:
        self.fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in numbers:
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, no child could be waited for
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def read(self) -> list[int]:
        """Return the signals that arrived since the last call."""
        try:
            return list(os.read(self.fd, 64))
        except BlockingIOError:
            return []


def only_sigterm() -> "Sequence[int]":
    """Ignore the terminal's signals and return what a worker heeds: it obeys its supervisor alone."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return (signal.SIGTERM,)
