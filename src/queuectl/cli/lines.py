"""Lines: reading what people hand in, where a line that never ends must not fill the memory."""

from queuectl.errors import BadInput
from queuectl.model.units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAX_LINE_BYTES = 16 << 20
"""Beyond any job: a command has at most 1 MiB, six times that if every character of it is escaped."""
MAX_EXPORT_LINE_BYTES = 32 << 20
"""Beyond any run: the ends of two outputs have at most 1 MiB each, six times that if every byte is escaped."""
PIECE_BYTES = 1 << 20


def read_lines(file: "BinaryIO", longest: int, hint: str) -> "Iterator[bytes]":
    """Yield line by line, and refuse one that is too long with its number."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise _too_long(number, longest, hint)
        yield line


def read_pieces(
    file: "BinaryIO", longest: int, hint: str, *, separator: bytes = b"\n", most: int | None = None
) -> bytes:
    """Read a whole file, and refuse a line that is too long with its number before more of it is read.

    Far quicker than line by line: lines are looked at only where two pieces meet. `most` is how many lines it may have.
    """
    pieces: list[bytes] = []
    begun = 0
    ended = 0
    while piece := file.read(PIECE_BYTES):
        end = piece.find(separator)
        if begun + (len(piece) if end < 0 else end + 1) > longest:
            raise _too_long(sum(each.count(separator) for each in pieces) + 1, longest, hint)
        begun = begun + len(piece) if end < 0 else len(piece) - piece.rfind(separator) - 1
        pieces.append(piece)
        if most is not None and (ended := ended + piece.count(separator)) > most:
            raise BadInput(f"more than {most} lines", hint=hint)
    return b"".join(pieces)


def _too_long(number: int, longest: int, hint: str) -> BadInput:
    return BadInput(f"line {number}: longer than {size_text(longest)}", hint=hint)
