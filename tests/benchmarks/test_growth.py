"""Growth: how many jobs of which kind there are at each step."""

from benchmarks import stores
from benchmarks.workloads.growth import MILLION, STEPS, crowd_sizes, crowds_text


def test_the_steps_have_as_many_of_each_crowd_and_once_a_million_in_all() -> None:
    each = [set(crowd_sizes(rows).values()) for rows in STEPS if rows != MILLION]

    assert each == [{0}, {10_000}, {100_000}, {MILLION}]
    assert MILLION in STEPS


def test_the_row_counts_are_stated() -> None:
    told = crowds_text(60_000)

    assert told.startswith("10,000 each: ")
    assert all(crowd in told for crowd in stores.CROWDS)
    assert crowds_text(MILLION).endswith(", 4 more completed")
