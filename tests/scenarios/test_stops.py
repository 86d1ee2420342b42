"""Stopping end to end: what a drain finishes, what a stop at once hands back, and that nothing is left."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.actions.connect import connect
from queuectl.store import workers
from tests.program import DEADLINE_S, QUOTED, Cli, lines_of, wait_for
from tests.scenarios.processes import Guard
from tests.scenarios.working import (
    another,
    environment_of,
    is_running,
    marked,
    on_sqlite,
    runs_of,
    seconds,
    stays,
    tree_of,
    wait_for_workers,
    workers_of,
)


def waiting_job(cli: Cli, tmp_path: Path) -> str:
    """Add a job that ends when the test says so."""
    return cli.enqueue(f"while ! test -e {tmp_path}/go; do sleep 0.05; done")


def test_one_sigterm_finishes_the_running_job_and_takes_no_more(cli: Cli, tmp_path: Path) -> None:
    running, waiting = waiting_job(cli, tmp_path), cli.enqueue("true")
    supervisor = cli.start("worker", "start")
    cli.wait_for_state(running, "processing")

    supervisor.send_signal(signal.SIGTERM)
    wait_for_words(supervisor, "stopping when the running jobs end")
    (tmp_path / "go").touch()
    code = supervisor.wait(DEADLINE_S)

    assert code == 0
    assert (cli.job(running)["state"], cli.job(waiting)["state"]) == ("completed", "pending")
    assert_all_closed(cli, 2)


def test_two_sigterms_hand_the_job_back_uncharged_and_leave_nothing(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600 & setsid sleep 600 & sleep 600")
    cli.ok("config", "set", "kill_grace_seconds", "1")
    supervisor = cli.start("worker", "start")
    wait_for(lambda: len(tree_of(cli, job_id)) == 4 or None, "the tree")
    before = cli.job(job_id)

    supervisor.send_signal(signal.SIGTERM)
    wait_for_words(supervisor, "stopping when the running jobs end")
    supervisor.send_signal(signal.SIGTERM)
    code = supervisor.wait(DEADLINE_S)

    job = cli.job(job_id)
    assert (code, job["state"], job["attempts"], job["losses"]) == (0, "pending", 0, 0)
    assert marked(before) == []
    assert_all_closed(cli, 2)


def test_worker_stop_waits_for_the_running_jobs(cli: Cli, tmp_path: Path) -> None:
    job_id = waiting_job(cli, tmp_path)
    supervisors = [cli.start("worker", "start", "-n", "2"), cli.start("worker", "start")]
    cli.wait_for_state(job_id, "processing")
    wait_for_workers(cli, 3)

    stopping = cli.start("worker", "stop")
    wait_for_workers(cli, 1)  # the idle ones leave
    (tmp_path / "go").touch()
    codes = [process.wait(DEADLINE_S) for process in (stopping, *supervisors)]

    assert codes == [0, 0, 0]
    assert cli.job(job_id)["state"] == "completed"
    assert_all_closed(cli, 5)


def test_worker_stop_now_hands_back(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600")
    supervisor = cli.start("worker", "start")
    before = cli.wait_for_state(job_id, "processing")

    said = cli.json("worker", "stop", "--now")

    job = cli.job(job_id)
    assert said == [{"stopped": 1, "remaining": []}]
    assert (job["state"], job["attempts"]) == ("pending", 0)
    assert marked(before) == []
    assert supervisor.wait(DEADLINE_S) == 0


def test_worker_stop_gives_up_waiting_when_told_to(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")

    done = cli.run("worker", "stop", "--timeout", "0.5s")

    assert done.returncode == 4
    assert "1 worker still alive" in done.stderr
    assert cli.job(job_id)["state"] == "processing"


def test_worker_stop_now_after_a_drain_that_takes_too_long(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")
    cli.run("worker", "stop", "--timeout", "0.1s")

    cli.ok("worker", "stop", "--now")

    assert cli.job(job_id)["state"] == "pending"


@on_sqlite
def test_worker_stop_without_workers_is_fine(cli: Cli) -> None:
    assert cli.ok("worker", "stop") == "no worker is running\n"


def test_detached_workers_are_at_work_when_the_prompt_returns(cli: Cli) -> None:
    started = cli.json("worker", "start", "-d", "-n", "2")[0]
    listed = workers_of(cli)
    job_id = cli.enqueue("echo from the background")
    cli.wait_for_state(job_id, "completed")

    log = Path(cli.target.home.worker_log).read_text()
    stopped = cli.json("worker", "stop")

    assert {worker["pid"] for worker in listed} == {worker["pid"] for worker in pids_of(started)}
    assert f"job {job_id} run 1: completed" in log
    assert stopped == [{"stopped": 2, "remaining": []}]
    assert workers_of(cli) == []


@on_sqlite
def test_detached_workers_outlive_the_shell_that_started_them(cli: Cli) -> None:
    shell = f"{QUOTED} worker start -d --json; kill -HUP -$$; sleep 600"
    done = subprocess.run(
        ["setsid", "--wait", "sh", "-c", shell], env=cli.environ, capture_output=True, text=True, timeout=60
    )

    words = json.loads(done.stdout)
    pids = [words["pid"], *(worker["pid"] for worker in words["workers"])]
    cli.wait_for_state(cli.enqueue("true"), "completed")

    assert all(map(is_running, pids))
    cli.ok("worker", "stop")
    wait_for(lambda: not any(map(is_running, pids)) or None, "all to leave")


@on_sqlite
def test_a_detached_start_without_a_store_says_why(cli: Cli, tmp_path: Path) -> None:
    nowhere = f"postgresql://nobody@/none?host={tmp_path}"

    done = cli.run("worker", "start", "-d", "-j", "1", env={"QUEUECTL_DATABASE_URL": nowhere})

    assert done.returncode == 5
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


@on_sqlite
def test_a_detached_supervisor_that_fails_says_why(cli: Cli) -> None:
    os.mkdir(cli.target.home.worker_log)

    done = cli.run("worker", "start", "-d")

    why = f"queuectl: the workers did not start: cannot write {cli.target.home.worker_log}: Is a directory\n"
    assert (done.returncode, done.stderr.startswith(why)) == (5, True), done.stderr
    assert workers_of(cli) == []


@on_sqlite
def test_a_detached_start_inside_a_job_does_not_pass_its_mark_on(cli: Cli) -> None:
    job_id = cli.enqueue(f"{QUOTED} worker start -d --json")
    cli.drain()
    words = json.loads(cli.ok("logs", job_id).splitlines()[-1])

    pids = [words["pid"], *(worker["pid"] for worker in words["workers"])]
    environments = [environment_of(pid) for pid in pids]

    assert cli.job(job_id)["state"] == "completed"
    assert not any("QUEUECTL_CLAIM" in env for env in environments)
    assert environments[1]["QUEUECTL_WORKER"] == words["workers"][0]["id"]
    assert cli.wait_for_state(cli.enqueue("env | grep -c QUEUECTL_WORKER"), "failed")


@on_sqlite
@pytest.mark.needs("tmux")
def test_ctrl_c_in_a_terminal_finishes_the_running_job(cli: Cli, terminal: "Terminal", tmp_path: Path) -> None:
    job_id = waiting_job(cli, tmp_path)
    terminal.run("worker", "start")
    cli.wait_for_state(job_id, "processing")

    terminal.press("C-c")
    terminal.wait_for_words("stopping when the running jobs end")
    (tmp_path / "go").touch()
    code = terminal.wait_for_code()

    assert code == "0"
    assert cli.job(job_id)["state"] == "completed"


@on_sqlite
@pytest.mark.needs("tmux")
def test_ctrl_c_twice_in_a_terminal_hands_the_job_back_uncharged_and_leaves_nothing(
    cli: Cli, terminal: "Terminal", guard: Guard
) -> None:
    cli.ok("config", "set", "kill_grace_seconds", "1")
    job_id = cli.enqueue(guard.around("trap '' INT; sleep 600 & setsid sleep 600 & wait"))
    terminal.run("worker", "start")
    wait_for(lambda: len(guard.holders()) == 3 or None, "the tree")

    terminal.press("C-c")
    terminal.wait_for_words("stopping when the running jobs end")
    terminal.press("C-c")
    code = terminal.wait_for_code()

    assert code == "0"
    assert_handed_back(cli, job_id)
    assert guard.holders() == set()
    assert_all_closed(cli, 2)


@pytest.mark.parametrize("by_signal", [True, False], ids=["SIGTERM", "worker-stop"])
def test_a_drain_that_takes_longer_than_stop_timeout_hands_the_jobs_back(
    cli: Cli, guard: Guard, by_signal: bool
) -> None:
    cli.ok("config", "set", "stop_timeout", "1s")
    cli.ok("config", "set", "kill_grace_seconds", "1")
    job_id = cli.enqueue(guard.around("sleep 600 & setsid sleep 600 & wait"))
    supervisor = cli.start("worker", "start")
    wait_for(lambda: len(guard.holders()) == 3 or None, "the tree")

    if by_signal:
        supervisor.send_signal(signal.SIGTERM)
    else:
        cli.ok("worker", "stop")
    code = supervisor.wait(DEADLINE_S)

    assert code == 0
    assert_handed_back(cli, job_id)
    assert guard.holders() == set()
    assert_all_closed(cli, 2)


@pytest.mark.parametrize("limit", ["0", "60s"])
def test_a_drain_within_stop_timeout_finishes_the_jobs(cli: Cli, tmp_path: Path, limit: str) -> None:
    cli.ok("config", "set", "stop_timeout", limit)
    job_id = waiting_job(cli, tmp_path)
    supervisor = cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")

    supervisor.send_signal(signal.SIGTERM)
    wait_for_words(supervisor, "stopping when the running jobs end")
    stays(lambda: cli.job(job_id)["state"] == "processing", "the job runs on", 2)
    (tmp_path / "go").touch()
    code = supervisor.wait(DEADLINE_S)

    assert (code, cli.job(job_id)["state"], cli.job(job_id)["run"]) == (0, "completed", 1)


@pytest.mark.parametrize("is_detached", [False, True], ids=["foreground", "detached"])
def test_a_restart_lets_the_running_jobs_end_and_begins_anew_in_the_same_process(
    cli: Cli, tmp_path: Path, is_detached: bool
) -> None:
    job_id = waiting_job(cli, tmp_path)
    supervisor = start_supervisor(cli, is_detached=is_detached)
    cli.wait_for_state(job_id, "processing")
    before = wait_for_workers(cli, 2)

    restarting = cli.start("worker", "restart")
    wait_for_workers(cli, 1)  # the idle ones leave
    is_waited_for = restarting.poll() is None
    (tmp_path / "go").touch()
    code = restarting.wait(DEADLINE_S)

    assert (code, is_waited_for) == (0, True)
    assert (cli.job(job_id)["state"], cli.job(job_id)["run"]) == ("completed", 1)
    assert_begun_anew(cli, supervisor, before)


@pytest.mark.parametrize("is_detached", [False, True], ids=["foreground", "detached"])
def test_a_restart_at_once_hands_the_running_jobs_back_and_begins_anew_in_the_same_process(
    cli: Cli, guard: Guard, is_detached: bool
) -> None:
    cli.ok("config", "set", "kill_grace_seconds", "1")
    job_id = cli.enqueue(guard.once("sleep 600 & setsid sleep 600 & wait"))
    supervisor = start_supervisor(cli, is_detached=is_detached)
    wait_for(lambda: len(guard.holders()) == 3 or None, "the tree")
    before = wait_for_workers(cli, 2)

    cli.ok("worker", "restart", "--now")
    job = cli.wait_for_state(job_id, "completed")

    assert [run["outcome"] for run in runs_of(job)] == ["handed_back", "exited"]
    assert (job["attempts"], job["losses"], guard.lines) == (1, 0, ["run 1", "run 2"])
    assert_begun_anew(cli, supervisor, before)


def test_a_restart_gives_up_waiting_when_told_to(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")

    done = cli.run("worker", "restart", "--timeout", "0.5s")

    assert done.returncode == 4
    assert cli.job(job_id)["state"] == "processing"


@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_that_comes_while_a_restart_waits_for_a_job_ends_the_supervisor_for_good(
    cli: Cli, tmp_path: Path, times: int
) -> None:
    job_id = waiting_job(cli, tmp_path)
    supervisor = cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")
    cli.run("worker", "restart", "--timeout", "0.1s")
    wait_for(lambda: cli.json("worker", "list")[0]["stopping"] or None, "the worker to be told")

    for _ in range(times):
        supervisor.send_signal(signal.SIGTERM)
        wait_for_words(supervisor, "stopping")
    (tmp_path / "go").touch()
    code = supervisor.wait(DEADLINE_S)

    assert code == 0
    assert workers_of(cli) == []


def test_a_restart_reaches_every_supervisor(cli: Cli) -> None:
    supervisors = [cli.start("worker", "start"), cli.start("worker", "start", "--queue", "mail")]
    before = wait_for_workers(cli, 2)

    cli.ok("worker", "restart")
    after = wait_for_workers(cli, 2)

    assert [process.poll() for process in supervisors] == [None, None]
    assert not {worker["id"] for worker in before} & {worker["id"] for worker in after}
    assert sorted(str(worker["queues"]) for worker in after) == ["None", "['mail']"]
    for queue in ("default", "mail"):
        cli.wait_for_state(cli.enqueue("--queue", queue, "true"), "completed")


@on_sqlite
def test_a_restart_without_workers_says_so_and_how_to_start_one(cli: Cli) -> None:
    done = cli.run("worker", "restart")

    said = done.stdout + done.stderr
    assert "no worker is running" in said
    assert "queuectl worker start" in said


@on_sqlite
def test_stopping_one_home_never_touches_another_on_the_same_host(cli: Cli, tmp_path: Path) -> None:
    other = another(cli, tmp_path / "other")
    supervisors = [one.start("worker", "start") for one in (cli, other)]
    ids = [one.enqueue("exec sleep 600") for one in (cli, other)]
    for one, job_id in zip((cli, other), ids, strict=True):
        one.wait_for_state(job_id, "processing")

    cli.ok("worker", "stop", "--now")
    code = supervisors[0].wait(DEADLINE_S)
    theirs = other.job(ids[1])
    still_there = marked(theirs)
    other.clean_up()

    assert (ids, code, cli.job(ids[0])["state"]) == (["1", "1"], 0, "pending")
    assert (theirs["state"], theirs["run"], len(still_there)) == ("processing", 1, 1)


class Terminal:
    """A real terminal, in which a person runs the program."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self._cli = cli
        self._log, self._code = folder / "terminal.log", folder / "terminal.code"
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]

    def run(self, *words: str) -> None:
        """Type a command line."""
        line = f"{QUOTED} {shlex.join(words)} 2>{self._log}; echo $? >{self._code}"
        subprocess.run([*self._tmux, "new-session", "-d", "-s", "t", line], check=True, env=self._cli.environ)

    def press(self, key: str) -> None:
        """Press a key, as tmux names it."""
        subprocess.run([*self._tmux, "send-keys", "-t", "t", key], check=True)

    def wait_for_words(self, words: str) -> None:
        """Wait until the program has said something."""
        wait_for(lambda: words in self._log.read_text() or None, words)

    def wait_for_code(self) -> str:
        """Wait for the end of the program and return its exit status."""
        return wait_for(lambda: lines_of(self._code), "the end")[0]

    def close(self) -> None:
        """Close the window, and end what is left in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True)


@pytest.fixture
def terminal(cli: Cli, tmp_path: Path) -> Iterator[Terminal]:
    """A terminal with nothing in it yet."""
    terminal = Terminal(cli, tmp_path)
    yield terminal
    terminal.close()


def pids_of(started: dict[str, object]) -> list[dict[str, object]]:
    workers = started["workers"]
    assert isinstance(workers, list)
    return workers


def start_supervisor(cli: Cli, *, is_detached: bool) -> int:
    """Start two workers and return the pid of their supervisor."""
    if is_detached:
        return int(str(cli.json("worker", "start", "-n", "2", "-d")[0]["pid"]))
    return cli.start("worker", "start", "-n", "2").pid


def assert_begun_anew(cli: Cli, supervisor: int, before: list[dict[str, object]]) -> None:
    """The supervisor has its old pid and two new workers, which work and can be stopped as ever."""
    rows = [row for row in cli.json("worker", "list", "--all") if row["state"] == "live"]
    after = [row for row in rows if row["kind"] == "worker"]
    assert [row["pid"] for row in rows if row["kind"] == "supervisor"] == [supervisor]
    assert len(after) == 2
    assert not {worker["id"] for worker in before} & {worker["id"] for worker in after}
    cli.wait_for_state(cli.enqueue("true"), "completed")
    os.kill(supervisor, signal.SIGTERM)
    wait_for(lambda: not is_running(supervisor) or None, "the supervisor to leave")
    assert workers_of(cli) == []


def assert_handed_back(cli: Cli, job_id: str) -> None:
    """The job waits as if it had never run, and its run is on record."""
    job = cli.job(job_id)
    assert (job["state"], job["attempts"], job["losses"]) == ("pending", 0, 0)
    assert [run["outcome"] for run in runs_of(job)] == ["handed_back"]


def wait_for_words(process: "subprocess.Popen[str]", words: str) -> None:
    """Read what a process says until it says this."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it never said {words!r}")


