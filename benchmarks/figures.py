"""Figures: what a workload found out, as a ratio to its unit, and whether that is within its budget."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

Value = float | str | list[float] | list[str]
"""What a figure carries besides its ratios, for plots and for whoever reads the JSON."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A line that the median must not cross: of the ratios, or of the absolute figures where it has a unit of those."""

    name: str = ""
    """What it is a budget of, as budgets.py has it."""
    limit: float
    is_more_better: bool = False
    absolute_unit: str = ""
    is_aim: bool = False
    """Whether it is only aimed at: crossing it is shown, and is no failure."""
    run: str = "full"
    """Which whole run must judge it."""

    def allows(self, value: float) -> bool:
        """Tell whether a value is on the right side of the line."""
        return value >= self.limit if self.is_more_better else value <= self.limit

    def __str__(self) -> str:
        sign = ("aim: " if self.is_aim else "") + ("at least" if self.is_more_better else "at most")
        return f"{sign} {number(self.limit)}{f' {self.absolute_unit}' if self.absolute_unit else 'x'}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the result: ratios to a unit, one per round, and the absolute figures behind them."""

    what: str
    unit: str = ""
    """What the ratios are of, as in `x of xargs -P 2`."""
    ratios: Sequence[float] = ()
    """One per round; none where the figure is missing, and then the note says why."""
    absolute: Sequence[float] = ()
    absolute_unit: str = ""
    budget: Budget | None = None
    note: str = ""
    is_headline: bool = False
    """Whether it belongs into a short table."""
    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the samples as they are now, whatever becomes of the lists they came in."""
        object.__setattr__(self, "ratios", tuple(self.ratios))
        object.__setattr__(self, "absolute", tuple(self.absolute))
        judged_in = self.budget.absolute_unit if self.budget and not self.is_missing else ""
        if judged_in and judged_in != self.absolute_unit:
            raise ValueError(f"{self.what} is in {self.absolute_unit!r} and its budget in {judged_in!r}")

    @classmethod
    def missing(cls, what: str, why: str, budget: Budget | None = None) -> "Figure":
        """Return the line of something that could not be measured here; its budget stays unjudged."""
        return cls(what=what, note=f"missing: {why}", budget=budget)

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing to show."""
        return not self.ratios

    @property
    def median(self) -> float:
        """The ratio that counts."""
        return statistics.median(self.ratios)

    @property
    def is_met(self) -> bool | None:
        """Whether the median is within the budget; None where there is none, or nothing to judge."""
        if self.budget is None or self.is_missing:
            return None
        return self.budget.allows(statistics.median(self._judged(self.budget)))

    @property
    def is_failure(self) -> bool:
        """Whether a budget is missed that is more than an aim."""
        return self.budget is not None and not self.budget.is_aim and self.is_met is False

    @property
    def ratio_text(self) -> str:
        """The median and its unit, for people."""
        return "missing" if self.is_missing else f"{number(self.median)} {self.unit}"

    @property
    def spread_text(self) -> str:
        """The lowest and the highest ratio; nothing where there was one round alone."""
        return f"{number(min(self.ratios))} to {number(max(self.ratios))}" if len(self.ratios) > 1 else ""

    @property
    def absolute_text(self) -> str:
        """The median of the absolute figures, for people."""
        return f"{number(statistics.median(self.absolute))} {self.absolute_unit}" if self.absolute else ""

    @property
    def verdict_text(self) -> str:
        """The budget and how it went."""
        if self.budget is None:
            return ""
        return f"{self.budget}: " + {True: "met", False: "MISSED", None: "not judged"}[self.is_met] + self._split_text

    @property
    def _split_text(self) -> str:
        """How many rounds are within the budget, where not all are on the same side of it."""
        if self.budget is None or self.is_missing:
            return ""
        within = [self.budget.allows(each) for each in self._judged(self.budget)]
        return "" if len(set(within)) == 1 else f" ({sum(within)} of {len(within)} within)"

    def _judged(self, budget: Budget) -> Sequence[float]:
        return self.absolute if budget.absolute_unit else self.ratios

    def row(self) -> dict[str, object]:
        """Return it as the JSON result has it."""
        budget = self.budget
        return {
            "what": self.what,
            "unit": self.unit,
            "ratio": None if self.is_missing else significant(self.median),
            "ratios": [significant(each) for each in self.ratios],
            "absolute": [significant(each) for each in self.absolute],
            "absolute_unit": self.absolute_unit,
            "budget": budget and vars(budget),
            "is_met": self.is_met,
            "note": self.note,
            "is_headline": self.is_headline,
            "values": dict(self.values),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, object]) -> "Figure":
        """Read one back from the JSON result."""
        known = {each.name: row[each.name] for each in fields(cls) if each.name != "budget"}
        budget = row["budget"]
        return cls(**known, budget=Budget(**budget) if isinstance(budget, dict) else None)  # type: ignore[arg-type]


def significant(value: float) -> float:
    """Round to four digits that mean something."""
    return float(f"{value:.4g}")


def number(value: float) -> str:
    """Write a number as people read it: three digits that mean something, thousands set apart."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percentile(samples: Sequence[float], percent: int) -> float:
    """Return the value below which so many percent of the samples are; the highest where there are few."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
