"""Out of memory: how often the kernel of this host has killed a process for lack of memory."""

import time

FRESH_S = 1.0


class KillCount:
    """The kernel's count, read at most once a second for the sake of starts: a hundred of them cost one look."""

    def __init__(self) -> None:
        self._count = self._earlier = 0
        self._read_at = float("-inf")

    def before_start(self, now: float) -> int:
        """Return the count as it stood at most a second before a monotonic time, which it is."""
        return self._count if now - self._read_at < FRESH_S else self.now()

    def look(self) -> None:
        """Read the count; who does so every second can tell a kill of just now from those of long ago."""
        self._earlier = self._count
        self.now()

    @property
    def lately(self) -> int:
        """The count as it stood before the last look: a kill that is noticed now may be in the last one already."""
        return self._earlier

    def now(self) -> int:
        """Return the count as it is; 0 where the kernel does not tell."""
        self._count = read_count()
        self._read_at = time.monotonic()
        return self._count


def read_count() -> int:
    """Read how many processes the kernel has killed since it started."""
    try:
        with open("/proc/vmstat", "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return 0
    _, name, rest = text.partition(b"\noom_kill ")
    return int(rest.split(b"\n", 1)[0]) if name else 0
