"""Pick-up: how few samples are told."""

import pytest

from benchmarks.workloads.pickup import figures_of


@pytest.mark.parametrize("samples, name", [(5, "slowest of 5"), (20, "slowest of 20"), (21, "p95")])
def test_the_slowest_of_few_is_called_that(samples: int, name: str) -> None:
    own = [0.001 * (place + 1) for place in range(samples)]

    _, high = figures_of("pick-up", own, own)

    assert high.what == f"pick-up, {name}"
    assert (high.absolute[0] == max(own) * 1000) == (name != "p95")
