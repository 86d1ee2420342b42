"""The table of states and moves, spelt out once more: a change to it must be meant."""

from queuectl.model.states import FINAL, MEANING, MOVES, WHY, Move, State, moves_from

TABLE = """
    START     pending -> processing
    COMPLETE  processing -> completed
    FAIL      processing -> failed
    BURY      processing -> dead
    LOST      processing -> pending | failed | dead
    HAND_BACK processing -> pending
    SNOOZE    processing -> scheduled
    STOP      processing -> cancelled
    DUE       scheduled | failed -> pending
    DEFER     pending | failed -> scheduled
    CANCEL    pending | scheduled | blocked | failed -> cancelled
    PARK      pending | scheduled | failed -> blocked
    UNBLOCK   blocked -> pending | scheduled
    STARVE    blocked -> cancelled
    EXPIRE    pending | scheduled | blocked | failed -> dead
    HOLD      pending | scheduled | failed -> blocked
    REVIVE    dead | cancelled | completed -> pending | scheduled | blocked
"""


def test_the_moves_are_those_of_the_design() -> None:
    rows = dict(line.split(maxsplit=1) for line in TABLE.strip().splitlines())

    designed = {
        Move(name): tuple(frozenset(State(word) for word in side.split(" | ")) for side in row.split(" -> "))
        for name, row in rows.items()
    }

    assert designed == MOVES


def test_every_state_can_be_reached_from_a_new_job() -> None:
    reached = {State.PENDING}

    while grown := {to for state in reached for move in moves_from(state) for to in MOVES[move][1]} - reached:
        reached |= grown

    assert reached == set(State)


def test_a_final_state_is_left_by_a_revival_alone() -> None:
    assert {state: moves_from(state) for state in FINAL} == {state: [Move.REVIVE] for state in FINAL}


def test_every_state_and_every_move_is_explained() -> None:
    assert set(MEANING) == set(State)
    assert set(WHY) == set(MOVES) == set(Move)


def test_moves_from_a_state_are_those_that_name_it_as_source() -> None:
    assert moves_from(State.BLOCKED) == [Move.CANCEL, Move.UNBLOCK, Move.STARVE, Move.EXPIRE]
