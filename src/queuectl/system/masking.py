"""Masking: hiding given values in a stream of bytes, wherever the stream is cut into pieces. Pure: no I/O.

Every byte that belongs to an occurrence of a value is hidden, also where occurrences overlap: with the values `ab` and
`bcdef`, hiding the first of them in `abcdef` would leave most of the second. What overlaps is one `***`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MASK_CHARACTERS = b"*#x-._=+~^@%&"
MASK_LENGTH = 3
LINE_BYTES = 4  # shorter lines of a value, such as a lone brace, would hide half of what a command prints
MANY_PATTERNS = 16


class Mask:
    """Hides values in one stream: `feed` it piece by piece, and take what is left at the `end`.

    Held back is the longest end of the stream that may still become a value, and no more: a prompt is not delayed.
    """

    def __init__(self, values: "Iterable[bytes]") -> None:
        self._patterns = _patterns(list(values))
        self._sign = _sign(self._patterns)
        self._can_overlap = _can_overlap(self._patterns)
        self._held = b""
        self._hidden = 0  # of the held bytes, those that belong to an occurrence whose sign was shown already

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what is sure by now."""
        held = self._held + data
        sure = min((len(held) - _begun(held, pattern) for pattern in self._patterns), default=len(held))
        return self._show(held, sure)

    def end(self) -> bytes:
        """Return what was held back: no more bytes follow, so what has only begun is not a value."""
        return self._show(self._held, len(self._held))

    def _show(self, held: bytes, sure: int) -> bytes:
        """Return what comes of the bytes before `sure`; the rest is held."""
        self._held = held[sure:]
        if self._can_overlap:
            return self._show_spans(held, sure)
        # Nothing overlaps, so no occurrence goes on behind `sure`, and the sign begins and ends no value.
        shown = held[:sure]
        for pattern in self._patterns:
            shown = shown.replace(pattern, self._sign)
        return shown

    def _show_spans(self, held: bytes, sure: int) -> bytes:
        shown = []
        at = self._hidden
        for begin, end in self._spans(held):
            if begin >= sure:
                break
            if begin >= at:
                shown += [held[at:begin], self._sign]
            at = max(at, end)
        shown.append(held[at:sure])
        self._hidden = max(0, at - sure)
        return b"".join(shown)

    def _spans(self, held: bytes) -> list[tuple[int, int]]:
        """Return where values stand, each occurrence for itself, in order."""
        spans = []
        for pattern in self._patterns:
            at = -1
            while (at := held.find(pattern, at + 1)) >= 0:
                spans.append((at, at + len(pattern)))
        return sorted(spans)


def _patterns(values: list[bytes]) -> list[bytes]:
    """Return what to hide, the longest first: each value, as a terminal prints it too, and its lines."""
    patterns = set(values)
    for value in values:
        if b"\n" not in value:
            continue
        lines = [line.removesuffix(b"\r") for line in value.split(b"\n")]
        patterns |= {b"\n".join(lines), b"\r\n".join(lines)}
        patterns |= {line for line in lines if len(line) >= LINE_BYTES}
    patterns.discard(b"")
    return sorted(patterns, key=lambda pattern: (-len(pattern), pattern))


def _sign(patterns: list[bytes]) -> bytes:
    """Return `***`, or the like of another character where stars beside what surrounds them might look like a value.

    The last resort is a NUL: no variable holds one.
    """
    for code in MASK_CHARACTERS:
        one = bytes([code])
        sign = one * MASK_LENGTH
        if not any(each.startswith(one) or each.endswith(one) or sign in each for each in patterns):
            return sign
    return b"\0" * MASK_LENGTH


def _can_overlap(patterns: list[bytes]) -> bool:
    """Whether one occurrence may begin inside another and go on behind it; many patterns are not looked at."""
    if len(patterns) > MANY_PATTERNS:
        return True
    return any(_begun(one[1:], other) for one in patterns for other in patterns)


def _begun(data: bytes, pattern: bytes) -> int:
    """Return the length of the longest end of `data` with which `pattern` begins, but is not over."""
    first = pattern[:1]
    begin = max(0, len(data) - len(pattern) + 1)
    while (begin := data.find(first, begin)) >= 0:
        # The first bytes decide nearly always, and cost no copy of a long end.
        if pattern.startswith(data[begin : begin + 16]) and pattern.startswith(data[begin:]):
            return len(data) - begin
        begin += 1
    return 0
