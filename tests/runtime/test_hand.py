"""The hand of a worker: how many jobs it takes ahead, and what becomes of those it does not begin."""

import pytest

from queuectl.model.job import Claim
from queuectl.runtime.hand import HOLD_S, MOST, NEVER, TAKE_S, Hand
from tests.runtime.running import a_job


def claims_of(*seqs: int) -> list[Claim]:
    """Return claims of jobs by number."""
    return [Claim(job=a_job(seq, "w1")) for seq in seqs]


def hand_after(*ran_s: float) -> Hand:
    """Return an empty hand that has seen commands of some length."""
    hand = Hand()
    for each in ran_s:
        hand.note_pace(each)
    return hand


@pytest.mark.parametrize(
    "ran_s, room",
    [
        ((), 0),
        ((0.0005,), 0),
        ((0.0005,) * 20, MOST),
        ((TAKE_S / 5,) * 30, 4),
        ((1.0,) * 20, 0),
        (((0.0005,) * 20) + (3600.0,), 0),
    ],
    ids=["unknown", "one short one", "short", "medium", "long", "one long one"],
)
def test_it_takes_ahead_what_the_last_commands_say_will_begin_in_a_moment(ran_s: tuple[float, ...], room: int) -> None:
    assert hand_after(*ran_s).room(1) == room


def test_more_slots_begin_more_in_the_same_time() -> None:
    hand = hand_after(*[TAKE_S / 2] * 40)

    assert (hand.room(1), hand.room(4)) == (1, 7)


def test_while_it_holds_anything_it_takes_no_more() -> None:
    hand = hand_after(*[0.0005] * 20)

    hand.take(claims_of(1, 2), now=0.0)
    held = hand.room(1)
    hand.give_back()

    assert (held, hand.room(1)) == (0, 0)


def test_what_has_not_begun_after_a_moment_goes_back_and_the_pace_is_learnt_anew() -> None:
    hand = hand_after(*[0.0005] * 20)
    hand.take(claims_of(1, 2, 3), now=10.0)
    first = hand.begin(10.0)

    until = hand.until
    hand.give_back()

    assert (first.job.seq, until) == (1, 10.0 + HOLD_S)
    assert [claim.job.seq for claim in hand.returned] == [2, 3]
    assert (hand.until, hand.claims) == (NEVER, [])
    hand.returned = []
    assert hand.room(1) == 0


def test_what_is_not_ours_any_more_is_forgotten() -> None:
    hand = Hand()
    hand.take(claims_of(1, 2, 3), now=0.0)
    hand.drop([2])

    hand.keep({(1, 1), (2, 2)})

    assert [claim.job.seq for claim in hand.claims] == [1]
    assert hand.returned == []


def test_as_many_are_begun_in_a_row_as_rows_went_well_before() -> None:
    hand = Hand()
    hand.take(claims_of(*range(1, 200)), now=0.0)
    sizes = []

    for is_whole in (True, True, True, False, True, *[True] * 9):
        sizes.append(len(hand.next_in_a_row))
        hand.note_row(is_whole=is_whole)

    assert sizes == [1, 2, 4, 8, 1, 2, 4, 8, 16, 32, MOST, MOST, MOST, MOST]
    assert [claim.job.seq for claim in hand.next_in_a_row] == list(range(1, MOST + 1))


def test_it_tells_which_jobs_began_later_than_they_were_taken() -> None:
    hand = Hand()
    hand.take(claims_of(1, 2), now=5.0)

    hand.begin(5.0)
    hand.begin(5.1)

    assert hand.late == {2}
