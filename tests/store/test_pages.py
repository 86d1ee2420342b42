"""Pages of jobs: in every order, forth and back, they give each job once and in the order of the whole list."""

import itertools

import pytest

from queuectl.errors import BadInput
from queuectl.model.states import FINAL, State
from queuectl.store import jobs
from queuectl.store.database import Database, Tx
from queuectl.store.jobs import Filter, Order
from queuectl.store.pages import Mark, page_of, read_mark
from tests.store.rows import NOW, add_job

FILTERS = (
    Filter(),
    Filter(states=(State.COMPLETED,)),
    Filter(states=(State.PENDING, State.DEAD)),
    Filter(queue="mail"),
    Filter(text="seven"),
    Filter(first=5, last=29),
)


def add_many(db: Database) -> None:
    """Add jobs of every state whose times, priorities and numbers come in different orders, many of them alike."""
    for number in range(36):
        state = list(State)[number % 8]
        add_job(
            db,
            state,
            queue="mail" if number % 3 else "default",
            priority=number * 5 % 4,
            command="seven" if number % 7 == 0 else "other",
            started_at=NOW + number * 11 % 5 if number % 2 else None,
            finished_at=NOW + number * 7 % 6 if state in FINAL else None,
        )


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("is_reversed", [False, True])
def test_pages_forth_and_back_are_the_list_cut_into_pieces(db: Database, order: Order, is_reversed: bool) -> None:
    add_many(db)

    def walk(tx: Tx) -> None:
        for wanted, size in itertools.product(FILTERS, (1, 4, 100)):
            whole = [job.seq for job in jobs.ordered(tx, wanted, order, 100, is_reversed=is_reversed)]
            page = page_of(tx, wanted, order, size, is_reversed=is_reversed)
            assert page.before is None
            forth = [page]
            while page.after is not None:
                page = page_of(tx, wanted, order, size, is_reversed=is_reversed, after=page.after)
                forth.append(page)
            back = [page]
            while page.before is not None:
                page = page_of(tx, wanted, order, size, is_reversed=is_reversed, before=page.before)
                back.append(page)

            assert [job.seq for each in forth for job in each.jobs] == whole
            assert [job.seq for each in reversed(back) for job in each.jobs] == whole
            assert all(len(each.jobs) == size for each in forth[:-1])

    db.read(walk)


def test_a_job_that_is_gone_leaves_its_place_to_go_on_from(db: Database) -> None:
    add_many(db)
    first = db.read(lambda tx: page_of(tx, Filter(), Order.FINISHED, 5))
    assert first.after is not None
    rest = db.read(lambda tx: page_of(tx, Filter(), Order.FINISHED, 100, after=first.after))

    db.write(lambda tx: tx.changed("DELETE FROM jobs WHERE seq = :seq", {"seq": first.jobs[-1].seq}))

    again = db.read(lambda tx: page_of(tx, Filter(), Order.FINISHED, 100, after=first.after))
    assert [job.seq for job in again.jobs] == [job.seq for job in rest.jobs]


def test_a_place_is_read_as_it_was_written() -> None:
    for mark in (Mark(seq=12, value=-3), Mark(seq=1, value=None), Mark(seq=10**17, value=10**17)):
        assert read_mark(mark.text) == mark


@pytest.mark.parametrize("text", ["", "x", "1.", ".1", "1.2.3", "9" * 30, "none", "\u0661.\u0662", "-1", "1.-2"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="bad cursor"):
        read_mark(text)


def test_a_page_of_nothing_has_no_neighbours(db: Database) -> None:
    page = db.read(lambda tx: page_of(tx, Filter(queue="none"), Order.ADDED, 5))

    assert (page.jobs, page.before, page.after) == ([], None, None)
