"""Rescue end to end: real workers die by real signals, and every job of theirs goes on, once."""

import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.store import workers
from queuectl.store.database import Database
from tests.program import Cli, wait_for
from tests.runtime.running import STEP_BY_STEP, WAYS
from tests.scenarios.hosts import OtherHost, WallClock, other_host, start_under
from tests.scenarios.processes import (
    Guard,
    Guards,
    Process,
    commands_of,
    cut_power,
    living,
    process_of,
    send,
    worker_pids,
)
from tests.scenarios.working import (
    enqueue_all,
    on_postgres,
    on_sqlite,
    runs_of,
    seconds,
    stays,
    wait_for_all,
    wait_for_workers,
    workers_of,
)
from tests.store.rows import get_worker

SOON_S = 20.0  # about two seconds on a quiet machine, and a lease is 60
LATE_S = 45.0
LEASE_S = 7.0
KILLED_THREE_TIMES = "its worker died 3 times while running it"


@pytest.fixture
def elsewhere(cli: Cli) -> Iterator[OtherHost]:
    """The program on another host that shares the store; a worker of one that falls silent is given up after 7 s."""
    cli.ok("config", "set", "worker_heartbeat_interval", "1")
    cli.ok("config", "set", "lock_lease_seconds", f"{LEASE_S:g}")
    with other_host(cli) as host:
        yield host


