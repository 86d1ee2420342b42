"""What signals do to `queuectl run`, wherever they find it. What they do at leisure is in test_run.py."""

import signal
import subprocess
import sys

from tests.program import Cli
from tests.scenarios.working import on_sqlite, wait_for_line

# Each is the program with something done to it first, as users never see it but a loaded machine may.
PROGRAM = """
import os, signal, sys, threading, time
from queuectl.actions import control
from queuectl.errors import StoreUnreachable
{before}
sys.argv[0] = "queuectl"
from queuectl.cli.main import entry, main
{call}
"""
# When the job runs, the codec that a cancel of it needs is forgotten and imported anew; the signal comes amid that.
AMID_AN_IMPORT = """
import codecs, encodings
from importlib.machinery import PathFinder

class Amid:
    is_armed = False

    def find_spec(self, name, path=None, target=None):
        if name == "queuectl.runtime.watch":
            while not os.path.exists("go"):
                time.sleep(0.02)
            self.is_armed = True
            sys.modules.pop("encodings.ascii", None)
            encodings._cache.pop("ascii", None)
            codecs.unregister(encodings.search_function)  # this alone empties the cache of those found
            codecs.register(encodings.search_function)
            codecs.lookup("ascii")
        if name == "encodings.ascii" and self.is_armed:
            spec = PathFinder.find_spec(name, path)
            execute = spec.loader.exec_module
            def interrupted(module):
                signal.raise_signal(signal.SIGTERM)
                execute(module)
            spec.loader.exec_module = interrupted
            return spec

sys.meta_path.insert(0, Amid())
"""
BEFORE_THE_JOB_IS_KNOWN = """
from queuectl.cli import run
enter = run.enter

def interrupted(*args, **named):
    signal.raise_signal(signal.SIGTERM)
    return enter(*args, **named)

run.enter = interrupted
"""
WITHOUT_A_STORE_TO_CANCEL_IN = """
def fail(*_, **__):
    raise StoreUnreachable("no connection to the store", hint="look after it")

control.cancel = fail
"""
WITH_A_BROKEN_CANCEL = """
def fail(*_, **__):
    raise LookupError("unknown encoding: ascii")

control.cancel = fail
"""
WITH_A_CANCEL_THAT_HANGS = """
def hang(*_, **__):
    open("hangs", "w").write("hangs\\n")
    threading.Event().wait()

control.cancel = hang
"""
LEAVE = "entry()"
COUNT_WHAT_IS_LEFT = """
def pipes():
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sum(os.readlink(link).startswith("pipe:") for link in links if os.path.lexists(link))

before = pipes()
code = main(sys.argv[1:])
print(code, pipes() - before, *(thread.name for thread in threading.enumerate()), flush=True)
"""
WAITING = "echo go >go; until test -e end; do sleep 0.02; done; echo end"


def start(cli: Cli, before: str, *words: str, call: str = LEAVE) -> "subprocess.Popen[str]":
    """Start `queuectl run` with something done to it first."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(before=before, call=call), "run", *words],
        env=cli.environ, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_signal_amid_an_import_cancels_the_job(cli: Cli) -> None:
    process = start(cli, AMID_AN_IMPORT, WAITING)

    _, said = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert said.startswith("job 1 is cancelled")
    assert cli.job("1")["state"] == "cancelled"


def test_a_signal_before_the_job_is_known_cancels_it_once_it_is(cli: Cli) -> None:
    process = start(cli, BEFORE_THE_JOB_IS_KNOWN, "--delay", "1h", "true")

    _, said = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert cli.job("1")["state"] == "cancelled"


def test_a_signal_before_it_is_known_that_the_job_is_somebody_elses_leaves_it_alone(cli: Cli) -> None:
    cli.enqueue("--unique", "nightly", "--delay", "1h", "true")

    process = start(cli, BEFORE_THE_JOB_IS_KNOWN, "--unique", "nightly", "true")
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130, said
    assert "not waiting for job 1 to end" in said
    assert cli.job("1")["state"] == "scheduled"


@on_sqlite
def test_a_signal_leaves_a_job_that_somebody_else_added_alone(cli: Cli) -> None:
    cli.enqueue("--unique", "nightly", "--delay", "1h", "true")
    process = start(cli, "", "--unique", "nightly", "true")
    assert process.stderr is not None
    process.stderr.readline()  # that it waits for the time of the job

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 130
    assert cli.job("1")["state"] == "scheduled"


@on_sqlite
def test_a_cancel_that_fails_is_told_and_the_job_followed_on(cli: Cli) -> None:
    process = start(cli, WITHOUT_A_STORE_TO_CANCEL_IN, WAITING)
    wait_for_line(cli.folder / "go", "go")
    assert process.stderr is not None

    process.send_signal(signal.SIGTERM)
    told = [process.stderr.readline(), process.stderr.readline()]
    (cli.folder / "end").touch()
    printed, said = process.communicate(timeout=60)

    assert told == [
        "job 1 was not cancelled and goes on: no connection to the store\n",
        "  cancel it with: queuectl cancel 1; a second signal leaves at once\n",
    ]
    assert (process.returncode, printed, said) == (130, "end\n", "")
    assert cli.job("1")["state"] == "completed"


@on_sqlite
def test_a_cancel_that_fails_for_a_reason_of_its_own_is_told_without_a_traceback(cli: Cli) -> None:
    process = start(cli, WITH_A_BROKEN_CANCEL, WAITING)
    wait_for_line(cli.folder / "go", "go")
    assert process.stderr is not None

    process.send_signal(signal.SIGTERM)
    told = process.stderr.readline()
    (cli.folder / "end").touch()
    process.communicate(timeout=60)

    assert told == "job 1 was not cancelled and goes on: internal error: LookupError: unknown encoding: ascii\n"


@on_sqlite
def test_a_second_signal_leaves_though_the_cancel_hangs(cli: Cli) -> None:
    process = start(cli, WITH_A_CANCEL_THAT_HANGS, WAITING)
    wait_for_line(cli.folder / "go", "go")

    process.send_signal(signal.SIGTERM)
    wait_for_line(cli.folder / "hangs", "hangs")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert said.splitlines() == [
        "not waiting for job 1 to end",
        "job 1 may not be cancelled: the store has not answered yet; cancel it with: queuectl cancel 1",
    ]
    (cli.folder / "end").touch()
    cli.wait_for_state("1", "completed")


@on_sqlite
def test_two_signals_in_a_row_cancel_the_job_all_the_same(cli: Cli) -> None:
    process = start(cli, "", "trap 'exit 0' TERM; echo go >go; while :; do sleep 0.02; done")
    wait_for_line(cli.folder / "go", "go")

    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 130
    cli.wait_for_state("1", "cancelled")


@on_sqlite
def test_neither_a_thread_nor_a_pipe_is_left_behind(cli: Cli) -> None:
    process = start(cli, "", "true", call=COUNT_WHAT_IS_LEFT)

    printed, said = process.communicate(timeout=60)

    assert printed == "0 0 MainThread\n", said
