"""Every (state, move) pair on both databases: the table in model/states.py is what the statements do."""

import pytest

from queuectl.model.job import Claim, Job
from queuectl.model.states import FINAL, MOVES, WAITING_FOR_TIME, Move, State
from queuectl.model.verdict import Verdict
from queuectl.store import claims, moves
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from tests.store.rows import NOW, FakeClock, add_job, get_job, recorded

OUT_OF_PROCESSING = [move for move, (sources, _) in MOVES.items() if sources == {State.PROCESSING}]
LATER = NOW + 5_000


@pytest.mark.parametrize("move", Move)
def test_a_move_leaves_the_states_of_the_table_and_no_other(db: Database, move: Move) -> None:
    sources, targets = MOVES[move]

    for state in State:
        for to in targets:
            db.read_clock = FakeClock()
            before = add_job(db, state)
            db.read_clock = FakeClock(now=LATER)
            was_moved = try_move(db, move, before, to)
            after = get_job(db, before.seq)

            assert was_moved == (state in sources), f"{move} from {state} to {to}"
            assert after.state is to if state in sources else after == before, f"{move} from {state} to {to}"
            remove(db, before.seq)


@pytest.mark.parametrize("move", [move for move in Move if move is not Move.START])
def test_a_move_to_a_state_outside_the_table_is_a_mistake_of_the_program(db: Database, move: Move) -> None:
    sources, targets = MOVES[move]
    job = add_job(db, min(sources))

    for to in set(State) - targets:
        with pytest.raises(ValueError, match=f"{move} does not lead to {to}"):
            try_move(db, move, job, to)

    assert get_job(db, job.seq) == job


@pytest.mark.parametrize("move", [Move.CANCEL, Move.EXPIRE, Move.STARVE])
def test_a_waiting_job_that_ends_has_the_time_and_the_reason(db: Database, move: Move) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, State.BLOCKED)

    ended = db.write(lambda tx: moves.move(tx, move, job.seq, *MOVES[move][1], error="because"))

    assert ended == get_job(db, job.seq)
    assert (ended.finished_at, ended.error) == (NOW, "because")


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_revived_job_has_a_fresh_life_and_keeps_its_run_number(db: Database, state: State) -> None:
    job = add_job(db, state, run=7, attempts=4, losses=2, exit_code=1, error="exit code 1")

    db.write(lambda tx: moves.move(tx, Move.REVIVE, job.seq, State.PENDING))

    revived = get_job(db, job.seq)
    assert (revived.attempts, revived.losses, revived.exit_code, revived.error) == (0, 0, None, None)
    assert (revived.run, revived.finished_at) == (7, None)


def test_settle_returns_the_row_as_it_is_written(db: Database) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, State.PROCESSING, cancel_requested=1, attempts=1)
    verdict = Verdict(move=Move.FAIL, state=State.FAILED, delay_ms=4_000, error="exit code 9", charged=1)

    settled = db.write(lambda tx: moves.settle(tx, Claim(job=job), verdict, 9, recorded(Claim(job=job))))

    assert settled == get_job(db, job.seq)
    assert (settled.run_at, settled.attempts, settled.exit_code) == (NOW + 4_000, 2, 9)
    assert (settled.worker_id, settled.cancel_requested) == (None, 0)


def test_a_claim_returns_the_row_as_it_is_written(db: Database) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, run=4)

    (claim,) = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w9"), 5).claims)

    assert claim.job == get_job(db, job.seq)
    assert (claim.job.run, claim.job.worker_id, claim.job.started_at) == (5, "w9", NOW)


def test_only_jobs_whose_time_has_come_are_made_due_the_longest_due_first(db: Database) -> None:
    db.read_clock = FakeClock()
    states = [State.FAILED, State.SCHEDULED, State.FAILED, State.SCHEDULED]
    late, latest, now, future = (
        add_job(db, state, run_at=NOW + delta).seq for state, delta in zip(states, (-1, -2, 0, 1), strict=True)
    )

    first = db.write(lambda tx: moves.make_due(tx, most=1))
    first_state = get_job(db, latest).state
    rest = db.write(moves.make_due)

    assert (first, first_state, rest) == (1, State.PENDING, 2)
    assert [get_job(db, seq).state for seq in (late, now, future)] == [State.PENDING, State.PENDING, State.SCHEDULED]


def test_a_cancel_is_asked_only_of_a_running_job(db: Database) -> None:
    for state in State:
        job = add_job(db, state)

        asked = db.write(lambda tx, seq=job.seq: moves.request_cancel(tx, seq))  # type: ignore[misc]

        assert (asked is not None) == (state is State.PROCESSING)
        assert get_job(db, job.seq).cancel_requested == int(state is State.PROCESSING)


def try_move(db: Database, move: Move, job: Job, to: State) -> bool:
    """Make a move the way the program makes it; True means something was moved."""
    if move is Move.START:
        return bool(db.write(lambda tx: claims.claim(tx, Taker(worker_id="w2"), 1).claims))
    if move in OUT_OF_PROCESSING:
        verdict = Verdict(move=move, state=to, delay_ms=1_000 if to in WAITING_FOR_TIME else None)
        held = Claim(job=job.replace(worker_id="w1"))
        return db.write(lambda tx: moves.settle(tx, held, verdict, None, recorded(held))) is not None
    run_at = LATER if to is State.SCHEDULED else None
    return db.write(lambda tx: moves.move(tx, move, job.seq, to, run_at=run_at, error="why")) is not None


def remove(db: Database, seq: int) -> None:
    """Take a job out of the way of the next."""

    def work(tx: Tx) -> None:
        tx.changed("DELETE FROM jobs WHERE seq = :seq", {"seq": seq})

    db.write(work)