@pytest.fixture
def innocent() -> Iterator[Process]:
    """A process that has nothing to do with any job."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as bystander:
        process = process_of(bystander.pid)
        assert process is not None
        yield process
        bystander.kill()


# One host: the lock of a dead worker can be taken, so its death is known at once.


def test_a_job_runs_again_soon_when_its_worker_and_supervisor_are_killed_beside_another(
    cli: Cli, guard: Guard, record_property: Callable[[str, object], None]
) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    killed = cli.start("worker", "start")
    guard.wait_for_run(1)
    (worker,) = worker_pids(cli)
    cli.start("worker", "start")
    wait_for_workers(cli, 2)

    send(signal.SIGKILL, killed.pid, worker)
    killed_at = time.monotonic()
    guard.wait_for_run(2)
    took = time.monotonic() - killed_at

    record_property("seconds_to_run_again", took)
    assert_was_lost_once(cli, job_id)
    assert guard.lines == ["run 1", "run 2"]
    assert took < SOON_S


@on_sqlite
@pytest.mark.parametrize(
    "line", ["exec env -i sh -c 'CLEARED; exec sleep 600'", "exec env -i sh -c 'setsid sleep 600 & CLEARED; wait'"]
)
@pytest.mark.parametrize("way", WAYS)
def test_a_command_that_was_ahead_of_the_note_of_its_pid_is_ended_before_it_runs_again(
    cli: Cli, guard: Guard, tmp_path: Path, line: str, way: str
) -> None:
    """Its worker is killed between the two, and nothing of the command carries a mark any more."""
    cleared = tmp_path / "cleared"
    job_id = cli.enqueue(guard.once(line.replace("CLEARED", f"echo >{cleared}")))
    start_under(cli, [], "worker", "start", env=killed_before_noting_a_pid(tmp_path, cleared, way))

    guard.wait_for_run(2)

    assert_was_lost_once(cli, job_id)
    assert guard.lines == ["run 1", "run 2"]
    assert guard.holders() == set()


@on_sqlite
def test_a_worker_without_a_descriptor_left_hands_a_job_back_and_works_on(cli: Cli) -> None:
    cli.start("worker", "start")
    (worker,) = wait_for_workers(cli, 1)
    cli.wait_for_state(cli.enqueue("true"), "completed")  # it has opened all that it needs for itself
    pid = int(str(worker["pid"]))
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = next(number for number in range(len(taken) + 1) if number not in taken)

    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + 1, limits[1]))  # a pipe needs two
    job_id = cli.enqueue("true")
    wait_for(lambda: any(run["outcome"] for run in runs_of(cli.job(job_id))), "the end of a first run")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    job = cli.wait_for_state(job_id, "completed")

    assert runs_of(job)[0]["outcome"] == "handed_back"
    assert (job["attempts"], job["losses"]) == (1, 0)
    assert worker_pids(cli) == [pid]


def test_a_job_whose_worker_and_supervisor_were_killed_waits_for_the_next_start(cli: Cli, guard: Guard) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    killed = cli.start("worker", "start")
    guard.wait_for_run(1)

    send(signal.SIGKILL, killed.pid, *worker_pids(cli))
    wait_for(lambda: not workers_of(cli) or None, "nobody alive")
    before = cli.job(job_id)["state"]
    cli.drain()

    assert before == "processing"
    assert_was_lost_once(cli, job_id)
    assert guard.lines == ["run 1", "run 2"]
    assert_nobody_lives(cli)


@pytest.mark.parametrize("with_commands", [False, True], ids=["commands-live-on", "commands-die-too"])
def test_nothing_is_lost_or_doubled_when_everything_of_a_home_is_killed(
    cli: Cli, guards: Guards, with_commands: bool
) -> None:
    named = [guards(f"job-{number}") for number in range(6)]
    ids = enqueue_all(cli, [guard.once("sleep 600 & setsid sleep 600 & wait") for guard in named])
    for _ in range(2):
        cli.start("worker", "start", "-n", "2", "-j", "2")
    for guard in named:
        guard.wait_for_run(1)
    cli.start("worker", "stop")

    cut_power(cli, spared=[] if with_commands else commands_of(cli, *ids))
    cli.drain("-j", "3")

    for job_id in ids:
        assert_was_lost_once(cli, job_id)
    assert [guard.lines for guard in named] == [["run 1", "run 2"]] * 6
    assert guards.holders() == set()
    assert_nobody_lives(cli)


def test_after_a_reboot_jobs_are_rescued_at_once_and_whoever_has_the_old_pid_lives_on(
    cli: Cli, db: Database, guard: Guard, innocent: Process
) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    leader = kill_everything(cli, guard)

    reboot(cli, db, leader, innocent)
    begun_at = time.monotonic()
    cli.drain()
    took = time.monotonic() - begun_at

    assert_was_lost_once(cli, job_id)
    assert took < LATE_S  # and not only after the lease of 60 s
    assert living([innocent]) == {innocent}
    assert_nobody_lives(cli)


@on_sqlite
def test_after_a_reboot_that_took_the_locks_jobs_are_rescued_all_the_same(
    cli: Cli, db: Database, guard: Guard, innocent: Process
) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    leader = kill_everything(cli, guard)

    reboot(cli, db, leader, innocent)
    for lock in Path(cli.target.home.run).glob("*.lock"):
        lock.unlink()
    cli.drain()

    assert_was_lost_once(cli, job_id)
    assert living([innocent]) == {innocent}


@on_sqlite
def test_a_home_whose_host_has_another_name_by_now_is_rescued_all_the_same(cli: Cli, guard: Guard) -> None:
    """As when a container is replaced: each has a name of its own, and the home is a volume."""
    job_id = cli.enqueue(guard.once("sleep 600"))
    kill_everything(cli, guard)

    with other_host(cli, home=cli.target.home.root) as renamed:
        worker = renamed.start("worker", "start", "--until-idle")
        code = worker.wait(LATE_S)

    assert code == 0
    assert_was_lost_once(cli, job_id)


def test_a_job_that_kills_its_worker_is_buried_after_the_third_loss(cli: Cli) -> None:
    cli.ok("config", "set", "backoff_base", "1")
    killer = cli.enqueue("kill -9 $PPID; sleep 600")
    cli.start("worker", "start")

    job = cli.wait_for_state(killer, "dead")

    assert (job["error"], job["attempts"], job["losses"]) == (KILLED_THREE_TIMES, 0, 3)
    assert [run["outcome"] for run in runs_of(job)] == ["lost"] * 3
    assert [job["id"] for job in cli.json("dlq", "list")] == [killer]
    cli.wait_for_state(cli.enqueue("true"), "completed")


def test_bystanders_of_a_job_that_kills_its_worker_all_complete_uncharged(
    cli: Cli, tmp_path: Path, guards: Guards
) -> None:
    cli.ok("config", "set", "backoff_base", "1")
    begun, kills = tmp_path / "begun", tmp_path / "kills"
    kills.touch()
    # Each lives for as long as the killer may still strike, unless it runs alone by now.
    line = f"echo >>{begun}; while test $QUEUECTL_RUN -lt 3 -a $(wc -l <{kills}) -lt 3; do sleep 0.1; done"
    named = [guards(f"bystander-{number}") for number in range(19)]
    ids = enqueue_all(cli, [guard.around(line) for guard in named])
    killer = cli.enqueue(
        f"while test $(wc -l <{begun}) -lt 19; do sleep 0.1; done; echo >>{kills}; kill -9 $PPID; sleep 600"
    )
    cli.start("worker", "start", "-j", "20")

    dead = cli.wait_for_state(killer, "dead")
    jobs = wait_for_all(cli, ids, "completed", "dead")

    assert (dead["error"], dead["attempts"], dead["losses"]) == (KILLED_THREE_TIMES, 0, 3)
    assert Counter((job["state"], job["attempts"]) for job in jobs) == {("completed", 1): 19}
    assert max(int(str(job["losses"])) for job in jobs) <= 2
    assert not any("OVERLAP" in guard.lines for guard in named)


def test_a_worker_that_was_given_up_stops_its_commands_and_another_takes_its_place(
    cli: Cli, db: Database, guard: Guard
) -> None:
    cli.ok("config", "set", "worker_heartbeat_interval", "1")
    job_id = cli.enqueue(guard.once("sleep 600"))
    supervisor = cli.start("worker", "start")
    guard.wait_for_run(1)
    (worker,) = wait_for_workers(cli, 1)
    old = process_of(int(str(worker["pid"])))
    assert old is not None

    give_up(db, str(worker["id"]))
    closed = get_worker(db, str(worker["id"]))
    wait_for(lambda: not living([old]) or None, "the old worker to leave")
    job = cli.wait_for_state(job_id, "completed")

    assert get_worker(db, str(worker["id"])) == closed
    assert [(run["worker"] == worker["id"], run["outcome"]) for run in runs_of(job)] == [
        (True, "lost"),
        (False, "exited"),
    ]
    assert (job["attempts"], job["losses"], guard.lines) == (1, 1, ["run 1", "run 2"])
    assert wait_for_workers(cli, 1)[0]["id"] != worker["id"]
    assert supervisor.poll() is None


# Another host: its locks cannot be reached, so its death is judged by a heartbeat that stands still.


@on_postgres
def test_a_job_of_a_host_that_died_is_taken_over_after_the_lease_and_not_before(
    cli: Cli, elsewhere: OtherHost, db: Database, guard: Guard
) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    far = elsewhere.start("worker", "start")
    guard.wait_for_run(1)
    (worker,) = wait_for_workers(cli, 1)
    cli.start("worker", "start")
    wait_for_workers(cli, 2)

    next_beat(db, str(worker["id"]))
    died_at = time.time()
    kill_host(cli, far, worker, guard)
    job = cli.wait_for_state(job_id, "completed")

    first, second = runs_of(job)
    assert [run["outcome"] for run in (first, second)] == ["lost", "exited"]
    assert (worker["host"], first["host"], second["host"] != first["host"]) == ("elsewhere", "elsewhere", True)
    assert LEASE_S - 1 <= seconds(second["started_at"]) - died_at < LEASE_S + LATE_S
    assert (job["attempts"], job["losses"], guard.lines) == (1, 1, ["run 1", "run 2"])


@on_postgres
def test_a_supervisor_goes_by_what_it_has_seen_itself_and_not_by_how_old_a_heartbeat_is(
    cli: Cli, elsewhere: OtherHost, db: Database, guard: Guard
) -> None:
    job_id = cli.enqueue(guard.once("sleep 600"))
    far = elsewhere.start("worker", "start")
    guard.wait_for_run(1)
    (worker,) = wait_for_workers(cli, 1)
    kill_host(cli, far, worker, guard)
    db.write(lambda tx: tx.changed("UPDATE workers SET beat_at = beat_at - 3600000"))

    begun_at = time.time()
    cli.start("worker", "start")
    job = cli.wait_for_state(job_id, "completed")

    assert LEASE_S <= seconds(runs_of(job)[1]["started_at"]) - begun_at < LEASE_S + LATE_S


@on_postgres
@pytest.mark.needs("faketime")
def test_a_worker_elsewhere_that_lives_is_left_alone_whatever_its_clock_says(
    cli: Cli, elsewhere: OtherHost, db: Database, tmp_path: Path, guards: Guards
) -> None:
    clocks = {"right": 0, "ahead": 3600, "behind": -3600}
    named = {name: guards(name) for name in clocks}
    for name, offset in clocks.items():
        (tmp_path / name).mkdir()
        clock = WallClock(tmp_path / name)
        clock.set(offset)
        cli.enqueue(
            "--id", name, "--queue", name, named[name].around(f"while ! test -e {tmp_path}/go; do sleep 0.1; done")
        )
        elsewhere.start("worker", "start", "--queue", name, env=clock.environ if offset else {})
    for guard in named.values():
        guard.wait_for_run(1)
    cli.start("worker", "start")
    wait_for_workers(cli, 4)

    stays(lambda: len(db.read(workers.live)) == 8, "four workers with their supervisors", 2 * LEASE_S)
    (tmp_path / "go").touch()
    jobs = [cli.wait_for_state(name, "completed") for name in clocks]

    assert [(job["attempts"], job["losses"], job["run"]) for job in jobs] == [(1, 0, 1)] * 3
    assert [guard.lines for guard in named.values()] == [["run 1"]] * 3


def assert_was_lost_once(cli: Cli, job_id: str) -> None:
    """A job has completed in its second run, and the first was nobody's fault."""
    job = cli.wait_for_state(job_id, "completed")
    assert [run["outcome"] for run in runs_of(job)] == ["lost", "exited"]
    assert (job["attempts"], job["losses"]) == (1, 1)


