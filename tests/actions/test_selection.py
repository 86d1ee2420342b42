"""Selection: names, ranges and filters become the numbers of the jobs that are meant."""

import pytest

from queuectl.actions.selection import Selection, numbers, span_of
from queuectl.errors import BadInput, NotFound
from queuectl.model.states import State
from queuectl.store.database import Database
from queuectl.store.jobs import Filter
from tests.store.rows import add_job


def chosen(db: Database, *names: str, wanted: Filter | None = None) -> list[int]:
    """Return the numbers that names and a filter mean."""
    return db.read(lambda tx: numbers(tx, Selection(names=names, wanted=wanted or Filter())))


@pytest.mark.parametrize(
    "names, wanted",
    [
        (("2",), [2]),
        (("named",), [3]),
        (("last",), [6]),
        (("2-4",), [2, 3, 4]),
        (("5-900",), [5, 6]),
        (("4-6", "1", "2-5", "named"), [1, 2, 3, 4, 5, 6]),
        (("0-1", "last"), [1, 6]),
        (("5-" + "9" * 30,), [5, 6]),
    ],
)
def test_names_and_ranges_mean_each_job_once(db: Database, names: tuple[str, ...], wanted: list[int]) -> None:
    for number in range(1, 7):
        add_job(db, given_id="named" if number == 3 else None)

    assert chosen(db, *names) == wanted


@pytest.mark.parametrize("names", [("7-9",), ("1", "99-100"), ("nope",), ("7",), ("9" * 30 + "-" + "9" * 31,)])
def test_a_name_or_range_that_no_job_has_is_not_found(db: Database, names: tuple[str, ...]) -> None:
    for _ in range(6):
        add_job(db)

    with pytest.raises(NotFound):
        chosen(db, *names)


def test_a_range_with_holes_means_the_jobs_that_are_there(db: Database) -> None:
    for _ in range(5):
        add_job(db)
    db.write(lambda tx: tx.changed("DELETE FROM jobs WHERE seq = 3"))

    assert chosen(db, "2-4") == [2, 4]


def test_a_filter_narrows_a_range_and_stands_alone(db: Database) -> None:
    for state in (State.DEAD, State.PENDING, State.DEAD, State.PENDING, State.DEAD):
        add_job(db, state)
    dead = Filter(states=(State.DEAD,))

    assert chosen(db, wanted=dead) == [1, 3, 5]
    assert chosen(db, "2-4", wanted=dead) == [3]
    assert chosen(db, "1-5", wanted=dead.replace(first=2, last=4)) == [3]
    assert chosen(db, "1-5", wanted=Filter(last=0)) == []


def test_a_range_that_ends_before_it_begins_is_refused_with_the_other_way_round() -> None:
    with pytest.raises(BadInput) as refused:
        span_of("9-3")

    assert "3-9" in refused.value.hint


@pytest.mark.parametrize("name", ["a-b", "3-", "-9", "3-9x", "3", "last", "3--9", "٣-٩"])
def test_what_is_not_two_numbers_is_no_range(name: str) -> None:
    assert span_of(name) is None
