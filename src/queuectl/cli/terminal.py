"""Terminal: makes what a command printed fit to be shown on one. Colours pass; what could harm is shown, not obeyed."""

import re

ESC = 0x1B
LONGEST_COLOUR = 64
RESET = b"\x1b[0m"
_PLAIN = re.compile(rb"[ -~\n\t\r\x08]+")
_COLOUR = re.compile(rb"\x1b(?:\[[0-9;:]*)?(m)?")
_LEADS = ((0xC2, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xF4, 4))
# Controls in their UTF-8 form, and what turns the direction of a line.
_STEERING = re.compile("[\x80-\x9f\u2028-\u202e\u2066-\u2069]")
_RESETS = (b"\x1b[m", RESET)


class TerminalFilter:
    """A stream of bytes on its way to a terminal: `feed` it piece by piece, then take the `end`.

    What comes out is valid UTF-8 and holds no control character but newline, tab, carriage return and backspace, and
    no sequence but SGR (`ESC [ digits m`), the one for colours. All else is spelt out: `\\x1b]0;title\\x07`. How the
    input is cut into pieces makes no difference.
    """

    def __init__(self) -> None:
        self._held = b""
        self._is_coloured = False

    def feed(self, data: bytes) -> bytes:
        """Return what of the input so far may be shown; a sequence or character that is not whole yet is held."""
        data, out, at = self._held + data, bytearray(), 0
        while at < len(data) and (length := _length(data, at)) is not None:
            piece = data[at : at + max(1, length)]
            is_colour = length > 0 and piece[0] == ESC
            if is_colour:
                self._is_coloured = piece not in _RESETS
            out += piece if length else _spelt(piece)
            at += len(piece)
        self._held = data[at:]
        return bytes(out)

    def end(self) -> bytes:
        """Return what was held, spelt out, and the colours set back if they are not."""
        out = _spelt(self._held)
        self._held = b""
        if self._is_coloured:
            out += RESET
        self._is_coloured = False
        return out


def _length(data: bytes, at: int) -> int | None:
    """Return how many bytes from here on may be shown as they are; None means that more must be seen to tell."""
    if plain := _PLAIN.match(data, at):
        return len(plain[0])
    if data[at] == ESC:
        return _colour_length(data, at)
    return _character_length(data, at)


def _colour_length(data: bytes, at: int) -> int | None:
    """Return how long the SGR sequence that begins here is; 0 means it is none, None that more must be seen."""
    found = _COLOUR.match(data, at, at + LONGEST_COLOUR)
    assert found is not None
    if found[1]:
        return len(found[0]) if data[at + 1] == ord("[") else 0
    is_open = found.end() == len(data) and len(found[0]) < LONGEST_COLOUR
    return None if is_open else 0


def _character_length(data: bytes, at: int) -> int | None:
    """Return how long the UTF-8 character is; 0 means it is none, or one that steers; None that more must be seen."""
    length = next((length for first, last, length in _LEADS if first <= data[at] <= last), 0)
    piece = data[at : at + length]
    try:
        return 0 if _STEERING.match(piece.decode()) or not piece else length
    except UnicodeDecodeError as error:
        is_cut_off = len(piece) < length and error.reason == "unexpected end of data"
        return None if is_cut_off else 0


def _spelt(data: bytes) -> bytes:
    """Spell bytes out, visibly and harmlessly."""
    return b"".join(b"%c" % byte if 0x20 <= byte < 0x7F else b"\\x%02x" % byte for byte in data)
