"""Why: what decides about a job, as Python sees it. How it is found out is in actions/standing.py."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.scene import Gate
    from queuectl.actions.standing import Standing


class GateInfo(Value):
    """One thing that decides whether a job may start now."""

    name: str
    is_open: bool
    what: str
    """What is so."""
    jobs: tuple[str, ...]
    workers: tuple[str, ...]
    """Who holds it, or could let it through."""
    ends: str | None
    """What opens it without anybody's doing."""
    remedy: str | None
    """A command that opens it."""


class Why(Value):
    """Why a job waits, where it runs or how it ended, as it was when it was looked at."""

    summary: str
    waits_for: str | None
    remedy: str | None
    """A command that ends the wait, or brings the job back."""
    gates: tuple[GateInfo, ...]
    """Those of a job that waits, open and shut; none of one that runs or is over."""
    place: int | None
    """1 for the first in line; None for a job that is in no line."""
    line: str | None
    holds: tuple[str, ...]
    """What it keeps from others while it runs."""


def why_of(found: "Standing") -> Why:
    """Return how a job stands."""
    wait, place = found.wait, found.place
    return Why(
        summary=found.summary,
        waits_for=None if wait is None else wait.reason,
        remedy=found.remedy if wait is None else wait.remedy,
        gates=tuple(_gate_info(gate) for gate in found.gates),
        place=None if place is None else place.ahead + 1,
        line=None if place is None else place.line,
        holds=found.holds,
    )


def _gate_info(gate: "Gate") -> GateInfo:
    return GateInfo(
        name=gate.name,
        is_open=gate.is_open,
        what=gate.words,
        jobs=gate.jobs,
        workers=gate.workers,
        ends=gate.ends,
        remedy=gate.remedy,
    )
