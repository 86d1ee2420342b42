"""Processes: a whole tree is seen and ended, and nobody else's."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import clock
from queuectl.system.home import Home
from queuectl.system.liveness import LifeLock
from queuectl.system.names import CLAIM_VARIABLE
from queuectl.system.pipes import inode_of
from queuectl.system.process import Left, Processes, end_left, is_over, kill, reap, signal_name, spawn
from tests.program import pids_with, wait_for
from tests.scenarios.faults import need_root


class Started:
    """A command in a session of its own, carrying a mark."""

    def __init__(self, line: str, output: int | None = None) -> None:
        self.mark = f"{secrets.token_hex(8)}:1:1"
        env = {**os.environb, CLAIM_VARIABLE.encode(): self.mark.encode()}
        devnull = os.open("/dev/null", os.O_RDWR)
        self.pid = spawn(["/bin/sh", "-c", line], env, "/", stdin=devnull, output=devnull if output is None else output)
        os.close(devnull)

    def wait_for_tree(self, count: int) -> list[int]:
        """Wait until the command has so many processes, and return them."""
        return wait_for(
            lambda: found if len(found := Processes().tree(self.pid, self.mark, {})) == count else None, f"{count}"
        )

    def end(self) -> None:
        """Kill and collect what is left."""
        end_left([Left(mark=self.mark)])
        if not reap(self.pid):
            wait_for(lambda: reap(self.pid), "the leader")


def is_killed(started: Started) -> bool:
    """Kill what is left of a command; True means nothing was."""
    members = Processes().tree(started.pid, started.mark, {})
    kill(members)
    return not members


@pytest.fixture
def sleeper() -> Iterator[Started]:
    """A command with a plain child, one in a session of its own, and one with a cleared environment."""
    started = Started("sleep 600 & setsid sleep 600 & env -i sleep 600 & wait")
    started.wait_for_tree(4)
    # A process counts before it runs its program, and until then it still has the environment of its parent.
    wait_for(lambda: len(pids_with(CLAIM_VARIABLE, started.mark)) == 3 or None, "the cleared environment")
    yield started
    started.end()


def test_the_tree_is_group_session_descendants_and_mark(sleeper: Started) -> None:
    members = Processes().tree(sleeper.pid, sleeper.mark, {})

    assert sleeper.pid in members
    assert set(pids_with(CLAIM_VARIABLE, sleeper.mark)) < set(members)


def test_a_marked_orphan_in_a_session_of_its_own_belongs_to_the_tree() -> None:
    started = Started("(setsid sh -c 'sleep 600; :' &) ; sleep 600")

    members = started.wait_for_tree(4)
    started.end()

    assert not set(members) & set(living(members))


def test_killing_a_tree_leaves_nothing_but_the_dead_leader(sleeper: Started) -> None:
    members = Processes().tree(sleeper.pid, sleeper.mark, {})

    wait_for(lambda: is_killed(sleeper) or None, "an empty tree")

    assert living(members) == []
    assert is_over(sleeper.pid)


def test_killing_a_tree_touches_nobody_else(sleeper: Started) -> None:
    other = Started("sleep 600 & wait")
    theirs = other.wait_for_tree(2)

    wait_for(lambda: is_killed(sleeper) or None, "an empty tree")
    after = living(theirs)
    other.end()

    assert after == theirs


def test_whoever_carries_a_mark_is_ended_with_the_sessions_they_lead(sleeper: Started) -> None:
    members = Processes().tree(sleeper.pid, sleeper.mark, {})

    stuck = end_left([Left(mark=sleeper.mark)])

    assert stuck == {}
    assert living(members) == []


def test_who_was_tied_by_a_parent_alone_is_known_when_that_parent_is_gone() -> None:
    started = Started("exec env -i /bin/sh -c 'setsid sleep 600 & wait'")
    wait_for(lambda: not pids_with(CLAIM_VARIABLE, started.mark) or None, "the cleared environment")
    known: dict[int, float] = {}
    wait_for(lambda: len(Processes().tree(started.pid, started.mark, known)) == 2 or None, "the child")
    wait_for(lambda: any(Processes().table[pid].session == pid != started.pid for pid in known) or None, "its session")
    os.kill(started.pid, signal.SIGKILL)
    wait_for(lambda: reap(started.pid), "the leader")

    forgotten = Processes().tree(started.pid, started.mark, {})
    (left,) = Processes().tree(started.pid, started.mark, known)
    kill([left])

    assert forgotten == []


def test_a_mark_nobody_carries_ends_nobody() -> None:
    other = Started("sleep 600 & wait")
    theirs = other.wait_for_tree(2)

    stuck = end_left([Left(mark=f"{other.mark}1")])
    after = living(theirs)
    other.end()

    assert (stuck, after) == ({}, theirs)


def test_a_leader_that_was_noted_is_ended_though_nothing_of_it_carries_a_mark() -> None:
    started = Started("exec env -i /bin/sh -c 'sleep 600 & exec sleep 600'")
    now = clock.boot_s()
    wait_for(lambda: not pids_with(CLAIM_VARIABLE, started.mark) or None, "the cleared environment")
    members = started.wait_for_tree(2)

    missed = end_left([Left(mark=started.mark)]), living(members)
    stuck = end_left([Left(mark=started.mark, leader=started.pid, started=now, seen_at=now)])
    after = living(members)
    reap(started.pid)

    assert missed == ({}, members)
    assert (stuck, after) == ({}, [])


def test_what_a_dead_leader_left_in_its_session_is_ended_when_it_is_older_than_the_last_sign_of_life() -> None:
    started = Started("env -i sleep 600 & exec env -i true")
    wait_for(lambda: is_over(started.pid) or None, "the end of the leader")
    wait_for(lambda: not pids_with(CLAIM_VARIABLE, started.mark) or None, "the cleared environment")
    (left,) = living(Processes().tree(started.pid, started.mark, {}))
    reap(started.pid)
    now = clock.boot_s()

    untied = end_left([Left(mark=started.mark, leader=started.pid, started=1.0, seen_at=1.0)]), living([left])
    end_left([Left(mark=started.mark, leader=started.pid, started=now, seen_at=now)])

    assert untied == ({}, [left])
    assert living([left]) == []


def test_another_process_that_has_the_number_of_a_leader_now_is_left_alone() -> None:
    other = Started("exec env -i sleep 600")
    wait_for(lambda: not pids_with(CLAIM_VARIABLE, other.mark) or None, "the cleared environment")
    before = Processes().table[other.pid].started - 1

    stuck = end_left([Left(mark="gone:1:1", leader=other.pid, started=before, seen_at=before)])
    after = living([other.pid])
    os.kill(other.pid, signal.SIGKILL)
    wait_for(lambda: reap(other.pid), "the leader")

    assert (stuck, after) == ({}, [other.pid])


class Pipe:
    """The pipe of a command that clears its environment in a session of its own: only this pipe tells whose it is."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        self.begun = clock.boot_s()
        self.started = Started("exec env -i sh -c 'setsid sleep 600 & sleep 600'", output=self.write_fd)
        wait_for(lambda: not pids_with(CLAIM_VARIABLE, self.started.mark) or None, "the cleared environment")
        self.members = self.started.wait_for_tree(3)

    def left(self, **known: object) -> Left:
        """Return what a worker knew that died before it noted a pid."""
        return Left(mark=self.started.mark, begun=self.begun, pipes=(inode_of(self.write_fd),)).replace(**known)

    def end(self) -> None:
        """Kill and collect what is left."""
        end_left([self.left()])
        wait_for(lambda: reap(self.started.pid), "the leader")
        os.close(self.read_fd)
        os.close(self.write_fd)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A command that is told by its pipe alone."""
    pipe = Pipe()
    yield pipe
    pipe.end()


def test_whoever_can_print_for_a_command_is_ended_though_neither_mark_nor_pid_tells(pipe: Pipe) -> None:
    missed = end_left([pipe.left(pipes=())]), living(pipe.members)
    stuck = end_left([pipe.left()])

    assert missed == ({}, pipe.members)
    assert (stuck, living(pipe.members)) == ({}, [])


def test_whoever_reads_what_a_command_prints_or_was_there_before_it_is_left_alone(pipe: Pipe) -> None:
    reader = subprocess.Popen(["sleep", "600"], pass_fds=[pipe.read_fd])

    end_left([pipe.left(begun=clock.boot_s() + 1)])
    older = living(pipe.members)
    end_left([pipe.left()])
    spared = reader.poll() is None
    reader.kill()
    reader.wait()

    assert older == pipe.members
    assert spared


def test_one_of_our_own_that_was_started_in_a_command_and_prints_for_it_is_left_alone(
    pipe: Pipe, tmp_path: Path
) -> None:
    home = Home(root=str(tmp_path))
    home.make()
    locks = [LifeLock(home, worker_id) for worker_id in ("0123456789abcdef", pipe.started.mark.partition(":")[0])]
    held = [os.open(lock.path, os.O_RDONLY) for lock in locks]
    ours, child = (subprocess.Popen(["sleep", "600"], stdout=pipe.write_fd, pass_fds=[fd]) for fd in held)

    end_left([pipe.left()])
    living_on = ours.poll() is None, child.poll() is None
    for process in (ours, child):
        process.kill()
        process.wait()
    for fd in held:
        os.close(fd)
    for lock in locks:
        lock.release()

    # The second has the lock of the very worker that is gone: a child of it that has not become the command yet.
    assert living_on == (True, False)


def test_what_cannot_be_ended_is_named() -> None:
    need_root()  # to look as another user
    started = Started("exec sleep 600")
    now = clock.boot_s()

    code = (
        "import os\n"
        "from queuectl.system.process import Left, end_left\n"
        "os.setuid(65534)\n"
        f"left = Left(mark='x', leader={started.pid}, started={now}, seen_at={now})\n"
        "print(end_left([left], deadline_s=0.2))"
    )
    readable = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2] / "src"))
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=readable)
    started.end()

    assert said.stdout.strip() == f"{{'x': [{started.pid}]}}", said.stderr


def test_a_child_that_runs_is_not_over_and_cannot_be_collected() -> None:
    started = Started("exec sleep 600")

    answers = is_over(started.pid), reap(started.pid)
    started.end()

    assert answers == (False, None)


def test_looking_whether_a_child_is_over_leaves_it_to_be_collected() -> None:
    started = Started("exit 5")
    wait_for(lambda: is_over(started.pid) or None, "the end")

    ended = reap(started.pid)

    assert ended is not None
    assert (ended.exit_code, ended.signal) == (5, None)


def test_this_process_stays_where_it_was_told_to_be() -> None:
    code = (
        "import os\n"
        "from queuectl.system.process import spawn, CannotStart\n"
        "try: spawn(['/bin/true'], {}, '/no/such', stdin=0, output=1)\n"
        "except CannotStart: pass\n"
        "os.waitpid(spawn(['/bin/pwd'], {}, '/tmp', stdin=0, output=1), 0)\n"
        "print(os.getcwd())\n"
    )

    done = subprocess.run([sys.executable, "-u", "-c", code], capture_output=True, text=True, cwd="/usr", check=True)

    assert done.stdout.split() == ["/tmp", "/"]


@pytest.mark.parametrize("number, name", [(9, "SIGKILL"), (signal.SIGTERM, "SIGTERM"), (63, "signal 63")])
def test_signals_have_names(number: int, name: str) -> None:
    assert signal_name(number) == name


def living(pids: list[int]) -> list[int]:
    """Return those that exist and are no zombies."""
    return [pid for pid in pids if state_of(pid) not in "ZX"]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
