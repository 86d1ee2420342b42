"""Story: what docs/performance.md says in sentences and small tables, with every number taken from a run."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import contenders
from benchmarks.bench import POSTGRES, SQLITE
from benchmarks.figures import Figure, number
from benchmarks.workloads.core import BY_THE_HANDFUL, ONE_BY_ONE
from queuectl.runtime.hand import TAKE_S

Figures = Mapping[str, Sequence[Figure]]
"""By workload."""
NOT_MEASURED = "Not measured in the newest run."
AT_ONCE = 100
LOADS = (
    ("commands of 1 s, 100 at once", 1.0),
    ("commands of 100 ms, 100 at once", 0.1),
    ("commands of 50 ms, 100 at once (on as many cores)", 0.05),
    ("commands of 10 ms, 100 at once (on as many cores)", 0.01),
)
"""What people run, and how many seconds one takes."""
_SHARED_MS = round(TAKE_S * 1000 / 2)
"""What takes less is taken at least two at a time by a worker with one slot."""


def where_the_time_goes(figures: Figures) -> str:
    """Return the parts of one job with one worker on SQLite, by the CPU and by the clock."""
    core = _find(figures, "core", f"claim + settle {BY_THE_HANDFUL}, {SQLITE}")
    shares = {
        (figure.values["language"], figure.values["by"]): figure.values
        for figure in figures.get("limit", ())
        if figure.values.get("by") and figure.values["width"] == 1
    }
    if core is None or ("Python", "CPU") not in shares:
        return NOT_MEASURED
    language = "C" if ("C", "CPU") in shares else "Python"
    sides = {
        by: _parts(language, shares[language, by], _value(core, store))
        for by, store in (("CPU", "cpu_us"), ("clock", "wall_us"))
    }
    rows = "".join(f"| {part} | {sides['CPU'][part]:,.0f} | {us:,.0f} |\n" for part, us in sides["clock"].items())
    limit_us, job_us = (float(str(shares[language, "clock"][name])) for name in ("limit_us", "job_us"))
    told = "The start of the workers is left out of it. "
    told += f"By the clock {limit_us / job_us:.0%} of it is the command: its start, its run and its end."
    if language == "C":
        python_us = float(str(shares["Python", "clock"]["limit_us"])) - limit_us
        told += f" A bare loop in Python takes {python_us:,.0f} us more for that than one in C."
    return f"| one no-op, one worker, SQLite | us of CPU | us by the clock |\n|---|---|---|\n{rows}\n{told}\n"


def _parts(language: str, share: Mapping[str, object], store_us: float) -> dict[str, float]:
    limit_us, job_us = float(str(share["limit_us"])), float(str(share["job_us"]))
    return {
        f"start, run and end of /bin/sh, by a bare loop in {language}": limit_us,
        "claim + settle by the handful, timed alone": store_us,
        "the rest of the worker": job_us - limit_us - store_us,
        "together": job_us,
    }


def how_far_one_file_goes(figures: Figures) -> str:
    """Return how many jobs a second one SQLite file takes, and how busy some loads keep it."""
    most, short_most = (_most_together(figures, way) for way in (contenders.ONE_BY_ONE, contenders.BY_THE_HANDFUL))
    drains = [figure for figure in _there(figures, "drain") if figure.values["kind"] == SQLITE]
    if most is None or short_most is None or not drains:
        return NOT_MEASURED
    best = max(drains, key=lambda each: statistics.median(each.absolute))
    best_rate = statistics.median(best.absolute)
    loads = [(what, AT_ONCE / seconds, most) for what, seconds in LOADS]
    loads.append((f"no-ops, the quickest drain here (`worker start {best.values['flags']}`)", best_rate, short_most))
    rows = "".join(
        f"| {what} | {number(rate)} | {_busy(rate / most)} |\n"
        for what, rate, most in sorted(loads, key=lambda each: each[1])
    )
    widths = ", ".join(
        f"`{figure.values['flags']}` {number(statistics.median(figure.absolute))}"
        for figure in drains
        if str(figure.values["flags"]).startswith("-n")
    )
    return (
        f"Several processes that do nothing but claim and settle brought one file to {number(most)} jobs a second, a "
        f"transaction each; short ones, which are taken by the handful, to {number(short_most)}. By that, the no-ops "
        f"by the handful and all others by a transaction each (those of less than {_SHARED_MS} ms share some, so that "
        f"what stands there is the most they can need):\n\n"
        f"| what you have | jobs a second | of what the file takes |\n|---|---|---|\n{rows}\n"
        f"With more workers than cores a drain gets slower, as it does by `xargs`; no-ops a second by `worker start`: "
        f"{widths}.\n"
    )


def _most_together(figures: Figures, way: str) -> float | None:
    """Return the rate of the slowest number of processes that were tried at once."""
    found = [each for each in _there(figures, "core") if each.values.get("way") == way]
    return min((statistics.median(each.absolute) for each in found), default=None)


def _busy(share: float) -> str:
    return f"{share:.0%}" if share < 0.9 else f"{share:.0%}: this is too much"


def what_a_job_costs_on_postgres(figures: Figures) -> str:
    """Return how much of a job's time on PostgreSQL its worker only waits."""
    core = _find(figures, "core", f"claim + settle {ONE_BY_ONE}, {POSTGRES}")
    handful = _find(figures, "core", f"claim + settle {BY_THE_HANDFUL}, {POSTGRES}")
    if core is None or handful is None:
        return NOT_MEASURED
    wall_us, cpu_us = _value(core, "wall_us"), _value(core, "cpu_us")
    return (
        f"There the claim and settle of a job take {number(wall_us)} us on the same host, of which its worker waits "
        f"for the server for {number(wall_us - cpu_us)}; those of a short one, by the handful, "
        f"{number(_value(handful, 'wall_us'))} us. Many workers wait side by side.\n"
    )


