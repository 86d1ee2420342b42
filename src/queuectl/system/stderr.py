"""Standard error, written to without waiting for whoever reads it, wherever it can be opened a second time."""

import os
import select
import stat


class Stderr:
    """Takes what it can at once, and says of the rest that it did not.

    Others share the pipe or terminal, and its mode with it: to make that non-blocking would change theirs, and to ask
    first whether there is room is no promise while others write. So it is opened a second time, where that can be. A
    pipe or terminal that another user made cannot be (`sudo -u`, some containers), nor a socket: there it is asked for
    room, and a write has to wait where somebody else took that room meanwhile.
    """

    def __init__(self) -> None:
        self._fd, self._is_patient = _open_again()
        self._rest = b""
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)

    def write(self, data: bytes) -> bool:
        """Write all of it, or as good as that: the rest comes first next time. False: nothing of it was taken.

        What a pipe takes in one piece (PIPE_BUF) is written whole or not at all.
        """
        if self._is_patient and not self._poll.poll(0):
            return False
        try:
            if self._rest:
                self._rest = self._rest[os.write(self._fd, self._rest) :]
                if self._rest:
                    return False
            self._rest = data[os.write(self._fd, data) :]
        except BlockingIOError:
            return False
        except OSError:
            self._rest = b""  # the terminal is gone; the work goes on
        return True

    def wait(self, seconds: float) -> None:
        """Give whoever reads a while to make room."""
        self._poll.poll(seconds * 1000)


def _open_again() -> tuple[int, bool]:
    """Return a descriptor, and whether writing to it may have to wait."""
    try:
        if not (os.isatty(2) or stat.S_ISFIFO(os.fstat(2).st_mode)):
            return 2, True
        return os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), False
    except OSError:  # another's, or nothing is there any more
        return 2, True
