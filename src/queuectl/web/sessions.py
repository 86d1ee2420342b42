"""Sessions: who is logged in with a browser. They live in this process alone, and end with it."""

import secrets
import threading

from queuectl import clock
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_S = 12 * 3600.0
LONGEST_S = 7 * 86400.0
MOST = 1000
MOST_OF_A_TOKEN = 20
_ID_BYTES = 32


class Session(Value):
    """One login of a browser."""

    id: str
    token_id: str
    csrf: str
    """What a page of this session sends with each write; another site cannot know it."""
    begun_s: float
    used_s: float


class Sessions:
    """Keeps the sessions, the one used last at the end; any thread may ask."""

    def __init__(self, read_s: "Callable[[], float]" = clock.boot_s) -> None:
        self._read_s = read_s
        self._lock = threading.Lock()
        self._kept: dict[str, Session] = {}

    def begin(self, token_id: str) -> Session:
        """Begin a session of a token; where there are too many, the one that was not used for longest ends."""
        now = self._read_s()
        made = Session(
            id=secrets.token_urlsafe(_ID_BYTES),
            token_id=token_id,
            csrf=secrets.token_urlsafe(_ID_BYTES),
            begun_s=now,
            used_s=now,
        )
        with self._lock:
            same = [each.id for each in self._kept.values() if each.token_id == token_id]
            for session_id in same[: max(0, len(same) - MOST_OF_A_TOKEN + 1)]:
                del self._kept[session_id]
            while len(self._kept) >= MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[made.id] = made
        return made

    def use(self, session_id: str) -> Session | None:
        """Return a session that goes on, and count this as its use."""
        now = self._read_s()
        with self._lock:
            found = self._kept.pop(session_id, None)
            if found is None or now - found.used_s >= IDLE_S or now - found.begun_s >= LONGEST_S:
                return None
            used = self._kept[session_id] = found.replace(used_s=now)
            return used

    def end(self, session_id: str) -> None:
        """End a session."""
        with self._lock:
            self._kept.pop(session_id, None)