def assert_nobody_lives(cli: Cli) -> None:
    """No row says that it lives, and no lock is left."""
    assert {row["state"] for row in cli.json("worker", "list", "--all")} <= {"ended", "lost"}
    assert set(os.listdir(cli.target.home.run)) <= {"wake", "changed", "setup.lock"}


def kill_everything(cli: Cli, guard: Guard) -> int:
    """Start a worker, and when it runs the command, kill all that is of this home; return whom it had started."""
    cli.start("worker", "start")
    guard.wait_for_run(1)
    leader = next(holder.pid for holder in guard.holders() if os.getsid(holder.pid) == holder.pid)
    cut_power(cli)
    wait_for(lambda: not guard.holders() or None, "nothing left of the command")
    return leader


def reboot(cli: Cli, db: Database, leader: int, innocent: Process) -> None:
    """Let the rows of all workers be of an earlier boot; every pid they knew belongs to somebody else by now."""
    sql = "UPDATE workers SET boot_id = 'an earlier boot', pid = :pid"
    db.write(lambda tx: tx.changed(sql, {"pid": innocent.pid}))
    noted = {path: path.read_text() for path in Path(cli.target.home.run).glob("*.lock")}
    assert any(f"{leader} " in text for text in noted.values()), noted
    for path, text in noted.items():
        path.write_text(text.replace(f"{leader} ", f"{innocent.pid} "))


