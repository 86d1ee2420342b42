"""`python -m benchmarks quick|full|dashboard [--only WORD]... [--names]`: measure, print each figure as it is known.

What was measured is written to benchmarks/results/.

Exits 1 where a workload fails; all but `quick` also where a budget is missed and, without --only, where one was not
judged or a peer that must run did not. Exits 2 at once where a whole run could draw no plots.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import queuectl
from benchmarks import machine, stores, verdict
from benchmarks.bench import Bench
from benchmarks.budgets import BUDGETS, DASHBOARD, FULL
from benchmarks.figures import Figure
from benchmarks.report import RESULTS, ROOT, Result, write_blocks, write_page
from benchmarks.workloads import MODULES, workload

QUICK = "quick"
NO_PLOTS = "no matplotlib, so no plots; make setup installs it, or: pip install -e '.[dev]'"
BUSY = 1.0
"""A load average beyond which figures are not to be believed."""
LEFT_OUT = {QUICK: ("output", DASHBOARD, "peers"), FULL: (DASHBOARD,)}
"""What a run does not measure: that of the dashboard measures nothing else."""


def main() -> int:
    """Measure what is asked for."""
    asked = _arguments()
    if asked.names:
        print(*_chosen(asked.size, asked.only))
        return 0
    if not _can_draw():
        print(NO_PLOTS, file=sys.stderr)
        if not asked.only:
            return 2
    begun, measured_at = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    commit = machine.commit(ROOT)
    _leave_in_order()
    # Without cached byte code every process would compile the program first, which no installed one does.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(Path(queuectl.__file__).parent)])
    with stores.postgres_server() as server_url, tempfile.TemporaryDirectory(prefix="queuectl-bench-") as folder:
        described = machine.describe(server_url)
        print(machine.sentence(described), flush=True)
        if float(described["load"]) > BUSY:
            print("the machine is in use, or was a minute ago: what follows may say little", flush=True)
        bench = Bench(is_quick=asked.size == QUICK, server_url=server_url, folder=Path(folder))
        broken: list[str] = []
        figures = {name: list(_measured(bench, name, broken)) for name in _chosen(asked.size, asked.only)}
    result = Result(
        version=queuectl.__version__,
        commit=commit,
        measured_at=measured_at,
        seconds=round(time.monotonic() - begun, 1),
        machine=described,
        durability=machine.DURABILITY,
        figures=figures,
        broken=broken,
    )
    _write(asked.size + ("-part" if asked.only else "") + ("-broken" if broken else ""), result)
    missed = verdict.missed(figures)
    print(f"took {result.seconds:.0f} s; missed budgets: {len(missed) or 'none'}")
    for figure in missed:
        print(f"  {line(figure)}")
    faults = {"failed": broken}
    if not bench.is_quick and not asked.only:
        faults["not judged"] = verdict.unjudged(figures, [each for each in BUDGETS.values() if each.run == asked.size])
    if asked.size == FULL and not asked.only:
        faults["must run and did not"] = verdict.absent_peers(figures)
    for fault, names in faults.items():
        if names:
            print(f"{fault}: {'; '.join(names)}")
    return int(any(faults.values()) or (bool(missed) and not bench.is_quick))


def _leave_in_order() -> None:
    """On a signal clear servers and stores away and write nothing; a second one does not disturb that."""
    all_of_them = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signals = [each for each in all_of_them if signal.getsignal(each) is not signal.SIG_IGN]  # as nohup has one

    def leave(number: int, _: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        print("\ninterrupted: clearing up; nothing is written", file=sys.stderr, flush=True)
        sys.exit(128 + number)

    for each in signals:
        signal.signal(each, leave)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure queuectl side by side.")
    sizes = "quick takes under 2 minutes, full about 12, dashboard about 4"
    parser.add_argument("size", choices=[QUICK, FULL, DASHBOARD], help=sizes)
    parser.add_argument(
        "--only", action="append", choices=MODULES, metavar="WORD", default=[], help=f"one of: {', '.join(MODULES)}"
    )
    parser.add_argument("--names", action="store_true", help="say what would be measured, and measure nothing")
    asked = parser.parse_args()
    if asked.size == DASHBOARD and asked.only:
        parser.error(f"{DASHBOARD} measures nothing else: leave out --only, or say: full --only {asked.only[0]}")
    return asked


def _chosen(size: str, only: list[str]) -> list[str]:
    if only:
        return [name for name in MODULES if name in only]
    return [name for name in MODULES if (name == DASHBOARD if size == DASHBOARD else name not in LEFT_OUT[size])]


def _measured(bench: Bench, name: str, broken: list[str]) -> Iterator[Figure]:
    begun = time.monotonic()
    try:
        for figure in workload(name)(bench):
            print(line(figure), flush=True)
            yield figure
    except Exception:  # noqa: BLE001 - whatever befalls one, the others keep their figures
        traceback.print_exc()
        broken.append(name)
        yield Figure.missing(name, "it failed")
    print(f"  {name} took {time.monotonic() - begun:.0f} s", flush=True)


def line(figure: Figure) -> str:
    """Write a figure as one line of a terminal."""
    spread = f"({figure.spread_text})" if figure.spread_text else ""
    cells = (f"{figure.ratio_text:<28}", f"{spread:<18}", f"{figure.absolute_text:<16}", f"{figure.verdict_text:<26}")
    return " ".join((f"{figure.what:<66}", *cells, figure.note)).rstrip()


def _write(name: str, result: Result) -> None:
    """Write what was measured: as JSON, as a page, as plots.

    A part, or a run of which something failed, lies beside the newest whole one, never over it.
    """
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result.row(), indent=1) + "\n"
    (RESULTS / f"{name}.json").write_text(text)
    result = Result.of_row(json.loads(text))  # what is shown is what is in the file, to the last digit
    drawn: list[str] = []
    if _can_draw():
        from benchmarks.plots import draw_all

        drawn = draw_all(result.figures, RESULTS, name)
    write_page(name, result)
    if name in (FULL, DASHBOARD):
        write_blocks(name, result)
    print(f"written to benchmarks/results/: {', '.join([f'{name}.json', f'{name}.md', *drawn])}")


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


if __name__ == "__main__":
    sys.exit(main())
