"""Pages of jobs: in every order, with every filter, page after page they are the whole list, and nothing twice."""

import random
from functools import partial

import pytest

from queuectl.model.job import Job
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.store import jobs, listing, queues
from queuectl.store.database import Database, Tx
from queuectl.store.jobs import Filter
from queuectl.store.listing import Key, Order, Sorting

COUNT = 300
FILTERS = (
    Filter(),
    Filter(states=(State.DEAD,)),
    Filter(states=(State.PENDING, State.COMPLETED)),
    Filter(queue="mail"),
    Filter(tags=("red",)),
    Filter(text="7"),
    Filter(queue="mail", states=(State.COMPLETED, State.FAILED), text="1"),
    Filter(first=20, last=90),
)


@pytest.fixture
def mixed(db: Database) -> Database:
    """A store with jobs of every kind whose times and priorities meet and miss each other."""
    chance = random.Random(7)

    def add(tx: Tx) -> None:
        lanes = {queue: queues.lane_of(tx, queue, "") for queue in ("default", "mail")}
        rows = []
        for number in range(COUNT):
            state = chance.choice([each for each in State if each is not State.PROCESSING])
            queue = chance.choice(list(lanes))
            run_at = 50 if state in WAITING_FOR_TIME else None
            started = chance.choice([None, chance.randrange(1, 20)])
            finished = chance.randrange(10, 30) if state in FINAL else None
            priority = chance.choice([0, 0, 0, chance.randrange(-3, 4)])
            tags = '["red"]' if chance.random() < 0.2 else None
            command = f"echo {number}"
            rows.append((state.value, queue, lanes[queue], priority, 3, 1, 1, started, finished, command, tags, run_at))
        columns = (
            "state queue lane_id priority max_retries created_at updated_at started_at finished_at command tags run_at"
        )
        tx.insert_many("jobs", columns.split(), rows)

    db.write(add)
    return db


@pytest.mark.parametrize("few", [0, 4000], ids=["walked", "few"])
@pytest.mark.parametrize("is_reversed", [False, True], ids=["", "reversed"])
@pytest.mark.parametrize("order", list(Order))
def test_pages_are_the_whole_list_in_order_and_no_job_comes_twice(
    mixed: Database, order: Order, is_reversed: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    sorting = Sorting(order=order, is_reversed=is_reversed)
    everything = mixed.read(lambda tx: jobs.page(tx, Filter(), 0, COUNT))
    everything.sort(key=lambda job: sorting.place(sorting.key_of(job)))

    for wanted in FILTERS:
        matching = set(mixed.read(partial(_matching, wanted)))
        expected = [job.seq for job in everything if job.seq in matching]
        assert _walk(mixed, [wanted], sorting) == expected, wanted
        assert _walk_back(mixed, [wanted], sorting, expected) == expected[:-1], wanted
    parts = [Filter(first=1, last=9), Filter(first=50, last=50), Filter(first=100, last=220)]
    chosen = {seq for part in parts for seq in range(part.first or 0, (part.last or 0) + 1)}
    assert _walk(mixed, parts, sorting) == [job.seq for job in everything if job.seq in chosen]


def test_those_without_a_time_come_last_either_way_and_of_one_priority_the_first_to_run_is_first(
    mixed: Database,
) -> None:
    for is_reversed in (False, True):
        started = mixed.read(
            partial(_page, [Filter()], Sorting(order=Order.STARTED, is_reversed=is_reversed), 999, None)
        )
        assert [job.started_at is None for job in started] == sorted(job.started_at is None for job in started)
    highest = mixed.read(partial(_page, [Filter()], Sorting(order=Order.PRIORITY), 999, None))
    assert [(-job.priority, job.seq) for job in highest] == sorted((-job.priority, job.seq) for job in highest)


def _page(parts: list[Filter], sorting: Sorting, limit: int, after: Key | None, tx: Tx) -> list[Job]:
    return listing.page(tx, parts, sorting, limit, after)


def _matching(wanted: Filter, tx: Tx) -> list[int]:
    return jobs.seqs_matching(tx, wanted, 0, COUNT)


def _walk(database: Database, parts: list[Filter], sorting: Sorting) -> list[int]:
    found: list[int] = []
    after: Key | None = None
    while True:
        page = database.read(partial(_page, parts, sorting, 17, after))
        found += [job.seq for job in page]
        if len(page) < 17:
            return found
        after = sorting.key_of(page[-1])


def _walk_back(database: Database, parts: list[Filter], sorting: Sorting, order: list[int]) -> list[int]:
    """Go from the last job of an order to its first, a page at a time."""
    found: list[int] = []
    last = database.read(lambda tx: jobs.get(tx, order[-1])) if order else None
    while last is not None:
        page = database.read(partial(_page_before, parts, sorting, sorting.key_of(last)))
        found = [job.seq for job in page] + found
        last = page[0] if len(page) == 17 else None
    return found


def _page_before(parts: list[Filter], sorting: Sorting, before: Key, tx: Tx) -> list[Job]:
    return listing.page_before(tx, parts, sorting, 17, before)
