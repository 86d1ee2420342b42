"""Masking of values in a stream: nothing of them is left, however the stream is cut, and little is held back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queuectl.system.masking import LINE_BYTES, Mask

LETTERS = b"ab*\n\r#"
VALUE = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=8).map(bytes)
TEXT = st.lists(st.one_of(st.sampled_from([bytes([each]) for each in LETTERS]), VALUE), max_size=30).map(b"".join)


def masked(values: list[bytes], *pieces: bytes) -> bytes:
    """Return what a mask makes of a stream that comes in pieces."""
    mask = Mask(values)
    return b"".join([*[mask.feed(piece) for piece in pieces], mask.end()])


def hidden(value: bytes) -> set[bytes]:
    """Return all that must not be left of a value."""
    lines = [line.removesuffix(b"\r") for line in value.split(b"\n")]
    return {value, *(line for line in lines if len(lines) > 1 and len(line) >= LINE_BYTES)}


class TestValues:
    """What is hidden."""

    @pytest.mark.parametrize(
        "text, shown",
        [
            (b"hunter2", b"***"),
            (b"a hunter2 b hunter2", b"a *** b ***"),
            (b"hunter2hunter2", b"******"),
            (b"hunterhunter2", b"hunter***"),
            (b"Hunter2 hunter 2", b"Hunter2 hunter 2"),
            (b"", b""),
        ],
    )
    def test_each_occurrence_is_hidden_and_nothing_else(self, text: bytes, shown: bytes) -> None:
        assert masked([b"hunter2"], text) == shown

    def test_of_values_that_begin_alike_the_longest_is_hidden(self) -> None:
        assert masked([b"key", b"keystone"], b"key keystone keys") == b"*** *** ***s"

    def test_values_that_overlap_leave_nothing_of_each_other(self) -> None:
        assert masked([b"ab", b"bcdef"], b"<abcdef>") == b"<***>"

    def test_a_value_that_overlaps_itself_leaves_nothing(self) -> None:
        assert masked([b"abab"], b"<abababab>") == b"<***>"

    def test_a_value_of_several_lines_is_hidden_whole_and_line_by_line(self) -> None:
        value = b"-----BEGIN\nabcdefgh\n}\n-----END"

        assert masked([value], value) == b"***"
        assert masked([value], b"key: abcdefgh, }") == b"key: ***, }"

    def test_a_value_of_several_lines_is_hidden_as_a_terminal_prints_it(self) -> None:
        assert masked([b"a1\nb2\n"], b"<a1\r\nb2\r\n>") == b"<***>"
        assert masked([b"a1\r\nb2"], b"<a1\nb2>") == b"<***>"

    @pytest.mark.parametrize("value", [b"*", b"a*", b"*a", b"a***b"])
    def test_a_value_that_stars_might_look_like_is_hidden_by_another_sign(self, value: bytes) -> None:
        shown = masked([value, b"secret"], b"a" + b"secret" + b"b" + value + b"a")

        assert shown == b"a###b###a"

    def test_a_value_with_a_star_in_it_is_hidden_by_stars(self) -> None:
        assert masked([b"p*ss"], b"pp*ssss") == b"p***ss"

    def test_when_no_sign_is_left_bytes_are_that_no_value_holds(self) -> None:
        values = [bytes([code]) for code in range(1, 256)]

        assert masked(values, b"secret") == b"\0\0\0" * 6

    def test_without_values_everything_passes(self) -> None:
        assert masked([], b"a", b"b") == b"ab"


class TestPieces:
    """A stream that comes in pieces."""

    def test_a_value_that_comes_byte_by_byte_is_hidden(self) -> None:
        text = b"<hunter2>"

        assert masked([b"hunter2"], *[text[at : at + 1] for at in range(len(text))]) == b"<***>"

    def test_only_what_may_become_a_value_is_held_back(self) -> None:
        mask = Mask([b"hunter2"])

        assert mask.feed(b"Password: ") == b"Password: "
        assert mask.feed(b"the hunt") == b"the "
        assert mask.feed(b"s") == b"hunts"

    def test_a_value_is_shown_as_hidden_as_soon_as_it_is_over(self) -> None:
        assert Mask([b"hunter2"]).feed(b"x hunter2") == b"x ***"

    def test_what_has_only_begun_at_the_end_is_not_a_value(self) -> None:
        assert masked([b"hunter2"], b"the hunt") == b"the hunt"

    def test_a_long_chain_of_overlaps_is_not_held_back(self) -> None:
        mask = Mask([b"aa"])

        shown = [mask.feed(b"a" * 1000) for _ in range(100)]

        assert b"".join([*shown, mask.feed(b"b"), mask.end()]) == b"***b"
        assert len(mask._held) <= 1

    @given(st.lists(VALUE, max_size=4), st.lists(TEXT, max_size=8))
    @example([b"ab", b"ba"], [b"a", b"b", b"a"])
    @example([b"aab", b"a"], [b"a", b"a", b"a"])
    def test_any_pieces_give_what_the_whole_gives(self, values: list[bytes], pieces: list[bytes]) -> None:
        assert masked(values, *pieces) == masked(values, b"".join(pieces))

    @given(st.lists(VALUE, min_size=1, max_size=4), TEXT)
    def test_the_whole_is_what_looking_at_each_byte_gives(self, values: list[bytes], text: bytes) -> None:
        mask = Mask(values)

        assert mask.feed(text) + mask.end() == by_hand(mask._patterns, mask._sign, text)

    @given(st.lists(VALUE, min_size=1, max_size=4), st.lists(TEXT, max_size=8))
    @example([b"a*"], [b"aa*", b"*"])
    def test_no_value_is_left(self, values: list[bytes], pieces: list[bytes]) -> None:
        shown = masked(values, *pieces)

        assert not [each for value in values for each in hidden(value) if each in shown]

    @given(st.lists(VALUE, min_size=1, max_size=4), st.lists(TEXT, max_size=8))
    def test_what_is_held_back_may_always_become_a_value(self, values: list[bytes], pieces: list[bytes]) -> None:
        mask = Mask(values)
        for piece in pieces:
            mask.feed(piece)

            assert not mask._held or any(each.startswith(mask._held) for each in mask._patterns)
            assert mask._held not in mask._patterns or any(
                len(each) > len(mask._held) and each.startswith(mask._held) for each in mask._patterns
            )


def by_hand(patterns: list[bytes], sign: bytes, text: bytes) -> bytes:
    """Hide in the slowest and plainest way: each place looked at for each pattern, what overlaps made one."""
    shown = b""
    until = at = 0
    while at < len(text):
        longest = max((len(each) for each in patterns if text.startswith(each, at)), default=0)
        if longest and at >= until:
            shown += sign
        until = max(until, at + longest) if longest else until
        if at >= until:
            shown += text[at : at + 1]
        at += 1
    return shown
