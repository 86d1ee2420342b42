"""Gates end to end: eight workers that are killed at random never run more at once than a gate lets through.

Each command takes a kernel lock on a file for all it may have alone, and for each of its units; its whole tree holds
them. One that finds its lock taken has proven an overlap, whatever the database says.
"""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from queuectl.actions.connect import connect
from queuectl.actions.gatekeeping import set_limit, set_queue
from queuectl.actions.submit import submit
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import FINAL, State
from queuectl.store import claims, jobs, workers
from queuectl.store.database import Database, Tx
from tests.program import DRAIN_S, Cli, lines_of, wait_for
from tests.scenarios.processes import Guard, send
from tests.store.rows import get_runs

WORKERS = 8
JOBS = 56
KILLING_S = 6.0
SEED = 5
INTERVAL_MS = 200
SPAWN_S = 2.0
"""How much later than its claim a command may say that it has begun, on a machine with much to do."""
SOON_S = 10.0  # about two seconds on a quiet machine, as in test_rescue.py

COMMAND = r"""
cd "$1" || exit 9; shift
for unit in ${QUEUECTL_RES_GPU//,/ }; do set -- "$@" "gpu$unit:1"; done
for gate in "$@"; do
    got=
    for ((slot = 1; slot <= ${gate#*:}; slot++)); do
        exec {fd}>>"${gate%:*}.$slot"
        if flock -n "$fd"; then got=1; break; fi
        exec {fd}>&-
    done
    test "$got" || echo "OVERLAP $gate of $QUEUECTL_CLAIM" >>ledger
done
echo "start $QUEUECTL_QUEUE $QUEUECTL_JOB_ID $(date +%s.%N)" >>ledger
sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
echo "end $QUEUECTL_QUEUE $QUEUECTL_JOB_ID $(date +%s.%N)" >>ledger
"""


@pytest.fixture
def store(cli: Cli) -> Iterator[Database]:
    """The store of the program under test, looked at directly: starting a program for each look would take too long."""
    with closing(connect(cli.target)) as database:
        yield database


@pytest.mark.needs("bash")
@pytest.mark.needs("flock")
@pytest.mark.timeout(DRAIN_S + 120)
def test_eight_workers_killed_at_random_run_no_more_at_once_than_any_gate_lets_through(
    cli: Cli, store: Database, tmp_path: Path
) -> None:
    make_gates(store)
    add_jobs(cli, tmp_path)
    start = ("worker", "start", "-n", str(WORKERS), "--resource", "gpu=2")
    supervisor = cli.start(*start)

    kill_at_random(store, supervisor, lambda: cli.start(*start))
    wait_for(lambda: store.read(is_over), "every job at its end", DRAIN_S)

    ledger = lines_of(tmp_path / "ledger")
    assert [line for line in ledger if line.startswith("OVERLAP")] == []
    assert {job.state for job in all_jobs(store)} == {State.COMPLETED}
    assert sum(line.startswith("end") for line in ledger) >= JOBS
    assert_rate_was_kept(store, ledger)


@pytest.mark.needs("flock")
def test_the_mutex_of_a_killed_worker_is_free_again_as_soon_as_a_plain_job_is_rescued(
    cli: Cli, store: Database, guards: Callable[[str], Guard], record_property: Callable[[str, object], None]
) -> None:
    plain, mutex, waiting = guards("plain"), guards("mutex"), guards("waiting")
    add(store, plain.once("sleep 600"))
    cli.start("worker", "start", "-n", "2")
    plain.wait_for_run(1)
    kill_the_holder(store)
    plain_s = seconds_until(lambda: plain.wait_for_run(2))

    add(store, mutex.once("sleep 600"), mutexes=("db",))
    mutex.wait_for_run(1)
    add(store, waiting.around("true"), mutexes=("db",))
    kill_the_holder(store)
    mutex_s = seconds_until(lambda: waiting.wait_for_run(1))

    record_property("rescue_s", {"plain": round(plain_s, 1), "mutex": round(mutex_s, 1)})
    assert mutex.lines == ["run 1", "run 2"]
    assert mutex_s < plain_s + SOON_S


