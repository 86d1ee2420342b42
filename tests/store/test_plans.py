"""What the planners do with the statements of the hot path while history, future and paused jobs are there."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from benchmarks.bareworker import BareWorker
from queuectl.actions.connect import Target, connect, locate
from queuectl.model.states import FINAL, State
from queuectl.store import (
    audit,
    claims,
    deadlines,
    jobs,
    limits,
    listing,
    moves,
    offers,
    overview,
    plain_claims,
    removing,
    workers,
)
from queuectl.store.database import Database, Tx
from queuectl.store.jobs import listed
from queuectl.store.lanes import all_lanes
from queuectl.store.listing import Order, Sorting
from queuectl.store.outset import outset, question
from queuectl.store.postgres import PostgresDialect
from queuectl.store.takers import Taker
from tests.store.rows import add_history, add_job, add_worker
from tests.store.templates import Templates

if TYPE_CHECKING:
    from queuectl.store.dialect import Params, Row

NONE: "Params" = {}
EXPLAINED = ("jobs", "attempts", "audit", "edges", "unique_keys")
# Reading a whole table, or an index that holds every job. Partial indexes are read whole only where they are counted.
_WALKS = re.compile(r"Seq Scan on jobs|jobs_pkey|SCAN jobs(?! USING (COVERING )?INDEX)|ROWID SEARCH|USING INTEGER")
_CHILD = re.compile(r"Index Scan using jobs_pkey on jobs child|SEARCH child USING INTEGER PRIMARY KEY \(rowid=\?\)")
_SORTS = re.compile(r"Sort Key|USE TEMP B-TREE")


class Explained(Tx):
    """A transaction that notes the plan of each statement about some tables before running it."""

    def __init__(self, tx: Tx) -> None:
        super().__init__(tx.dialect, tx.now)
        self.plans: list[str] = []

    def rows(self, sql: str, params: "Params" = NONE) -> "list[Row]":
        """Explain and run."""
        self._explain(sql, params)
        return super().rows(sql, params)

    def row(self, sql: str, params: "Params" = NONE) -> "Row | None":
        """Explain and run."""
        self._explain(sql, params)
        return super().row(sql, params)

    def changed(self, sql: str, params: "Params" = NONE) -> int:
        """Explain and run."""
        self._explain(sql, params)
        return super().changed(sql, params)

    def _explain(self, sql: str, params: "Params") -> None:
        if not any(table in sql for table in EXPLAINED) or "INSERT INTO" in sql:
            return
        if isinstance(self.dialect, PostgresDialect):
            self.plans += [_text(self.dialect.rows(f"EXPLAIN {sql}", params)), _generic_plan(self.dialect, sql, params)]
        else:
            self.plans.append(_text(self.dialect.rows(f"EXPLAIN QUERY PLAN {sql}", params)))


@pytest.fixture
def crowded(target: Target, templates: Templates) -> Iterator[Database]:
    """A store with 20,000 completed, 20,000 future and 20,000 paused jobs, and a worker."""
    templates.copy_to(target, fill)
    with closing(connect(target)) as database:
        yield database


def fill(db: Database) -> None:
    """Add what a crowded store has."""
    add_history(db)
    add_worker(db)


def test_the_claim_of_one_lane_reads_its_head_from_the_index_of_ready_jobs(crowded: Database) -> None:
    add_job(crowded)

    plans = plans_of(crowded, lambda tx: claims.claim(tx, Taker(worker_id="w1", queues=("default",)), 1))

    head, *_ = plans
    assert "jobs_ready" in head
    assert_nothing_sorted(plans[:1])
    assert all("Seq Scan on jobs" not in plan and "SCAN jobs" not in plan for plan in plans)


@pytest.mark.parametrize("wanted", [1, 8, 200])
@pytest.mark.parametrize("known", [0, 1, 20])
@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_claim_whose_plan_was_made_for_a_short_queue_takes_its_rows_by_their_numbers(
    target: Target, known: int, wanted: int
) -> None:
    with closing(connect(target, is_patient=False)) as db:
        add_worker(db)
        for _ in range(known):
            add_job(db)
        db.dialect.script("ANALYZE")
        add_job(db)

        plans = plans_of(db, lambda tx: claims.claim(tx, Taker(worker_id="w1"), wanted))

    for plan in plans:
        assert plan.count("jobs_ready") == 1, plan
        assert re.search(r"jobs_pkey.*\n\s*Index Cond: \(seq = ANY", plan), plan
        assert "Seq Scan on jobs" not in plan, plan


def test_what_a_worker_learns_at_the_beginning_of_a_turn_reads_one_entry_of_the_index_of_times(
    crowded: Database,
) -> None:
    plans = plans_of(crowded, lambda tx: outset(tx, "w1"))
    if (asked := question(crowded.dialect, "w1")) is not None:
        plans += plans_of(crowded, lambda tx: tx.rows(asked.sql.replace("$1", "'w1'")))

    assert_pinned(plans, "jobs_due")
    assert_nothing_sorted(plans)


@pytest.mark.parametrize("count", [1, 3])
def test_the_claim_moves_the_rows_it_found_by_their_numbers(crowded: Database, count: int) -> None:
    names, seqs = listed("seq", [add_job(crowded).seq for _ in range(count)])
    params = {**seqs, "worker_id": "w1", "now": 1}

    plans = plans_of(crowded, lambda tx: tx.changed(plain_claims._start_sql(names), params))

    assert all("Seq Scan" not in plan and "SCAN" not in plan for plan in plans)


def test_the_claim_of_several_lanes_reads_each_head_from_the_index_of_ready_jobs(crowded: Database) -> None:
    ids = [add_job(crowded, queue=name).lane_id for name in ("a", "b", "c")]
    lanes = [lane for lane in crowded.read(all_lanes) if lane.id in ids]

    plans = plans_of(crowded, lambda tx: claims._shares(tx, lanes, 2, None))

    for plan in plans:
        assert plan.count("jobs_ready") >= 3
        assert_walks_nothing(plan)


def test_the_due_query_reads_the_first_rows_of_the_index_of_times(crowded: Database) -> None:
    plans = plans_of(crowded, moves.make_due)

    assert_pinned(plans, "jobs_due")
    assert_nothing_sorted(plans)


def test_due_jobs_are_moved_by_their_numbers(crowded: Database) -> None:
    for _ in range(3):
        add_job(crowded, State.FAILED, run_at=1)

    _, *moved = plans_of(crowded, moves.make_due)[-2:]

    assert "Seq Scan" not in moved[-1]
    assert "SCAN" not in moved[-1]


def test_the_next_time_is_the_first_row_of_the_index_of_times(crowded: Database) -> None:
    plans = plans_of(crowded, jobs.next_run_at)

    assert_pinned(plans, "jobs_due")
    assert_nothing_sorted(plans)


@pytest.mark.parametrize("overdue", [0, 3])
def test_what_is_past_its_deadline_is_the_beginning_of_the_index_of_deadlines(crowded: Database, overdue: int) -> None:
    for place in range(overdue):
        add_job(crowded, deadline_ms=1, deadline_at=1 + place)
    moved = "Update on jobs|SEARCH jobs USING INTEGER PRIMARY KEY"

    plans = plans_of(crowded, lambda tx: [deadlines.has_overdue(tx), deadlines.expire_overdue(tx, 200)])

    found = [plan for plan in plans if not re.search(moved, plan)]
    assert_pinned(found, "jobs_deadline")
    assert_nothing_sorted(found)
    assert all("Seq Scan" not in plan and "SCAN jobs" not in plan for plan in plans if plan not in found)


def test_cancel_requests_are_read_from_the_index_of_running_jobs(crowded: Database) -> None:
    add_job(crowded, State.PROCESSING, cancel_requested=1)

    assert_pinned(plans_of(crowded, lambda tx: claims.cancel_requests(tx, "w1")), "jobs_running")


def test_what_a_worker_holds_is_read_from_the_index_of_running_jobs(crowded: Database) -> None:
    assert_pinned(plans_of(crowded, lambda tx: claims.held_by(tx, "w1")), "jobs_running")


def test_jobs_without_a_living_worker_are_looked_for_among_running_jobs(crowded: Database) -> None:
    assert_pinned(plans_of(crowded, claims.orphans), "jobs_running")


@pytest.mark.parametrize("others", [(), ("a", "b")])
def test_whether_work_is_left_is_read_from_the_indexes_of_unfinished_jobs(
    crowded: Database, others: tuple[str, ...]
) -> None:
    for name in others:
        add_job(crowded, State.COMPLETED, queue=name)

    plans = plans_of(
        crowded, lambda tx: jobs.has_unfinished(tx, [lane.id for lane in all_lanes(tx) if lane.paused_at is None])
    )

    for name in ("jobs_ready", "jobs_running", "jobs_due"):
        assert_pinned([plan for plan in plans if name in plan], name)
    assert all(any(name in plan for plan in plans) for name in ("jobs_ready", "jobs_running", "jobs_due"))
    for plan in plans:
        assert_walks_nothing(plan)


def test_counts_are_read_from_the_partial_indexes_alone(crowded: Database) -> None:
    plans = plans_of(crowded, jobs.counts)

    for name in ("jobs_ready", "jobs_due", "jobs_blocked", "jobs_running", "jobs_finished"):
        assert_pinned(plans, name)


def test_counts_of_a_few_lanes_sort_and_hash_no_job(crowded: Database) -> None:
    plans = plans_of(crowded, jobs.counts)

    assert_nothing_sorted(plans)
    assert all("HashAggregate" not in plan and "GroupAggregate" not in plan for plan in plans), plans


def test_counts_of_many_lanes_are_read_from_the_partial_indexes_alone(
    crowded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FEW_LANES", 0)

    plans = plans_of(crowded, jobs.counts)

    for name in ("jobs_ready", "jobs_due", "jobs_blocked", "jobs_running", "jobs_finished"):
        assert_pinned(plans, name)


def test_the_newest_dead_jobs_are_found_in_the_index_of_finished_jobs(crowded: Database) -> None:
    plans = plans_of(crowded, lambda tx: jobs.newest(tx, jobs.Filter(states=(State.DEAD,)), 50))

    assert_pinned(plans, "jobs_finished")


@pytest.mark.parametrize("state", [State.PROCESSING, State.BLOCKED, State.FAILED, State.PENDING])
def test_the_newest_jobs_of_a_state_are_found_in_the_index_of_that_state(crowded: Database, state: State) -> None:
    names = {State.PROCESSING: "running", State.BLOCKED: "blocked", State.FAILED: "due", State.PENDING: "ready"}

    plans = plans_of(crowded, lambda tx: jobs.newest(tx, jobs.Filter(states=(state,)), 50))

    assert_pinned(plans[:1], f"jobs_{names[state]}")


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_portion_of_old_jobs_is_the_first_of_the_index_of_finished_jobs(crowded: Database, state: State) -> None:
    plans = plans_of(crowded, lambda tx: removing.finished_before(tx, state, 10_000, 500))

    assert_pinned(without_children(plans), "jobs_finished")
    assert_nothing_sorted(plans)


@pytest.mark.parametrize("before", [1, 10_000])
def test_old_jobs_are_counted_in_the_index_of_finished_jobs(crowded: Database, before: int) -> None:
    plans = plans_of(crowded, lambda tx: removing.count_finished_before(tx, State.DEAD, before))

    assert_pinned(without_children(plans), "jobs_finished")


def test_whether_a_running_job_names_a_worker_is_read_from_the_index_of_running_jobs(crowded: Database) -> None:
    plans = plans_of(crowded, lambda tx: workers.prune(tx, 1, 500))

    assert_pinned(plans[:1], "jobs_running")


def test_which_jobs_of_a_log_folder_are_there_is_read_by_their_numbers(crowded: Database) -> None:
    plans = plans_of(crowded, lambda tx: [jobs.seqs_between(tx, 1000, 1999), jobs.has_beyond(tx, 1999)])

    assert all("jobs_pkey" in plan or "SEARCH jobs USING INTEGER PRIMARY KEY" in plan for plan in plans), plans


def test_the_newest_completed_jobs_are_found_by_walking_back_and_not_by_sorting_history(crowded: Database) -> None:
    crowd = [add_job(crowded, State.COMPLETED) for _ in range(5)]

    plans = plans_of(crowded, lambda tx: jobs.newest(tx, jobs.Filter(states=(State.COMPLETED,)), 5))
    found = crowded.read(lambda tx: jobs.newest(tx, jobs.Filter(states=(State.COMPLETED,)), 5))

    assert [job.seq for job in found] == [job.seq for job in reversed(crowd)]
    assert not any("jobs_finished" in plan for plan in plans)
    assert_nothing_sorted([plan for plan in plans if "seq" in plan or "ROWID" in plan][:1])


def test_completed_jobs_further_back_are_found_all_the_same(crowded: Database) -> None:
    wanted = jobs.Filter(states=(State.COMPLETED,))

    found = crowded.read(lambda tx: jobs.newest(tx, wanted, 3))

    assert [job.seq for job in found] == [20_000, 19_999, 19_998]
    before = crowded.read(lambda tx: jobs.newest(tx, wanted.replace(last=10), 3))
    assert [job.seq for job in before] == [10, 9, 8]


def test_a_page_of_older_jobs_is_read_by_number(crowded: Database) -> None:
    plans = plans_of(crowded, lambda tx: jobs.newest(tx, jobs.Filter(last=30_000), 50))

    assert_nothing_sorted(plans[:1])
    assert all("jobs_pkey" in plan or "USING INTEGER PRIMARY KEY" in plan for plan in plans)


def test_matching_jobs_of_a_state_and_queue_are_counted_from_the_partial_indexes_alone(crowded: Database) -> None:
    wanted = jobs.Filter(states=(State.COMPLETED, State.PENDING), queue="default")

    plans = plans_of(crowded, lambda tx: jobs.count_matching(tx, wanted))

    assert_pinned(plans, "jobs_finished")
    assert crowded.read(lambda tx: jobs.count_matching(tx, wanted)) == 20_000


@pytest.mark.parametrize("state", [State.PENDING, State.FAILED, State.DEAD, State.BLOCKED])
def test_what_an_act_on_a_state_is_for_is_read_from_the_index_of_that_state(crowded: Database, state: State) -> None:
    wanted = jobs.Filter(states=(state,), queue="default")

    for plan in plans_of(crowded, lambda tx: jobs.states_of(tx, wanted)):
        assert_walks_nothing(plan)


@pytest.mark.parametrize(
    "wanted", [jobs.Filter(), jobs.Filter(states=(State.COMPLETED,)), jobs.Filter(states=(State.DEAD, State.FAILED))]
)
def test_a_page_of_a_walk_over_all_jobs_goes_on_by_number_and_sorts_nothing(
    crowded: Database, wanted: jobs.Filter
) -> None:
    plans = plans_of(crowded, lambda tx: jobs.page(tx, wanted, 40_000, 200))

    assert_nothing_sorted(plans)
    for plan in plans:
        assert re.search(r"Index Scan using jobs_pkey|USING INTEGER PRIMARY KEY", plan), plan


@pytest.mark.parametrize("state", [None, *State])
def test_what_completion_offers_is_the_beginning_of_an_index(crowded: Database, state: State | None) -> None:
    plans = plans_of(crowded, lambda tx: offers._first_ones(tx, [state] if state else []))

    for plan in plans:
        assert "Seq Scan" not in plan, plan
        assert "TEMP B-TREE FOR ORDER BY" not in plan, plan


def test_ids_and_numbers_are_offered_by_their_indexes(crowded: Database) -> None:
    by_id = plans_of(crowded, lambda tx: offers._given_ids_from(tx, "a"))
    by_number = plans_of(crowded, lambda tx: offers._numbered(tx, 400, 499))
    by_tag = plans_of(crowded, lambda tx: offers.tags(tx, "", 10))

    assert all("jobs_given_id" in plan for plan in by_id), by_id
    assert all(re.search(r"jobs_pkey|INTEGER PRIMARY KEY", plan) for plan in by_number), by_number
    assert all("jobs_tagged" in plan for plan in by_tag), by_tag
    assert_nothing_sorted(by_tag)


def test_jobs_that_ended_lately_are_counted_along_the_index_of_ends(crowded: Database) -> None:
    wanted = jobs.Filter(states=(State.COMPLETED,), queue="default", ended_since=19_990)

    assert_pinned(plans_of(crowded, lambda tx: jobs.count_matching(tx, wanted)), "jobs_finished")
    assert crowded.read(lambda tx: jobs.count_matching(tx, wanted)) == 11


def plans_of(db: Database, work: Callable[[Tx], object]) -> list[str]:
    """Return the plan of each statement about jobs that some work runs; on PostgreSQL also the one of a prepared."""

    def explained(tx: Tx) -> list[str]:
        explaining = Explained(tx)
        work(explaining)
        return explaining.plans

    plans = db.write(explained)
    assert plans
    return plans


def assert_pinned(plans: list[str], index: str) -> None:
    """Check that every plan uses an index, and none walks the table."""
    for plan in plans:
        assert index in plan, plan
        assert_walks_nothing(plan)


def without_children(plans: list[str]) -> list[str]:
    """Leave out of plans the one job that each edge of an old one leads to: it is read by its number."""
    assert all(_CHILD.search(plan) for plan in plans), plans
    return [_CHILD.sub("", plan) for plan in plans]


def assert_walks_nothing(plan: str) -> None:
    """Check that a plan reads jobs through a partial index only."""
    assert not _WALKS.search(plan), plan


def assert_nothing_sorted(plans: list[str]) -> None:
    """Check that every plan takes its order from an index."""
    for plan in plans:
        assert not _SORTS.search(plan), plan


def _generic_plan(dialect: PostgresDialect, sql: str, params: "Params") -> str:
    """Return the plan for any values: psycopg prepares what it sees often, and the server may keep to one plan."""
    names = [name for name in params if re.search(rf":{name}\b", sql)]
    for number, name in enumerate(names, 1):
        sql = re.sub(rf"(?<!:):{name}\b", f"${number}", sql)
    values = ", ".join("NULL" if value is None else f"'{value!s}'" for value in (params[name] for name in names))
    dialect.script("SET LOCAL plan_cache_mode = force_generic_plan")
    dialect.script(f"PREPARE explained AS {sql}")
    plan = _text(dialect.rows(f"EXPLAIN EXECUTE explained{f'({values})' if names else ''}", {}))
    dialect.script("DEALLOCATE explained")
    return plan


def _text(rows: "list[Row]") -> str:
    return "\n".join(str(row[-1]) for row in rows)


def test_old_acts_are_walked_from_the_oldest_and_removed_by_their_numbers(db: Database) -> None:
    rows = [(1 if number < 1000 else 9_000_000_000_000, "ann", "enqueue", None, 1) for number in range(20_000)]
    db.write(lambda tx: tx.insert_many("audit", ("at", "who", "action", "target", "count"), rows))
    db.dialect.script("VACUUM ANALYZE" if db.dialect.name == "postgres" else "ANALYZE")

    plans = plans_of(db, lambda tx: (audit.prune(tx, 2, 500), audit.count_prunable(tx, 2)))

    assert len(plans) >= 5
    assert not [plan for plan in plans if "Seq Scan on audit" in plan]
    assert_nothing_sorted(plans)
    if db.dialect.name == "sqlite":
        assert "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plans[2]


def test_who_uses_a_limit_is_read_without_walking_history(crowded: Database) -> None:
    for state in (State.PENDING, State.PROCESSING, State.SCHEDULED, State.BLOCKED):
        add_job(crowded, state, limits='["limit:api"]', parked_for="limit:api" if state is State.BLOCKED else None)

    plans = plans_of(
        crowded,
        lambda tx: (
            limits.users(tx, "limit:api", 9),
            limits.holders(tx, "limit:api"),
            limits.all_holders(tx),
            overview.limit(tx, "limit:api"),
            overview.all_limits(tx),
        ),
    )

    for plan in plans:
        assert_walks_nothing(plan)


def test_a_list_of_jobs_that_are_over_by_their_end_walks_the_index_of_the_finished_alone(crowded: Database) -> None:
    wanted = jobs.Filter(states=(State.COMPLETED,), text="what no command holds")

    plans = plans_of(crowded, lambda tx: listing.page(tx, [wanted], Sorting(order=Order.FINISHED), 50))

    assert all("jobs_finished" in plan for plan in plans), plans


def test_the_oldest_ready_job_of_a_queue_is_found_by_one_probe_for_each_priority(crowded: Database) -> None:
    for priority in (5, -5):
        add_job(crowded, priority=priority, queue="paused")

    lanes = crowded.read(lambda tx: [lane.id for lane in all_lanes(tx)])

    *probes, last = plans_of(crowded, lambda tx: overview._oldest_ready(tx, lanes))
    walks = plans_of(crowded, lambda tx: overview._older(tx, lanes[0], 0, 1, (9, 1)))

    assert "jobs_pkey" in last or "INTEGER PRIMARY KEY" in last
    assert_nothing_sorted(probes + walks)
    assert all("jobs_ready" in plan for plan in walks)
    assert len([plan for plan in probes if "jobs_ready" in plan]) >= len(lanes) + 3


def test_a_settle_and_claim_of_plain_jobs_on_sqlite_builds_no_table_on_the_way(sqlite_home: Path) -> None:
    target = locate(None, {"QUEUECTL_HOME": str(sqlite_home)})
    with closing(BareWorker(target)) as worker:
        worker.submit(2)
        worker.step()
        said: list[tuple[str, object]] = []

        def note(_cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            said.append((sql, bindings))
            return True

        connection: apsw.Connection = worker.database.dialect.connection  # type: ignore[attr-defined]
        connection.exec_trace = note
        worker.step()
        connection.exec_trace = None
        built = [
            [row[1] for row in connection.execute(f"EXPLAIN {sql}", bindings)].count("OpenEphemeral")  # type: ignore[arg-type]
            for sql, bindings in said
            if "UPDATE jobs" in sql
        ]

    # Two are reached by jobs with a deadline alone: for the entry out of jobs_deadline and the one into it.
    assert built == [2, 2]
    assert not any("RETURNING" in sql for sql, _ in said)
