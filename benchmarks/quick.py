"""The main figures in under two minutes: `make bench-quick`. Prints a table and writes results/quick.json.

Each figure is a ratio to its unit, measured in turns in the same run; the median counts, the spread is shown.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import queuectl
from benchmarks import stores
from queuectl.actions.connect import Target, connect
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.after import LATEST, Kind, Parent
from queuectl.model.attempt import Report
from queuectl.model.duty import Duty
from queuectl.model.job import Claim, JobSpec
from queuectl.model.verdict import Outcome
from queuectl.runtime.identity import Identity, new_id
from queuectl.store import workers
from queuectl.store.takers import Taker

QUEUECTL = str(Path(sys.executable).with_name("queuectl"))
RESULT = Path(__file__).parent / "results" / "quick.json"
DRAIN_JOBS = 2000
DRAIN_WORKERS = 2
DRAIN_ROUNDS = 3
ENQUEUE_ROUNDS = 25
PICKUPS = 40
PICKUP_P50_MS = 5
PICKUP_P95_MS = 10
HISTORY_ROWS = 300_000
SHUT_OUT_ROWS = 1_000_000
CORE_JOBS = 1500
CORE_ROUNDS = 3

Figure = dict[str, object]


def main() -> None:
    """Measure everything and say it."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(Path(queuectl.__file__).parent)])
    figures: list[Figure] = []
    with ExitStack() as stack:
        server = stack.enter_context(stores.postgres_server())
        kinds: dict[str, Callable[[str], Target]] = {
            "SQLite": lambda _: stack.enter_context(stores.sqlite_store()),
            "PostgreSQL": lambda name: stack.enter_context(stores.postgres_store(server, name)),
        }
        for kind, make in kinds.items():
            figures.append(measure_drain(kind, make))
            print_figure(figures[-1])
        figures.append(measure_enqueue(kinds["SQLite"]("enqueue")))
        print_figure(figures[-1])
        for kind, make in kinds.items():
            figures.append(measure_pickup(kind, make("pickup")))
            print_figure(figures[-1])
        for kind, make in kinds.items():
            figures.append(measure_growth(kind, make("plain"), make("history")))
            print_figure(figures[-1])
        for kind, make in kinds.items():
            figures.append(measure_release(kind, make("alone"), make("linked")))
            print_figure(figures[-1])
        for kind, make in kinds.items():
            figures.append(measure_shut_out(kind, make("open"), make("shut"), list(stores.GATES)))
            print_figure(figures[-1])
    took = time.monotonic() - begun
    result = {"version": queuectl.__version__, "machine": machine(), "seconds": round(took, 1), "figures": figures}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"took {took:.0f} s on {machine()}; written to benchmarks/results/quick.json")


