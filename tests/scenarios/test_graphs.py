"""Graphs end to end: ten thousand jobs that wait for each other run in their order while workers are killed at random.

Each command says in one file that it begins and that it ends; the kernel keeps the order of what is appended to it,
whatever the database says.
"""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.actions.connect import connect
from queuectl.model.job import Job
from queuectl.model.states import FINAL, State
from queuectl.store import claims, edges, jobs, workers
from queuectl.store.database import Database, Tx
from tests.program import Cli, lines_of
from tests.scenarios.processes import send

JOBS = 10_000
WORKERS = 4
SEED = 11
NEAR = 300
"""How far back a job looks for those it runs after: near ones make long chains, far ones a wide graph."""
FAILING = 0.03
KILL_AFTER = (50, 450)
SUPERVISOR_TOO = 0.15
DRAIN_S = 600.0
COMMAND = 'echo "s $QUEUECTL_JOB_ID">>log; echo "e $QUEUECTL_JOB_ID">>log'

Graph = dict[str, dict[str, str]]
"""The jobs each job runs after, and how those must end for it."""


@pytest.fixture
def store(cli: Cli) -> Iterator[Database]:
    """The store of the program under test, looked at directly."""
    with closing(connect(cli.target)) as database:
        yield database


@pytest.mark.timeout(DRAIN_S + 60)
def test_ten_thousand_jobs_in_a_random_graph_run_in_order_while_workers_are_killed(
    cli: Cli, store: Database, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    dice = random.Random(SEED)
    failing = {name(number) for number in range(JOBS) if dice.random() < FAILING}
    graph = random_graph(dice, failing)
    add(cli, tmp_path, graph, failing, dice)
    began = time.monotonic()
    supervisors = [start(cli)]

    kills = kill_at_random(store, dice, supervisors, lambda: start(cli))

    record_property("seconds", round(time.monotonic() - began, 1))
    record_property("kills", kills)
    log = lines_of(tmp_path / "log")
    found = {job.id: job for job in store.read(all_jobs)}
    assert kills > JOBS // KILL_AFTER[1] // 2
    assert found.keys() == graph.keys()
    assert {job.id for job in found.values() if job.state is State.DEAD} == failing
    assert {job.state for job in found.values() if job.id not in failing} == {State.COMPLETED}
    assert out_of_order(graph, log) == []
    assert unexplained(found, log) == []
    assert store.read(open_edges) == 0


def start(cli: Cli) -> "subprocess.Popen[str]":
    """Start workers with a supervisor of their own."""
    return cli.start("worker", "start", "-n", str(WORKERS))


def name(number: int) -> str:
    """Return what a job is called."""
    return f"j{number}"


def random_graph(dice: random.Random, failing: set[str]) -> Graph:
    """Return a graph in which every job can run: a failing one is waited for by those that do not mind, or want it."""
    graph: Graph = {}
    for number in range(JOBS):
        nearest = max(0, number - NEAR) if dice.random() < 0.8 else 0
        parents = {name(dice.randrange(nearest, number)) for _ in range(dice.choice((0, 1, 1, 2, 3)))} if number else ()
        kinds = {parent: ("any", "fail") if parent in failing else ("any", "ok", "ok") for parent in sorted(parents)}
        graph[name(number)] = {parent: dice.choice(kind) for parent, kind in kinds.items()}
    return graph


def add(cli: Cli, folder: Path, graph: Graph, failing: set[str], dice: random.Random) -> None:
    """Add all in one batch, in no order."""
    lines = []
    for job_id, parents in graph.items():
        command = f"{COMMAND}; exit 1" if job_id in failing else COMMAND
        after = [f"{kind}:{parent}" for parent, kind in parents.items()]
        fields = {"id": job_id, "command": command, "cwd": str(folder), "max_retries": 0}
        lines.append(json.dumps({**fields, "after": after} if after else fields))
    dice.shuffle(lines)
    cli.ok("enqueue", "--from", "-", stdin="\n".join(lines))


def kill_at_random(
    store: Database,
    dice: random.Random,
    supervisors: "list[subprocess.Popen[str]]",
    start: "Callable[[], subprocess.Popen[str]]",
) -> int:
    """Kill a worker that holds a job after every few hundred jobs, now and then with its supervisor, until all is over.

    Counted in jobs, not in time: a worker takes longer to start on a busy machine, and all would be dead all the time.
    Whoever holds a job that was lost before is spared: one that is lost three times is buried, and here all are to run.
    """
    kills = 0
    goal = dice.randint(*KILL_AFTER)
    until = time.monotonic() + DRAIN_S
    while (ended := store.read(how_many_ended)) < JOBS:
        assert time.monotonic() < until, f"only {ended} of {JOBS} jobs ended within {DRAIN_S} s"
        if ended >= goal and (victims := store.read(holders)):
            if dice.random() < SUPERVISOR_TOO:
                supervisors[-1].kill()
                supervisors[-1].wait()
                supervisors.append(start())
            send(signal.SIGKILL, dice.choice(victims))
            kills += 1
            goal = ended + dice.randint(*KILL_AFTER)
        time.sleep(0.1)  # each look counts ten thousand jobs
    return kills


def holders(tx: Tx) -> list[int]:
    """Return the pids of the workers that hold jobs of which none was lost before."""
    running = claims.running(tx)
    risky = {claim.job.worker_id for claim in running if claim.job.losses}
    busy = {claim.job.worker_id for claim in running} - risky
    return sorted(worker.pid for worker in workers.live(tx) if worker.id in busy)


def how_many_ended(tx: Tx) -> int:
    """Return how many jobs have ended."""
    return sum(number for counts in jobs.counts(tx).values() for state, number in counts.items() if state in FINAL)


def all_jobs(tx: Tx) -> list[Job]:
    """Return every job."""
    return jobs.page(tx, jobs.Filter(), 0, JOBS + 1)


def open_edges(tx: Tx) -> int:
    """Return how many dependencies are not satisfied."""
    return sum(edge.state != "satisfied" for edge in edges.between(tx, [job.seq for job in all_jobs(tx)]))


def out_of_order(graph: Graph, log: Sequence[str]) -> list[str]:
    """Return who began before one it runs after had ended for the last time."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for place, line in enumerate(log):
        what, job_id = line.split()
        if what == "s":
            begun.setdefault(job_id, place)
        else:
            ended[job_id] = place
    return [
        f"{job_id} began before {parent} ended"
        for job_id, parents in graph.items()
        for parent in parents
        if begun[job_id] < ended[parent]
    ]


def unexplained(found: dict[str, Job], log: Sequence[str]) -> list[str]:
    """Return who ran more often than losses explain, or never."""
    starts: dict[str, int] = {}
    for line in log:
        if line.startswith("s "):
            starts[line[2:]] = starts.get(line[2:], 0) + 1
    return [
        f"{job.id} began {starts.get(job.id, 0)} times, has {job.run} runs and {job.losses} losses"
        for job in found.values()
        if not 1 <= starts.get(job.id, 0) <= job.run or job.run != 1 + job.losses
    ]
