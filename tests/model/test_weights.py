"""Weights: how queues take turns."""

from hypothesis import given
from hypothesis import strategies as st

from queuectl.model.weights import Turns

WEIGHTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=2, max_size=4)


@given(WEIGHTS)
def test_while_all_have_work_each_gets_its_share_in_every_round(weights: dict[str, int]) -> None:
    turns, total = Turns(weights=weights), sum(weights.values())

    counts = dict.fromkeys(weights, 0)
    for _ in range(5 * total):
        queue = min(weights, key=lambda name: (turns.place(name), name))
        counts[queue] += 1
        turns = turns.after([queue])

    assert all(abs(counts[name] - 5 * weight) <= 1 for name, weight in weights.items())


def test_a_queue_that_had_nothing_to_do_does_not_save_its_turns_up() -> None:
    turns = Turns(weights={"a": 1, "b": 1}).after(["a"] * 100)

    assert turns.order([1, 1, 1, 2, 2, 2], {1: "a", 2: "b"}, 6) in ([2, 1, 2, 1, 2, 1], [1, 2, 1, 2, 1, 2])


def test_jobs_of_one_queue_stay_in_their_order() -> None:
    turns = Turns(weights={"a": 2, "b": 1})

    assert turns.order([3, 1, 2], {1: "a", 2: "b", 3: "a"}, 9) == [3, 2, 1]
