"""What of a command's output may reach a terminal: text and colours, and nothing that steers it."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.cli.terminal import TerminalFilter

ALLOWED = re.compile(r"(?:\x1b\[[0-9;:]*m|[\n\t\r\x08]|[^\x00-\x1f\x7f-\x9f])*")

PASSES = [
    b"plain text\n",
    b"tab\tcarriage\rback\x08space\n",
    b"\x1b[1;31mred\x1b[0m",
    b"\x1b[38;2;1;2;3mtrue colour\x1b[m",
    b"\x1b[4:3mcurly\x1b[0m",
    "café 漢字 🙂".encode(),
]

SPELT = [
    (b"\x1b]0;owned\x07", rb"\x1b]0;owned\x07"),
    (b"\x1b]52;c;aGk=\x1b\\", rb"\x1b]52;c;aGk=\x1b" + b"\\"),
    (b"\x1b]8;;http://x\x1b\\link", rb"\x1b]8;;http://x\x1b" + b"\\link"),
    (b"\x1b[2J\x1b[H", rb"\x1b[2J\x1b[H"),
    (b"\x1b[10A", rb"\x1b[10A"),
    (b"\x1b[?1049h", rb"\x1b[?1049h"),
    (b"\x1b[>4;2m", rb"\x1b[>4;2m"),
    (b"\x1b[6n\x1b[c", rb"\x1b[6n\x1b[c"),
    (b"\x1bP1$r\x1b\\", rb"\x1bP1$r\x1b" + b"\\"),
    (b"\x1bc", rb"\x1bc"),
    (b"\x1b[3\n1m", b"\\x1b[3\n1m"),
    (b"\x0e\x0f\x05\x07\x7f\x00\x0b\x0c", rb"\x0e\x0f\x05\x07\x7f\x00\x0b\x0c"),
    (b"\x9b2J", rb"\x9b2J"),
    ("\x9b2J".encode(), rb"\xc2\x9b2J"),
    ("\u202egnp.exe".encode(), rb"\xe2\x80\xaegnp.exe"),
    (b"\xff\xfe", rb"\xff\xfe"),
    (b"\xc3(", rb"\xc3("),
    (b"\xed\xa0\x80", rb"\xed\xa0\x80"),
    (b"\xe2\x82", rb"\xe2\x82"),
    (b"\x1b", rb"\x1b"),
    (b"\x1b[1", rb"\x1b[1"),
    (b"\x1b[" + b"1;" * 100 + b"m", rb"\x1b[" + b"1;" * 100 + b"m"),
]


def shown(*pieces: bytes) -> bytes:
    """Return what of some pieces a terminal gets."""
    cleaner = TerminalFilter()
    return b"".join(map(cleaner.feed, pieces)) + cleaner.end()


@pytest.mark.parametrize("data", PASSES)
def test_text_and_colours_pass_unchanged(data: bytes) -> None:
    assert shown(data) == data


@pytest.mark.parametrize("data, spelt", SPELT)
def test_what_steers_a_terminal_is_spelt_out(data: bytes, spelt: bytes) -> None:
    assert shown(data) == spelt


@pytest.mark.parametrize("data", [*PASSES, *(data for data, _ in SPELT)])
def test_it_makes_no_difference_where_the_input_is_cut(data: bytes) -> None:
    assert shown(*(data[at : at + 1] for at in range(len(data)))) == shown(data)


def test_what_can_be_shown_is_not_held_back() -> None:
    cleaner = TerminalFilter()

    assert cleaner.feed(b"Continue? [y/n] ") == b"Continue? [y/n] "
    assert cleaner.feed(b"\xc3") == b""
    assert cleaner.feed(b"\xa9\x1b[3") == "é".encode()
    assert cleaner.feed(b"1m!") == b"\x1b[31m!"


def test_a_colour_left_on_is_set_back_at_the_end() -> None:
    assert shown(b"\x1b[31mred") == b"\x1b[31mred\x1b[0m"
    assert shown(b"\x1b[31mred\x1b[0m") == b"\x1b[31mred\x1b[0m"


pieces_of_trouble = st.one_of(
    st.binary(max_size=8),
    st.text(max_size=4).map(str.encode),
    st.sampled_from(
        [b"\x1b", b"\x1b[", b"\x1b]", b"m", b"31", b";", b"\xc2", b"\x9b", b"\x07", b"\x1b[0m", b"\xe2\x80"]
    ),
)


@settings(max_examples=500, deadline=None)
@given(pieces=st.lists(pieces_of_trouble, max_size=20), cuts=st.lists(st.integers(0, 100), max_size=6))
def test_whatever_goes_in_only_text_and_colours_come_out(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    out = shown(*(data[start:end] for start, end in itertools.pairwise(edges)))

    assert ALLOWED.fullmatch(out.decode())
    assert out == shown(data)
