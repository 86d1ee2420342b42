"""Pick-up: how few samples are told."""

import pytest

from benchmarks.workloads.pickup import figures_of


@pytest.mark.parametrize("samples, name", [(5, "slowest of 5"), (20, "slowest of 20"), (21, "p95")])
def test_the_slowest_of_few_is_called_that(samples: int, name: str) -> None:
    own = [0.001 * (place + 1) for place in range(samples)]

    _, high = figures_of("pick-up", own, own)

    assert high.what == f"pick-up, {name}"
    assert (high.absolute[0] == max(own) * 1000) == (name != "p95")


def test_many_samples_give_a_spread_of_both() -> None:
    own = [0.001 * (place + 1) for place in range(63)]

    middle, high = figures_of("pick-up", own, [0.001] * 63)

    assert list(middle.absolute) == pytest.approx([11, 32, 53])
    assert list(high.absolute) == pytest.approx([20, 41, 62])
    assert len(middle.ratios) == len(high.ratios) == 3
