"""Throttle: how often something may be tried, by address and in all, so that nobody guesses, and no log is flooded."""

import threading
from ipaddress import IPv6Address, ip_address

from queuectl import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ADDRESSES = 4096


class Bucket:
    """So many tries at once, and one more whenever a share of the time has passed."""

    __slots__ = ("_at", "_left", "_per_s", "_size")

    def __init__(self, size: int, per_s: float, now: float) -> None:
        self._size = size
        self._per_s = per_s
        self._left = float(size)
        self._at = now

    def wait_s(self, now: float) -> float:
        """Return how long until the next try is free; 0 means now."""
        self._left = min(self._size, self._left + (now - self._at) * self._per_s)
        self._at = now
        return 0.0 if self._left >= 1 else (1 - self._left) / self._per_s

    def take(self) -> None:
        """Use one try up."""
        self._left -= 1

    def is_full(self, now: float) -> bool:
        """Whether it has forgotten every try."""
        self.wait_s(now)
        return self._left >= self._size


class Throttle:
    """Counts tries per address and in all; any thread may ask."""

    def __init__(self, *, each: int, total: int, window_s: float, read_s: "Callable[[], float]" = clock.boot_s) -> None:
        self._each = each
        self._window_s = window_s
        self._read_s = read_s
        self._lock = threading.Lock()
        self._all = Bucket(total, total / window_s, read_s())
        self._by_address: dict[str, Bucket] = {}

    def wait_s(self, address: str) -> float:
        """Return how long an address has to wait before its next try; 0 means it may try."""
        with self._lock:
            now = self._read_s()
            return max(self._bucket(address, now).wait_s(now), self._all.wait_s(now))

    def take(self, address: str) -> float:
        """Use up one try of an address and return 0, or return how long it has to wait for it."""
        with self._lock:
            now = self._read_s()
            mine = self._bucket(address, now)
            wait = max(mine.wait_s(now), self._all.wait_s(now))
            if wait == 0:
                mine.take()
                self._all.take()
            return wait

    def _bucket(self, address: str, now: float) -> Bucket:
        key = _network(address)
        found = self._by_address.get(key)
        if found is None:
            if len(self._by_address) >= MOST_ADDRESSES:
                self._forget(now)
            found = self._by_address[key] = Bucket(self._each, self._each / self._window_s, now)
        return found

    def _forget(self, now: float) -> None:
        """Forget who may try as often as anybody; if that is none, the one that came first: the total still holds."""
        for key in [key for key, bucket in self._by_address.items() if bucket.is_full(now)]:
            del self._by_address[key]
        if len(self._by_address) >= MOST_ADDRESSES:
            del self._by_address[next(iter(self._by_address))]


def _network(address: str) -> str:
    """Return what counts as one address: anybody with IPv6 has 2^64 of them."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(int(found) >> 64)
    return str(found)
