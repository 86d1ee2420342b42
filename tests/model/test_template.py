"""Templates: what each replacement string stands for, as GNU parallel has it."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.template import check_value, read_line, read_words

MARKS = ("{}", "{.}", "{/}", "{//}", "{/.}")
NUMBERED_MARKS = ("{#}", "{1}", "{1.}", "{1/}", "{1//}", "{1/.}", "{-1}")
# No newlines: GNU parallel reads a name with one as two unless told otherwise, and then takes its lines for paths.
paths = st.text(st.sampled_from("ab./ é-~") | st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=12)


@pytest.mark.parametrize(
    "value, parts",
    [
        ("a/b.c.d", ["a/b.c.d", "a/b.c", "b.c.d", "a", "b.c"]),
        ("a.b/c", ["a.b/c", "a.b/c", "c", "a.b", "c"]),
        ("my picture.jpg", ["my picture.jpg", "my picture", "my picture.jpg", ".", "my picture"]),
        ("/a.x", ["/a.x", "/a", "a.x", "/", "a"]),
        ("/", ["/", "/", "", "/", ""]),
        ("a/", ["a/", "a/", "", ".", ""]),
        ("a/b//", ["a/b//", "a/b//", "", "a", ""]),
        ("//a//b", ["//a//b", "//a//b", "b", "//a", "b"]),
        (".bashrc", [".bashrc", "", ".bashrc", ".", ""]),
        ("..", ["..", ".", "..", ".", "."]),
        ("", ["", "", "", ".", ""]),
        ("a\nb/c\nd.e", ["a\nb/c\nd.e", "a\nb/c\nd", "c\nd.e", "a\nb", "c\nd"]),
    ],
)
def test_a_replacement_string_stands_for_a_part_of_the_value(value: str, parts: list[str]) -> None:
    template = read_words(["echo", *(f"[{mark}]" for mark in MARKS)])

    assert template.argv([value], 1) == ("echo", *(f"[{part}]" for part in parts))


@pytest.mark.needs("parallel")
@settings(max_examples=10, deadline=None)
@given(st.lists(paths, min_size=1, max_size=40))
def test_replacement_strings_are_those_of_gnu_parallel(values: list[str]) -> None:
    marks = [*MARKS, *NUMBERED_MARKS]
    template = read_words(["echo", *marks])

    ours = [[*template.argv([value], number)[1:]] for number, value in enumerate(values, start=1)]

    assert ours == _as_parallel_has_it(values, marks)


def _as_parallel_has_it(values: list[str], marks: list[str]) -> list[list[str]]:
    """Return what GNU parallel makes of each mark, for each value."""
    done = subprocess.run(
        ["parallel", "--will-cite", "--plain", "-0", "-k", "-j1", "printf", r"'%s\0'", *marks, ";", "echo"],
        input="\0".join([*values, ""]).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return [line.decode().split("\0")[:-1] for line in done.stdout.split(b"\n")[:-1]]


@pytest.mark.parametrize(
    "line, command",
    [
        ("echo {1} {2}", "echo 'a/b.c' 'x'"),
        ("echo {2} {1.} {1/} {1//} {1/.} {#}", "echo 'x' 'a/b' 'b.c' 'a' 'b' '7'"),
        ("echo {-1} {-2/}", "echo 'x' 'b.c'"),
        ("echo {}", "echo 'a/b.c' 'x'"),
        ("echo {/}", "echo 'b.c' 'x'"),
        ('echo "{}"', "echo 'a/b.c x'"),
        ("echo", "echo 'a/b.c' 'x'"),
        ("awk '{print $1}'", "awk '{print $1}' 'a/b.c' 'x'"),
        ("echo {#}", "echo '7'"),
        ("echo {1}{2}", "echo 'a/b.c''x'"),
        ("echo {{1}}", "echo {'a/b.c'}"),
    ],
)
def test_several_lists_are_told_apart_by_number(line: str, command: str) -> None:
    assert read_line(line).for_lists(2).command(["a/b.c", "x"], 7) == command


@pytest.mark.parametrize(
    "text",
    ["{print $1}", "{..}", "{%}", "{0}", "{01}", "{+1}", "{1 }", "{a}", "{1.1}", "{/1}", "{.", "{ }", "{##}", "{a,b}"],
)
def test_what_only_looks_like_a_replacement_string_stays(text: str) -> None:
    assert read_line(f"echo '{text}' {{}}").command(["v"], 1) == f"echo '{text}' 'v'"


def test_a_list_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match=r"\{3\} names list 3, but there is one list") as refused:
        read_line("grep -E 'x{3}' {}").for_lists(1)

    assert "{''3}" in refused.value.hint


def test_another_replacement_string_leaves_braces_alone() -> None:
    template = read_line("echo ,, {} {.}", ",,")

    assert template.command(["a.b"], 1) == "echo 'a.b' {} 'a'"


@pytest.mark.parametrize("mark", ["", " ", "'", '"', "\\", "$x", "a b", "(", ";"])
def test_a_replacement_string_the_shell_would_read_is_refused(mark: str) -> None:
    with pytest.raises(BadInput, match="bad replacement string"):
        read_line("echo x", mark)


@pytest.mark.parametrize(
    "line", ["echo hi # why", "echo hi;", "echo hi &", "cat <<E\nx\nE\n", "echo hi\\", "true |", "make >&", "x["]
)
def test_a_line_that_takes_no_word_at_its_end_is_refused(line: str) -> None:
    with pytest.raises(BadInput, match="no value can be put behind the command") as refused:
        read_line(line).for_lists(1)

    assert refused.value.hint == "say where with {}"


def test_a_value_may_follow_a_copied_output() -> None:
    assert read_line("make 2>&1").for_lists(1).command(["a"], 1) == "make 2>&1 'a'"


@pytest.mark.parametrize("line, mark", [("ls {} {}", "{}"), ("ls {1.}", "{1.}"), ("ls ,,", ",,"), ("ls", "{}")])
def test_a_slot_knows_how_it_was_written(line: str, mark: str) -> None:
    template = read_line(line, ",," if ",," in line else "{}").for_lists(1)

    assert {slot.text for slot in template.slots} == {mark}


def test_values_of_an_argument_vector_are_not_quoted() -> None:
    template = read_words(["convert", "{}", "out {.}.png", "-{1}-{2}-"]).for_lists(2)

    assert template.argv(["a b.c", "$(id)"], 1) == ("convert", "a b.c", "$(id)", "out a b $(id).png", "-a b.c-$(id)-")


def test_an_argument_vector_without_a_replacement_string_gets_the_values_as_words() -> None:
    assert read_words(["ls", "-l"]).for_lists(2).argv(["a b", "c"], 1) == ("ls", "-l", "a b", "c")


def test_a_silent_list_is_not_put_at_the_end() -> None:
    assert read_line("./step").for_lists(1, silent=1).command(["5"], 1) == "./step"
    assert read_line("./step").for_lists(2, silent=1).command(["5", "x"], 1) == "./step 'x'"


def test_a_program_without_a_name_is_refused() -> None:
    with pytest.raises(BadInput, match="command 4: the program name is empty"):
        read_words(["{}", "x"]).argv([""], 4)


@pytest.mark.parametrize("long", [("x" * 600_000) + " {} {}", "{} {}"])
def test_a_command_that_grows_too_long_is_refused(long: str) -> None:
    with pytest.raises(BadInput, match=r"command 2 has .* bytes; the limit is"):
        read_line(long).command(["y" * 600_000], 2)


def test_a_word_that_grows_too_long_is_refused() -> None:
    with pytest.raises(BadInput, match=r"a word of command 2 has .* bytes"):
        read_words(["echo", "{}{}"]).argv(["y" * 100_000], 2)


def test_a_value_that_is_no_utf8_is_refused_and_shown() -> None:
    with pytest.raises(BadInput, match=r'value 2 is not valid UTF-8: "caf\\\\xe9"'):
        check_value(b"caf\xe9".decode(errors="surrogateescape"), "value 2")


@pytest.mark.parametrize("value, why", [("a\0b", "value 2 holds a NUL byte"), (5, "value 2 must be text, not 5")])
def test_a_value_no_command_can_carry_is_refused(value: object, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        check_value(value, "value 2")