def measure_drain(kind: str, make: Callable[[str], Target]) -> Figure:
    """Drain no-op commands with two workers against `xargs -P2`, start-up included on both sides."""
    ours, theirs = [], []
    for turn in range(DRAIN_ROUNDS):
        target = make(f"drain{turn}")
        environ = stores.environ_of(target)
        lines = ":\n" * DRAIN_JOBS
        subprocess.run(
            [QUEUECTL, "enqueue", "--from", "-"],
            input=lines.encode(),
            env=environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        theirs.append(_seconds(["xargs", "-P", str(DRAIN_WORKERS), "-I{}", "sh", "-c", "{}"], environ, lines.encode()))
        ours.append(_seconds([QUEUECTL, "worker", "start", "-n", str(DRAIN_WORKERS), "--until-idle"], environ, None))
        left = json.loads(subprocess.check_output([QUEUECTL, "status", "--json"], env=environ))["jobs"]
        assert left["completed"] == DRAIN_JOBS, left
    ratios = [unit / own for unit, own in zip(theirs, ours, strict=True)]
    budget = 1.0 if kind == "SQLite" else 0.4
    rate = DRAIN_JOBS / statistics.median(ours)
    return figure(
        f"drain {DRAIN_JOBS} no-ops, {DRAIN_WORKERS} workers, {kind}",
        f"x of xargs -P{DRAIN_WORKERS}",
        ratios,
        budget,
        f"{rate:.0f} jobs/s",
        is_more_better=True,
    )


def measure_enqueue(target: Target) -> Figure:
    """Add one job from a shell against starting Python for nothing."""
    environ = stores.environ_of(target)
    ours, theirs = [], []
    for _ in range(ENQUEUE_ROUNDS):
        theirs.append(_seconds([sys.executable, "-c", "pass"], environ, None))
        ours.append(_seconds([QUEUECTL, "enqueue", "true"], environ, None))
    ratios = [own / unit for unit, own in zip(theirs, ours, strict=True)]
    return figure(
        "enqueue one job, SQLite", "x of python3 -c pass", ratios, 3.5, f"{statistics.median(ours) * 1000:.1f} ms"
    )


def measure_pickup(kind: str, target: Target) -> Figure:
    """Time from a commit to the first act of the command in an idle worker, against spawning it right here."""
    fifo = os.path.join(target.home.root, "fifo")
    database = connect(target)
    os.mkfifo(fifo)
    worker = subprocess.Popen([QUEUECTL, "worker", "start"], env=stores.environ_of(target), stderr=subprocess.DEVNULL)
    try:
        while not any(row.beats for row in database.read(workers.live) if row.kind == workers.WORKER):
            time.sleep(0.05)
        ours, theirs = [], []
        for _ in range(PICKUPS):
            time.sleep(0.05)  # let the worker fall idle again
            submit(database, [JobSpec(command=f": >{fifo}", cwd="/")], who="bench", environ={})
            ours.append(_until_opened(fifo))
            pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", f": >{fifo}"], os.environ)
            theirs.append(_until_opened(fifo))
            os.waitpid(pid, 0)
    finally:
        worker.terminate()
        worker.wait()
        database.close()
    p50, p95 = statistics.median(ours) * 1000, statistics.quantiles(ours, n=20)[18] * 1000
    bare = statistics.median(theirs) * 1000
    ratios = [own / unit for unit, own in zip(theirs, ours, strict=True)]
    note = (
        f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, bare spawn {bare:.1f} ms (budget {PICKUP_P50_MS} and {PICKUP_P95_MS} ms)"
    )
    row = figure(f"pick-up by an idle worker, {kind}", "x of a bare spawn", ratios, None, note)
    return {**row, "is_met": p50 <= PICKUP_P50_MS and p95 <= PICKUP_P95_MS}


def measure_growth(kind: str, plain: Target, history: Target) -> Figure:
    """Claim and settle on an empty queue against one with years of history, future and paused jobs."""
    stores.fill_with_history(history, HISTORY_ROWS)
    ratios, own = [], []
    for _ in range(CORE_ROUNDS):
        unit = _core_seconds(plain)
        own.append(_core_seconds(history))
        ratios.append(own[-1] / unit)
    note = f"{statistics.median(own) / CORE_JOBS * 1e6:.0f} us each; {HISTORY_ROWS:,} rows of each kind"
    return figure(f"claim + settle with history, {kind}", "x of an empty queue", ratios, 1.5, note)


def measure_shut_out(kind: str, plain: Target, crowded: Target, gates: Sequence[str]) -> Figure:
    """Claim and settle on an empty queue against one beside a million jobs that may not run, for each reason."""
    stores.fill_with_shut_out(crowded, gates, SHUT_OUT_ROWS)
    ratios, own = [], []
    for _ in range(CORE_ROUNDS):
        unit = _core_seconds(plain)
        own.append(_core_seconds(crowded))
        ratios.append(own[-1] / unit)
    note = f"{statistics.median(own) / CORE_JOBS * 1e6:.0f} us each; {SHUT_OUT_ROWS:,} jobs each {', '.join(gates)}"
    return figure(f"claim + settle beside shut-out jobs, {kind}", "x of an empty queue", ratios, 1.5, note)


def measure_release(kind: str, plain: Target, linked: Target) -> Figure:
    """Claim and settle plain jobs against as many that wait for one: its end, which lets them all go, included."""
    after = (Parent(kind=Kind.OK, id=LATEST),)
    ratios, own = [], []
    for _ in range(CORE_ROUNDS):
        unit = _core_seconds(plain)
        own.append(_core_seconds(linked, after))
        ratios.append(own[-1] / unit)
    note = f"{statistics.median(own) / CORE_JOBS * 1e6:.0f} us each; {CORE_JOBS:,} jobs that run after one"
    return figure(f"claim + settle of dependents, {kind}", "x of plain jobs", ratios, 1.5, note)


def figure(
    name: str, unit: str, ratios: Sequence[float], budget: float | None, note: str, *, is_more_better: bool = False
) -> Figure:
    """Put a measurement into a row."""
    median = statistics.median(ratios)
    is_met = budget is None or (median >= budget if is_more_better else median <= budget)
    return {
        "name": name,
        "ratio": round(median, 2),
        "unit": unit,
        "lowest": round(min(ratios), 2),
        "highest": round(max(ratios), 2),
        "budget": budget,
        "is_met": is_met,
        "note": note,
    }


def print_figure(row: Figure) -> None:
    """Print a row as soon as it is known."""
    met = "met" if row["is_met"] else "MISSED"
    budget = f"budget: {met}" if row["budget"] is None else f"budget {row['budget']}: {met}"
    spread = f"({row['lowest']} to {row['highest']})"
    print(f"{row['name']:<42} {row['ratio']:>5} {row['unit']:<22} {spread:<18} {budget:<19} {row['note']}", flush=True)


def machine() -> str:
    """Say what it ran on."""
    return f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"


def _core_seconds(target: Target, after: tuple[Parent, ...] = ()) -> float:
    """Claim and settle jobs one by one without running anything, as a worker does; `after` adds one they wait for."""
    database = connect(target, is_durable=False)
    spec = JobSpec(command="true", cwd="/")
    if after:
        submit(database, [spec], who="bench", environ={})
    submit(database, [spec.replace(after=after)] * CORE_JOBS, who="bench", environ={})
    identity = Identity(
        database, target.home, new_id(), kind=workers.WORKER, supervisor_id=None, duty=Duty(), slots=1, lease_s=60
    )
    holder = Holder(taker=Taker(worker_id=identity.id), host=identity.host)
    done = Report(outcome=Outcome.exited(0))
    ended: list[tuple[Claim, Report]] = []
    begun = time.perf_counter()
    for _ in range(CORE_JOBS + 1 + bool(after)):
        step = settle_and_claim(database, holder, ended, 1, {})
        ended = [(claim, done) for claim in step.claimed]
    took = time.perf_counter() - begun
    assert not ended
    identity.end()
    database.close()
    return took


def _until_opened(fifo: str) -> float:
    """Return how long it takes until somebody opens the other end; come back when he has closed it."""
    begun = time.perf_counter()
    fd = os.open(fifo, os.O_RDONLY)
    took = time.perf_counter() - begun
    os.read(fd, 1)
    os.close(fd)
    return took


def _seconds(argv: Sequence[str], environ: dict[str, str], stdin: bytes | None) -> float:
    begun = time.perf_counter()
    subprocess.run(argv, env=environ, input=stdin, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
