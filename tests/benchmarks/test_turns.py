"""Turns: every side is measured once a round, and none is always the first."""

import pytest

from benchmarks.turns import ratios, rotated, take_turns


def test_each_round_begins_with_the_next_side() -> None:
    order: list[str] = []

    take_turns(4, {name: lambda name=name: order.append(name) for name in "abc"})  # type: ignore[misc]

    assert "".join(order) == "abcbcacababc"


def test_what_a_side_gave_is_kept_round_by_round() -> None:
    numbers = iter(range(6))

    given = take_turns(3, {"own": lambda: next(numbers), "unit": lambda: next(numbers)})

    assert given == {"own": [0, 3, 4], "unit": [1, 2, 5]}


def test_a_ratio_is_of_two_measurements_of_the_same_round() -> None:
    assert ratios([2, 9], [1, 3]) == [2, 3]


def test_rounds_of_different_number_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([1, 2], [1])


def test_one_side_alone_needs_no_order() -> None:
    assert rotated(["a"], 5) == ["a"]
