"""Story: sentences whose numbers are those of a run."""

import pytest

from benchmarks.budgets import FULL
from benchmarks.figures import Figure
from benchmarks.report import newest
from benchmarks.story import BLOCKS, NOT_MEASURED, how_far_one_file_goes
from benchmarks.workloads.core import BY_THE_HANDFUL, ONE_BY_ONE


@pytest.mark.parametrize("name", BLOCKS)
def test_what_was_not_measured_is_not_told(name: str) -> None:
    assert BLOCKS[name]({}) == NOT_MEASURED


@pytest.mark.parametrize("name", BLOCKS)
def test_the_newest_run_has_all_that_is_told(name: str) -> None:
    assert NOT_MEASURED not in BLOCKS[name](newest(FULL).figures)


def test_how_busy_a_file_is_follows_from_what_a_job_holds_it() -> None:
    core = [
        Figure(what=f"claim + settle {way}, SQLite", ratios=[7.0], absolute=[1e6 / us], values={"wall_us": us})
        for way, us in ((ONE_BY_ONE, 200.0), (BY_THE_HANDFUL, 40.0))
    ]
    drain = Figure(what="drain", ratios=[0.7], absolute=[1500.0], values={"kind": "SQLite", "flags": "-n 2"})

    told = how_far_one_file_goes({"core": core, "drain": [drain]})

    assert "| commands of 100 ms, 100 at once | 1,000 | 20% |" in told
    assert "(`worker start -n 2`) | 1,500 | 6% |" in told
    assert "| 10,000 | 200%: this is too much |" in told