def make_gates(store: Database) -> None:
    """Set what the jobs must stay within."""
    set_limit(store, "api", 3, who="me")
    set_queue(store, "narrow", {"concurrency": 3}, who="me")
    set_queue(store, "slow", {"rate": f"{1000 // INTERVAL_MS}/s"}, who="me")


def add_jobs(cli: Cli, folder: Path) -> None:
    """Add jobs that name some of everything, by chance."""
    dice = random.Random(SEED)
    script = folder / "gate.sh"
    script.write_text(COMMAND)
    lines = []
    for number in range(JOBS):
        gates = ["mutex"] * (number % 3 == 0) + ["api"] * dice.randint(0, 1)
        queue = dice.choice(["default", "other", "narrow"]) if number % 7 else "slow"
        taken = [f"{gate}:{1 if gate == 'mutex' else 3}" for gate in gates] + ["narrow:3"] * (queue == "narrow")
        fields: dict[str, object] = {"argv": ["bash", str(script), str(folder), *taken], "queue": queue}
        fields |= {"mutex": ["m"]} if "mutex" in gates else {}
        fields |= {"limits": ["api"]} if "api" in gates else {}
        fields |= {"use": {"gpu": dice.randint(1, 2)}} if dice.random() < 0.3 else {}
        lines.append(json.dumps(fields))
    cli.ok("enqueue", "--from", "-", stdin="\n".join(lines))


def kill_at_random(store: Database, supervisor: "subprocess.Popen[str]", start: Callable[[], object]) -> None:
    """Kill workers that hold a job, one by one, and once the supervisor; whoever lost a job twice is spared.

    A job that is lost three times is buried, and here all are to complete.
    """
    dice = random.Random(SEED)
    until = time.monotonic() + KILLING_S
    while (left_s := until - time.monotonic()) > 0 and not store.read(is_over):
        if left_s < KILLING_S / 2 and supervisor.poll() is None:
            supervisor.kill()
            supervisor.wait()
            start()
        if victims := store.read(holders):
            send(signal.SIGKILL, dice.choice(victims))
        time.sleep(dice.uniform(0.2, 0.8))  # not to wait for something: this is how often one dies


def holders(tx: Tx) -> list[int]:
    """Return the pids of the workers that hold jobs of which none was lost before, in a fixed order."""
    risky = {claim.job.worker_id for claim in claims.running(tx) if claim.job.losses}
    busy = {claim.job.worker_id for claim in claims.running(tx)} - risky
    return sorted(worker.pid for worker in workers.live(tx) if worker.id in busy)


def is_over(tx: Tx) -> bool:
    """Whether every job has ended."""
    return all(state in FINAL for of_queue in jobs.counts(tx).values() for state in of_queue)


def assert_rate_was_kept(store: Database, ledger: Sequence[str]) -> None:
    """Check the starts by the store, to the millisecond, and by what the commands wrote themselves."""
    slow = [job.seq for job in all_jobs(store) if job.queue == "slow"]
    claimed = sorted(run.started_at for seq in slow for run in get_runs(store, seq))
    assert len(claimed) >= JOBS // 7
    assert min(later - one for one, later in pairwise(claimed)) >= INTERVAL_MS
    begun = sorted(float(line.split()[3]) for line in ledger if line.startswith("start slow"))
    assert begun[-1] - begun[0] >= (len(begun) - 1) * INTERVAL_MS / 1000 - SPAWN_S


def all_jobs(store: Database) -> Sequence[Job]:
    """Return every job."""
    return store.read(lambda tx: jobs.by_seqs(tx, range(1, JOBS + 1)))


def add(store: Database, command: str, mutexes: tuple[str, ...] = ()) -> None:
    """Add a job."""
    submit(store, [JobSpec(command=command, cwd="/", mutexes=mutexes)], who="me", environ={})


def kill_the_holder(store: Database) -> None:
    """Kill the one worker that holds a job."""
    (pid,) = wait_for(lambda: store.read(holders), "a worker with a job")
    send(signal.SIGKILL, pid)


def seconds_until(wait: Callable[[], None]) -> float:
    """Return how long something took to come about."""
    began = time.monotonic()
    wait()
    return time.monotonic() - began