def killed_before_noting_a_pid(folder: Path, cleared: Path, way: str) -> dict[str, str]:
    """Return the environment of a worker that is killed after its first command has begun, before it noted its pid.

    In one call the note of the pid cannot be kept from being made, and so is undone before the worker dies.
    """
    (folder / "sitecustomize.py").write_text(
        "import os, time\n"
        "from queuectl.system import launch as quick\n"
        "from queuectl.system.liveness import LifeLock\n"
        "note, launch = LifeLock.note_pid, quick.launch\n"
        "def die():\n"
        f"    while not os.path.exists({str(cleared)!r}): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), 9)\n"
        "def note_or_die(self, leader, pid, since):\n"
        "    if leader.run == 1: die()\n"
        "    note(self, leader, pid, since)\n"
        "def launch_and_die(commands, signals, stdin, notes, *args):\n"
        "    told = launch(commands, signals, stdin, notes, *args)\n"
        "    if told != ([], None) and commands[0][1] == 1:\n"
        "        os.pwrite(notes[0], b'%10d %16.3f' % (0, 0.0), notes[1])\n"
        "        die()\n"
        "    return told\n"
        f"if {way == STEP_BY_STEP}: quick._launch = None\n"
        "LifeLock.note_pid, quick.launch = note_or_die, launch_and_die\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])}


def give_up(db: Database, worker_id: str) -> None:
    """Close the row of a worker that lives, as one would who took it for dead."""
    sql = "UPDATE workers SET state = 'lost', ended_at = :now WHERE id = :id"
    assert db.write(lambda tx: tx.changed(sql, {"id": worker_id, "now": tx.now})) == 1


def next_beat(db: Database, worker_id: str) -> None:
    """Wait until a worker has just counted a heartbeat."""
    before = get_worker(db, worker_id).beats
    wait_for(lambda: get_worker(db, worker_id).beats > before or None, "a heartbeat")


def kill_host(cli: Cli, supervisor: "subprocess.Popen[str]", worker: dict[str, object], guard: Guard) -> None:
    """Kill supervisor, worker and commands of a host at one stroke."""
    send(signal.SIGKILL, supervisor.pid, int(str(worker["pid"])), *(holder.pid for holder in guard.holders()))
    wait_for(lambda: not guard.holders() or None, "nothing left of the command")
