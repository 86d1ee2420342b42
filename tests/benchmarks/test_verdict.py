"""Verdict: a whole run is a success only where every budget was judged and every peer that must run did."""

import pytest

from benchmarks import verdict
from benchmarks.figures import Budget, Figure

STATUS = Budget(name="status", limit=200, absolute_unit="ms")
GROWTH = Budget(name="growth", limit=1.5)
AIM = Budget(name="own share", limit=200, is_aim=True)
BUDGETS = (STATUS, GROWTH, AIM)


def judged(budget: Budget, ratio: float = 1.0) -> Figure:
    return Figure(what=f"of {budget.name}", ratios=[ratio], absolute=[1], absolute_unit="ms", budget=budget)


def of_peer(peer: str, *, is_missing: bool = False) -> Figure:
    return Figure(what=peer, ratios=[] if is_missing else [1.0], values={"peer": peer})


def test_a_figure_beyond_its_budget_is_missed_and_beyond_an_aim_is_not() -> None:
    figures = {"growth": [judged(GROWTH, 2.0), judged(AIM, 1000.0)], "status": [judged(STATUS)]}

    assert [figure.what for figure in verdict.missed(figures)] == ["of growth"]
    assert [figure.what for figure in verdict.judged(figures)] == ["of growth", "of status"]


def test_a_budget_that_no_figure_has_is_not_judged() -> None:
    assert verdict.unjudged({"growth": [judged(GROWTH, 2.0)]}, BUDGETS) == ["status"]
    assert verdict.unjudged({"growth": [judged(GROWTH)], "status": [judged(STATUS)]}, BUDGETS) == []


def test_a_budget_is_not_judged_where_one_of_its_figures_is_missing() -> None:
    figures = {"growth": [judged(GROWTH), Figure.missing("growth", "no store", GROWTH)], "status": [judged(STATUS)]}

    assert verdict.unjudged(figures, BUDGETS) == ["growth"]


def test_an_empty_run_has_judged_nothing_and_seen_no_peer() -> None:
    assert "drain against GNU parallel" in verdict.unjudged({})
    assert verdict.absent_peers({})[:3] == ["xargs", "queuectl, SQLite", "queuectl, PostgreSQL"]


@pytest.mark.parametrize(
    "of_nq", [[], [of_peer("nq", is_missing=True)], [of_peer("nq"), of_peer("nq", is_missing=True)]]
)
def test_a_peer_that_must_run_and_did_not_is_named(of_nq: list[Figure]) -> None:
    figures = {"peers": [of_peer("xargs"), of_peer("Celery", is_missing=True), *of_nq]}

    assert verdict.absent_peers(figures, ["xargs", "nq"]) == ["nq"]
