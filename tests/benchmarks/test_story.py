"""Story: sentences whose numbers are those of a run."""

import pytest

from benchmarks.budgets import FULL
from benchmarks.contenders import BY_THE_HANDFUL, ONE_BY_ONE
from benchmarks.figures import Figure
from benchmarks.report import newest
from benchmarks.story import BLOCKS, NOT_MEASURED, how_far_one_file_goes


@pytest.mark.parametrize("name", BLOCKS)
def test_what_was_not_measured_is_not_told(name: str) -> None:
    assert BLOCKS[name]({}) == NOT_MEASURED


@pytest.mark.parametrize("name", BLOCKS)
def test_the_newest_run_has_all_that_is_told(name: str) -> None:
    assert NOT_MEASURED not in BLOCKS[name](newest(FULL).figures)


def test_how_busy_a_file_is_follows_from_what_several_at_once_brought_it_to() -> None:
    core = [
        Figure(what=f"core {way} {count}", ratios=[0.8], absolute=[rate * count], values={"way": way})
        for way, rate in ((ONE_BY_ONE, 2500.0), (BY_THE_HANDFUL, 12_500.0))
        for count in (4, 2)
    ]
    drain = Figure(what="drain", ratios=[0.7], absolute=[1500.0], values={"kind": "SQLite", "flags": "-n 2"})

    told = how_far_one_file_goes({"core": core, "drain": [drain]})

    assert "| commands of 100 ms, 100 at once | 1,000 | 20% |" in told
    assert "(`worker start -n 2`) | 1,500 | 6% |" in told
    assert "| 10,000 | 200%: this is too much |" in told
