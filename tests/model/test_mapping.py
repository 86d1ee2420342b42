"""Mapping: which jobs are made of which lists, and the numbers of an array."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model import mapping
from queuectl.model.array import Array, read_array
from queuectl.model.job import JobSpec
from queuectl.model.mapping import Source, check_source, combine, map_jobs, read_names
from queuectl.model.template import read_line, read_words


def _lists(*texts: str) -> list[Source]:
    """Lists of letters; one that begins with + is linked with the one before it."""
    return [Source(values=tuple(text.lstrip("+")), is_linked=text.startswith("+")) for text in texts]


def test_every_value_meets_every_other_and_the_last_list_varies_fastest() -> None:
    assert ["".join(row) for row in combine(_lists("ab", "xyz", "1"))] == ["ax1", "ay1", "az1", "bx1", "by1", "bz1"]


def test_linked_lists_go_side_by_side() -> None:
    assert ["".join(row) for row in combine(_lists("ab", "+xy", "12"))] == ["ax1", "ax2", "by1", "by2"]
    assert ["".join(row) for row in combine(_lists("12", "ab", "+xy"))] == ["1ax", "1by", "2ax", "2by"]


def test_an_empty_list_makes_no_jobs() -> None:
    assert combine(_lists("ab", "")) == []


def test_linked_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="list 2 has 3 values, and the one it is linked with 2"):
        combine(_lists("ab", "+xyz"))


def test_a_first_list_cannot_be_linked() -> None:
    with pytest.raises(BadInput, match="the first list has none before it"):
        combine(_lists("+ab"))


def test_too_many_jobs_are_refused_before_they_are_made() -> None:
    long = Source(values=("a",) * 100_000)

    with pytest.raises(
        BadInput, match="100000 x 100000 x 100000 values make 1000000000000000 jobs; the limit is 1000000"
    ):
        combine([long, long, long])


def test_commands_that_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MOST_CHARACTERS", 25)

    with pytest.raises(BadInput, match="the first 4 commands have more than 25 characters"):
        map_jobs(read_line("echo {}"), [("a",)] * 100, JobSpec())


def test_a_job_is_its_base_with_the_command_filled_in() -> None:
    made = map_jobs(read_line("echo {} {#}"), [("a b",), ("c",)], JobSpec(queue="q", cwd="/x"))

    assert made == [
        JobSpec(queue="q", cwd="/x", command="echo 'a b' '1'"),
        JobSpec(queue="q", cwd="/x", command="echo 'c' '2'"),
    ]


def test_an_id_with_the_number_gives_each_job_its_own() -> None:
    names = read_names({"id": "thumb-{#}", "unique": "thumb of {/}", "queue": "q"}, 1)

    made = map_jobs(read_words(["ls"]).for_lists(1), [("x/a b",), ("c",)], JobSpec(), names=names)

    assert [(one.given_id, one.unique_key, one.argv) for one in made] == [
        ("thumb-1", "thumb of a b", ("ls", "x/a b")),
        ("thumb-2", "thumb of c", ("ls", "c")),
    ]


@pytest.mark.parametrize("field", ["id", "unique"])
def test_a_name_of_one_job_cannot_be_that_of_all(field: str) -> None:
    with pytest.raises(BadInput, match=f"{field} 'thumb' would be that of every job") as refused:
        read_names({field: "thumb"}, 1)

    assert "thumb-{#}" in refused.value.hint


@pytest.mark.parametrize("given_id, why", [("{#}", "bad id '1'"), ("x{}", 'bad id "xa b"')])
def test_an_id_no_job_may_have_is_refused(given_id: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        map_jobs(read_line("ls {}"), [("a b",)], JobSpec(), names=read_names({"id": given_id}, 1))


def test_a_name_may_be_of_any_list_there_is() -> None:
    with pytest.raises(BadInput, match=r"\{2\} names list 2, but there is one list"):
        read_names({"id": "x-{2}"}, 1)


def test_an_index_is_a_variable_of_the_job_beside_its_own() -> None:
    [made] = map_jobs(read_line("ls"), [("5", "x")], JobSpec(env={"A": "b"}), has_index=True)

    assert made.env == {"A": "b", "QUEUECTL_ARRAY_INDEX": "5"}


def test_a_value_that_cannot_be_run_is_named_by_its_place() -> None:
    with pytest.raises(BadInput, match="value 2 of list 3 holds a NUL byte"):
        check_source(["a", "b\0"], "list 3")


@pytest.mark.parametrize(
    "text, numbers, at_once",
    [
        ("7", [7], None),
        ("1-4", [1, 2, 3, 4], None),
        ("1-10:3", [1, 4, 7, 10], None),
        ("1-9:5%2", [1, 6], 2),
        ("0-2,9,20-30:5", [0, 1, 2, 9, 20, 25, 30], None),
        (" 3, 1 %4", [3, 1], 4),
        ("1-3,2-4", [1, 2, 3, 4], None),
        ("5-5", [5], None),
    ],
)
def test_numbers_of_an_array_are_read_as_slurm_reads_them(text: str, numbers: list[int], at_once: int | None) -> None:
    assert read_array(text) == Array(numbers=tuple(numbers), at_once=at_once)


@pytest.mark.parametrize(
    "text, why",
    [
        ("", '"" is no number and no range'),
        ("1-", '"1-" is no number'),
        ("a", '"a" is no number'),
        ("-1", '"-1" is no number'),
        ("1-5:0", "a step of 0 goes nowhere"),
        ("5-1", "5-1 ends before it begins"),
        ("1-5%", 'how many at once, not "", goes behind'),
        ("1-5%0", 'how many at once, not "0"'),
        ("1-5%x", 'how many at once, not "x"'),
        ("1,,2", '"" is no number'),
        ("٣", "is no number"),
        ("1-5:2:3", "is no number"),
    ],
)
def test_an_array_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadInput, match="bad array") as refused:
        read_array(text)

    assert why in refused.value.message
    assert "1-100:2" in refused.value.hint


@pytest.mark.parametrize("text", ["1-1000001", "0-999999999", "1-600000,600001-1200000"])
def test_an_array_of_too_many_numbers_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="has more than 1000000 numbers"):
        read_array(text)


@given(st.text("0123456789-:,%", max_size=20))
def test_an_array_is_read_or_refused_in_time(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert read_array(text).numbers