def what_the_knobs_do(figures: Figures) -> str:
    """Return a line for each knob that a figure tells something of."""
    lines = list(_knobs(figures))
    return "".join(f"- {each}\n" for each in lines) or NOT_MEASURED


def _knobs(figures: Figures) -> Iterator[str]:
    ways = {str(each.values["flags"]): each for each in _there(figures, "drain") if each.values["kind"] == SQLITE}
    if ways:
        rates = (f"`{flags}` {number(statistics.median(each.absolute))}" for flags, each in ways.items())
        yield f"no-ops a second on SQLite by `worker start`: {', '.join(rates)}"
    memory = {kind: _find(figures, "idle", "memory (PSS)", kind) for kind in (SQLITE, POSTGRES)}
    found = [f"{each.absolute_text} on {kind}" for kind, each in memory.items() if each is not None]
    if found:
        yield f"4 idle workers and their supervisor take {' and '.join(found)}"
    cpu = _find(figures, "idle", "CPU of", SQLITE)
    if cpu is not None:
        yield f"while they idle on SQLite they take {cpu.absolute_text}"
    sleeps = _find(figures, "sleeps", "memory (PSS)")
    if sleeps is not None:
        yield f"one worker with 200 commands that sleep (`-j 200`) takes {sleeps.absolute_text}"
    one = _find(figures, "enqueue", "enqueue one", SQLITE)
    many = _find(figures, "bulk", "enqueue", f"(lines), {SQLITE}")
    if one is not None and many is not None:
        ms, rate = statistics.median(one.absolute), statistics.median(many.absolute)
        yield f"one `enqueue` takes {number(ms)} ms; `enqueue --from` adds {number(rate * ms / 1000)} jobs in that time"


def _find(figures: Figures, workload: str, begin: str, end: str = "") -> Figure | None:
    found = [each for each in _there(figures, workload) if each.what.startswith(begin) and each.what.endswith(end)]
    return found[0] if found else None


def _there(figures: Figures, workload: str) -> list[Figure]:
    return [figure for figure in figures.get(workload, ()) if not figure.is_missing and _has_kind(figure, workload)]


def _has_kind(figure: Figure, workload: str) -> bool:
    """Tell whether a figure of a drain carries what it is of; those of other workloads need not."""
    return workload != "drain" or "kind" in figure.values


def _value(figure: Figure, name: str) -> float:
    return float(str(figure.values[name]))


BLOCKS: Mapping[str, Callable[[Figures], str]] = {
    "job time": where_the_time_goes,
    "knobs": what_the_knobs_do,
    "one file": how_far_one_file_goes,
    "postgres": what_a_job_costs_on_postgres,
}
"""By the mark in docs/performance.md."""
