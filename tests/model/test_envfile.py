"""Files of variables: what each line means, and what is refused, by its line and without its value."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.envfile import read_env_file


@pytest.mark.parametrize(
    "text, value",
    [
        ("A=b", "b"),
        ("A=", ""),
        ("A=b c", "b c"),
        ("  A=b  ", "b"),
        ("A= b", "b"),
        ("A=b=c==", "b=c=="),
        ("export A=b", "b"),
        ("A=b # said aside", "b"),
        ("A=#nothing but a comment", ""),
        ("A=b#c", "b#c"),
        ("A=it's", "it's"),
        ('A={"k": "v"}', '{"k": "v"}'),
        ("A=$HOME/${B}`id`", "$HOME/${B}`id`"),
        (r"A=C:\dir\file", r"C:\dir\file"),
        ("A='b c'", "b c"),
        ("A='b' # said aside", "b"),
        ("A='b # c'", "b # c"),
        (r"A='b\n$c'", r"b\n$c"),
        ('A="b c"', "b c"),
        ('A=""', ""),
        (r'A="b\n\t\"c\"\\ \$d \e"', 'b\n\t"c"\\ $d \\e'),
        ('A="one\ntwo"', "one\ntwo"),
        ("A='one\ntwo'\nB=x", "one\ntwo"),
        ('A="one\\\ntwo"', "onetwo"),
        ("\ufeffA=b\r\n", "b"),
        ("A='b\r\nc'\r\n", "b\nc"),
        ("A=é", "é"),
        ("A=first\nA=b", "b"),
        ("# A=x\n\n \t\n  # A=y\nA=b\n\n", "b"),
    ],
)
def test_a_value_reads_as_its_writer_meant_it(text: str, value: str) -> None:
    assert read_env_file(text)["A"] == value


def test_lines_stay_in_order_and_apart() -> None:
    text = "A=1\n# comment\nexport B='two\nlines'\n\nC=\"3\"\n"

    assert list(read_env_file(text).items()) == [("A", "1"), ("B", "two\nlines"), ("C", "3")]


@pytest.mark.parametrize(
    "text, message",
    [
        ("A=1\nhunter2", "line 2 has no '='"),
        ("A = hunter2", "line 1 does not begin with the name of a variable"),
        ("1A=hunter2", "line 1 does not begin with the name of a variable"),
        ("=hunter2", "line 1 does not begin with the name of a variable"),
        ("A=1\n\nB='hunter2", "line 3 opens a quote that nothing closes"),
        ('A="hunter2\\"', "line 1 opens a quote that nothing closes"),
        ("A='x\ny'hunter2", "line 2 goes on behind its closing quote"),
        ("A='x'#hunter2", "line 1 goes on behind its closing quote"),
        ("A='x\ny'\nB=hunter2\\", "line 3 ends with a backslash"),
        ("A=hunter2\0", "line 1: the value of A holds a NUL"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line_and_never_shown(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_env_file(text)

    assert caught.value.message == message
    assert caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text(st.characters(exclude_characters="\0\r'"))
    )
)
def test_whatever_stands_in_single_quotes_comes_back(variables: dict[str, str]) -> None:
    text = "".join(f"{name}='{value}'\n" for name, value in variables.items())

    assert read_env_file(text) == variables


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadInput):
        read_env_file(text)
