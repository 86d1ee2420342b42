"""Figures: what is shown of a measurement, and when a budget counts as missed."""

import json

import pytest

from benchmarks.figures import Budget, Figure, number, percentile

AT_LEAST_ONE = Budget(limit=1.0, is_more_better=True)
AT_MOST_5_MS = Budget(limit=5, absolute_unit="ms")


def test_the_median_of_the_ratios_is_judged() -> None:
    figure = Figure(what="drain", unit="x of xargs", ratios=[0.5, 1.1, 1.2], budget=AT_LEAST_ONE)

    assert figure.is_met is True
    assert figure.verdict_text == "at least 1x: met (2 of 3 within)"
    assert (figure.ratio_text, figure.spread_text) == ("1.1 x of xargs", "0.5 to 1.2")


def test_a_budget_with_a_unit_judges_the_absolute_figures() -> None:
    figure = Figure(what="pick-up", ratios=[1.0], absolute=[4, 6, 7], absolute_unit="ms", budget=AT_MOST_5_MS)

    assert figure.is_met is False
    assert figure.is_failure
    assert figure.verdict_text == "at most 5 ms: MISSED (1 of 3 within)"


@pytest.mark.parametrize("ratios, told", [([1.0, 1.1], "met"), ([0.8, 0.9], "MISSED")])
def test_rounds_that_agree_are_not_counted(ratios: list[float], told: str) -> None:
    assert Figure(what="drain", ratios=ratios, budget=AT_LEAST_ONE).verdict_text == f"at least 1x: {told}"


def test_a_budget_in_another_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="in 's' and its budget in 'ms'"):
        Figure(what="pick-up", ratios=[1.0], absolute=[0.004], absolute_unit="s", budget=AT_MOST_5_MS)


def test_an_aim_that_is_missed_is_no_failure() -> None:
    aim = Budget(limit=1, is_aim=True)

    figure = Figure(what="own share", ratios=[2.0], budget=aim)

    assert figure.is_met is False
    assert not figure.is_failure
    assert figure.verdict_text == "aim: at most 1x: MISSED"


def test_what_is_missing_is_not_judged_and_says_why() -> None:
    figure = Figure.missing("the limit from C", "no C compiler")

    assert figure.is_missing
    assert figure.is_met is None
    assert (figure.ratio_text, figure.note) == ("missing", "missing: no C compiler")


def test_one_round_alone_has_no_spread() -> None:
    assert Figure(what="memory", ratios=[3.0]).spread_text == ""


@pytest.mark.parametrize(
    "figure",
    [
        Figure.missing("nq", "not installed"),
        Figure(
            what="drain",
            unit="x of xargs",
            ratios=[1.5, 2.5],
            absolute=[100.0],
            absolute_unit="jobs/s",
            budget=AT_LEAST_ONE,
            note="fast",
            is_headline=True,
            values={"jobs": 5, "rates": [1.0, 2.0]},
        ),
    ],
)
def test_a_figure_comes_back_from_json_as_it_was(figure: Figure) -> None:
    assert Figure.of_row(json.loads(json.dumps(figure.row()))) == figure


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (0.00172, "0.00172"), (1.2345, "1.23"), (49.96, "50"), (137.4, "137"), (123456.7, "123,457")],
)
def test_numbers_have_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_a_percentile_of_few_samples_is_the_highest() -> None:
    assert percentile([3, 1, 2], 95) == 3
    assert percentile(range(100), 50) == 50
