"""Trees: whatever a command did to its processes, nothing of it is left after a timeout, a cancel or a rescue."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from tests.program import Cli, wait_for
from tests.scenarios.hosts import need_root, start_under
from tests.scenarios.processes import Guard, Guards, Process, family_of, living, name_of, send, worker_pid
from tests.scenarios.working import another, enqueue_all, on_sqlite, stays, wait_for_all

# What a command does, and the programs that run then; the shell itself is `sh`.
SHAPES = {
    "plain children": ("sleep 600 & sleep 600 & wait", "sh sleep sleep"),
    "double fork": ("(sleep 600 &); (setsid sleep 600 &); sleep 600 & wait", "sh sleep sleep sleep"),
    "daemon with a child": ("(setsid sh -c 'sleep 600 & wait' &); sleep 600 & wait", "sh sh sleep sleep"),
    "setsid": ("setsid sleep 600 & wait", "sh sleep"),
    "nohup": ("nohup sleep 600 >/dev/null 2>&1 & wait", "sh sleep"),
    "closed stdout": ("exec >&- 2>&-; sleep 600 & wait", "sh sleep"),
    "deaf to SIGTERM": ("(trap '' TERM; exec sleep 600) & wait; wait", "sh sleep"),
    "deaf all over": ("trap '' TERM; sleep 600 & wait", "sh sleep"),
    "stopped child": ("sleep 600 & kill -STOP $!; wait", "sh stopped"),
    "stopped itself": ("sleep 600 & kill -STOP $$; wait", "sleep stopped"),
    "cleared environment": ("env -i sleep 600 & wait", "sh sleep"),
    "cleared environment of the leader": ("exec env -i sleep 600", "sleep"),
    "cleared environment in a session of its own": ("setsid env -i sleep 600 & wait", "sh sleep"),
    "cleared environment all over": ("exec env -i sh -c 'setsid sleep 600 & wait'", "sh sleep"),
    "200 descendants": (
        "for i in $(seq 20); do sh -c 'for j in $(seq 9); do sleep 600 & done; wait' & done; wait",
        " ".join(["sh"] * 21 + ["sleep"] * 180),
    ),
}
TIMEOUT = "10s"  # time enough for all trees to grow on a busy machine


class Trees:
    """One job per shape, all at once in one worker, and everything that lives of them."""

    def __init__(self, cli: Cli, guards: Guards, **fields: object) -> None:
        self.guards = {shape: guards(shape.replace(" ", "-")) for shape in SHAPES}
        self.ids = enqueue_all(cli, [guard.once(SHAPES[shape][0]) for shape, guard in self.guards.items()], **fields)
        self._members: dict[str, set[Process]] = {}

    def grow(self) -> None:
        """Wait until every tree stands as it should, and remember who is in it."""
        for shape, guard in self.guards.items():
            wanted = sorted(SHAPES[shape][1].split())
            self._members[shape] = wait_for(
                lambda guard=guard, wanted=wanted: (  # type: ignore[misc]
                    found if sorted(map(name_of, found := guard.holders())) == wanted else None
                ),
                f"the tree: {shape}",
            )
            leader = next(member.pid for member in self._members[shape] if os.getsid(member.pid) == member.pid)
            self._members[shape] |= family_of(leader)

    def left(self) -> dict[str, list[str]]:
        """Return what lives of which tree."""
        members = {shape: living(self._members[shape]) | guard.holders() for shape, guard in self.guards.items()}
        return {shape: sorted(map(name_of, left)) for shape, left in members.items() if left}

    def overlaps(self) -> list[str]:
        """Return the shapes of which two copies ran at once."""
        return [shape for shape, guard in self.guards.items() if "OVERLAP" in guard.lines]


@pytest.fixture
def slots() -> list[str]:
    """What starts a worker for all shapes at once."""
    return ["worker", "start", "-j", str(len(SHAPES))]


def test_a_timeout_leaves_nothing_of_any_tree(cli: Cli, guards: Guards, slots: list[str]) -> None:
    cli.ok("config", "set", "kill_grace_seconds", "1")
    trees = Trees(cli, guards, timeout=TIMEOUT, max_retries=0)
    cli.start(*slots)
    trees.grow()

    jobs = wait_for_all(cli, trees.ids, "dead")

    assert trees.left() == {}
    assert {job["error"] for job in jobs} == {"timed out after 10 s"}


def test_a_cancel_leaves_nothing_of_any_tree(cli: Cli, guards: Guards, slots: list[str]) -> None:
    cli.ok("config", "set", "kill_grace_seconds", "1")
    trees = Trees(cli, guards)
    cli.start(*slots)
    trees.grow()

    cli.ok("cancel", *trees.ids)
    wait_for_all(cli, trees.ids, "cancelled")

    assert trees.left() == {}


def test_a_rescue_leaves_nothing_of_any_tree_and_then_runs_the_jobs_again(
    cli: Cli, guards: Guards, slots: list[str]
) -> None:
    trees = Trees(cli, guards)
    cli.start(*slots)
    trees.grow()

    send(signal.SIGKILL, worker_pid(cli))
    jobs = wait_for_all(cli, trees.ids, "completed")

    assert trees.left() == {}
    assert trees.overlaps() == []
    assert {(job["attempts"], job["losses"], job["run"]) for job in jobs} == {(1, 1, 2)}


def test_a_rescue_leaves_alone_what_a_command_that_ended_by_itself_had_started(
    cli: Cli, guards: Guards, guard: Guard
) -> None:
    background = guards("background")
    ended = cli.enqueue(background.around("sleep 600 >/dev/null 2>&1 & setsid sleep 600 >/dev/null 2>&1 &"))
    cli.start("worker", "start")
    cli.wait_for_state(ended, "completed")
    theirs = wait_for(lambda: found if len(found := background.holders()) == 2 else None, "what it left")
    lost = cli.enqueue(guard.once("sleep 600"))
    guard.wait_for_run(1)

    send(signal.SIGKILL, worker_pid(cli))
    cli.wait_for_state(lost, "completed")

    assert living(theirs) == theirs


@on_sqlite
def test_a_rescue_in_one_home_never_touches_another_on_the_same_host(cli: Cli, tmp_path: Path, guards: Guards) -> None:
    other = another(cli, tmp_path / "other")
    mine, theirs = guards("mine"), guards("theirs")
    ids = [cli.enqueue(mine.once("sleep 600")), other.enqueue(theirs.once("sleep 600 & setsid sleep 600 & wait"))]
    for one in (cli, other):
        one.start("worker", "start")
    mine.wait_for_run(1)
    tree = wait_for(lambda: found if len(found := theirs.holders()) == 3 else None, "their tree")

    send(signal.SIGKILL, worker_pid(cli))
    cli.wait_for_state(ids[0], "completed")
    job, left = other.job(ids[1]), living(tree)
    other.clean_up()

    assert ids == ["1", "1"]
    assert (job["state"], job["run"], job["losses"]) == ("processing", 1, 0)
    assert left == tree


WITHOUT_KILL = ["setpriv", "--bounding-set=-kill"]
AS_ANOTHER = ["setpriv", "--reuid=65534", "--clear-groups"]


@pytest.fixture
def not_ours(cli: Cli, guard: Guard) -> tuple[str, int]:
    """A job that runs, and the pid of a process of its tree that its worker may not kill, as after `sudo`."""
    need_root([*WITHOUT_KILL, *AS_ANOTHER, "true"], "run a process as another user")
    cli.ok("config", "set", "kill_grace_seconds", "0")
    job_id = cli.enqueue(guard.once(f"{shlex.join(AS_ANOTHER)} sleep 600"))
    start_under(cli, WITHOUT_KILL, "worker", "start")
    tree = wait_for(
        lambda: found if sorted(map(name_of, found := guard.holders())) == ["sh", "sleep"] else None, "the tree"
    )
    return job_id, next(process.pid for process in tree if name_of(process) == "sleep")


@on_sqlite
def test_a_lost_job_is_not_run_again_before_what_cannot_be_ended_is_gone_and_show_names_it(
    cli: Cli, guard: Guard, not_ours: tuple[str, int]
) -> None:
    job_id, pid = not_ours

    send(signal.SIGKILL, worker_pid(cli))
    wait_for(lambda: f"process {pid} " in cli.ok("show", job_id) or None, "its pid in show")
    stays(lambda: guard.lines == ["run 1"], "one run", 3)
    before = cli.job(job_id)["state"]
    send(signal.SIGKILL, pid)
    cli.wait_for_state(job_id, "completed")

    assert before == "processing"
    assert guard.lines == ["run 1", "run 2"]


@on_sqlite
def test_a_cancel_waits_for_what_cannot_be_ended_idly_and_show_names_it(
    cli: Cli, guard: Guard, not_ours: tuple[str, int]
) -> None:
    job_id, pid = not_ours
    worker = worker_pid(cli)

    cli.ok("cancel", job_id)
    wait_for(lambda: f"process {pid} " in cli.ok("show", job_id) or None, "its pid in show")
    used = cpu_s(worker)
    stays(lambda: cli.job(job_id)["state"] == "processing", "the job is not over", 3)
    used = cpu_s(worker) - used
    send(signal.SIGKILL, pid)
    cli.wait_for_state(job_id, "cancelled")

    assert used < 0.5


def cpu_s(pid: int) -> float:
    """Return how much of a processor a process has used up to now, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