def assert_all_closed(cli: Cli, count: int) -> None:
    """Every worker and supervisor has closed its row and given its lock back."""
    rows = cli.json("worker", "list", "--all")
    assert [row["state"] for row in rows] == ["ended"] * count
    assert not [name for name in os.listdir(cli.target.home.run) if name not in ("wake", "changed", "setup.lock")]


def test_a_worker_that_waited_for_its_job_leaves_as_soon_as_it_has_ended(cli: Cli, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job_id = cli.enqueue(f"while [ ! -e '{go}' ]; do sleep 0.02; done")
    process = cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: workers_of(cli)[0]["stopping"] or None, "the mark of a stop in the list")

    go.touch()
    process.wait(timeout=DEADLINE_S)
    (worker,) = [row for row in cli.json("worker", "list", "--all") if row["kind"] == "worker"]

    assert worker["state"] == "ended"
    assert ended_at(cli, worker) - seconds(cli.job(job_id)["finished_at"]) < 3


def ended_at(cli: Cli, worker: dict[str, object]) -> float:
    """Return when a worker closed its row, which only the store tells."""
    with closing(connect(cli.target)) as database:
        row = database.read(lambda tx: workers.get(tx, str(worker["id"])))
    assert row is not None
    assert row.ended_at is not None
    return row.ended_at / 1000


def test_a_stop_under_way_follows_the_setting_as_it_is_now(cli: Cli) -> None:
    job_id = cli.enqueue("sleep 600")
    process = cli.start("worker", "start")
    cli.wait_for_state(job_id, "processing")
    process.send_signal(signal.SIGTERM)

    cli.ok("config", "set", "stop_timeout", "1s")
    process.wait(timeout=DEADLINE_S)

    job = cli.job(job_id)
    assert (job["state"], job["attempts"], job["losses"]) == ("pending", 0, 0)
