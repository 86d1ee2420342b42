"""Verdict: what keeps a whole run from being a success, by its figures alone."""

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.budgets import BUDGETS
from benchmarks.figures import Budget, Figure
from benchmarks.peers.lineup import MUST_RUN

Figures = Mapping[str, Sequence[Figure]]
"""By workload."""


def missed(figures: Figures) -> list[Figure]:
    """Return the figures that are beyond their budgets, those beyond an aim left out."""
    return [figure for figure in _each(figures) if figure.is_failure]


def judged(figures: Figures) -> list[Figure]:
    """Return the figures that were held to a budget, those with an aim left out."""
    return [figure for figure in _each(figures) if figure.budget and not figure.budget.is_aim and not figure.is_missing]


def unjudged(figures: Figures, budgets: Iterable[Budget] = tuple(BUDGETS.values())) -> list[str]:
    """Name the budgets, aims left out, that no figure was held to, or not every one that should have been."""
    found = [(figure.budget.name, figure.is_met is not None) for figure in _each(figures) if figure.budget]
    judged = {name for name, is_judged in found if is_judged} - {name for name, is_judged in found if not is_judged}
    return [budget.name for budget in budgets if not budget.is_aim and budget.name not in judged]


def absent_peers(figures: Figures, names: Iterable[str] = MUST_RUN) -> list[str]:
    """Name the peers that must run and did not, or not through all that is measured of them."""
    found = [(figure.values["peer"], figure.is_missing) for figure in _each(figures) if "peer" in figure.values]
    seen = {peer for peer, _ in found} - {peer for peer, is_missing in found if is_missing}
    return [name for name in names if name not in seen]


def _each(figures: Figures) -> list[Figure]:
    return [figure for found in figures.values() for figure in found]
