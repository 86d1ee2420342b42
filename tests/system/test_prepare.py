"""Preparation: what a command asks of its process holds before its first instruction, or the command does not start."""

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from queuectl.model.launch import Launch
from queuectl.system import prepare
from queuectl.system.process import CannotStart, spawn
from tests.scenarios.faults import need_root

PYTHON_SEES = "import resource as r; print(*r.getrlimit(r.{}))"


class Ended:
    """What a command printed and how it ended."""

    def __init__(self, said: str, status: int) -> None:
        self.said = said
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def run(*argv: str, cwd: str = "/", env: dict[bytes, bytes] | None = None, **asked: object) -> Ended:
    """Run a program that asks for something, to its end."""
    read, write = os.pipe()
    devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    wanted = prepare.plan(Launch(**asked), None)  # type: ignore[arg-type]
    try:
        environment = dict(os.environb) if env is None else env
        pid = spawn(argv, environment, cwd, stdin=devnull, output=write, preparation=wanted)
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
        os.close(devnull)
    with open(read) as file:
        said = file.read().strip()
    return Ended(said, os.waitpid(pid, 0)[1])


def refused(**asked: int) -> CannotStart:
    """Return why a command that asks for something does not start."""
    with pytest.raises(CannotStart) as error:
        run("true", **asked)  # type: ignore[arg-type]
    return error.value


AS_NOBODY = """
import os, resource
from queuectl.model.launch import Launch
from queuectl.system import prepare
from queuectl.system.process import CannotStart, spawn
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
os.setgid(65534)
os.setuid(65534)
for asked in (%s):
    try:
        pid = spawn(["echo", "started"], {}, "/", stdin=0, output=1, preparation=prepare.plan(Launch(**asked), None))
        os.waitpid(pid, 0)
    except CannotStart as error:
        print(error.code, error.is_passing, error.reason, flush=True)
"""


@pytest.mark.parametrize(
    "asked, name, seen",
    [
        ({"nofile": 77}, "RLIMIT_NOFILE", "77 77"),
        ({"file_size_bytes": 1_000_001}, "RLIMIT_FSIZE", "1000001 1000001"),
        ({"cpu_seconds": 9}, "RLIMIT_CPU", "9 10"),
        ({"memory_bytes": 512 << 20}, "RLIMIT_AS", f"{512 << 20} {512 << 20}"),
    ],
)
def test_a_limit_holds_to_the_byte_soft_and_hard(asked: dict[str, int], name: str, seen: str) -> None:
    assert run(sys.executable, "-c", PYTHON_SEES.format(name), **asked).said == seen  # type: ignore[arg-type]


def test_a_command_sees_its_mask_and_its_priority() -> None:
    ended = run("sh", "-c", "umask; nice", umask=0o027, nice=7)

    assert ended.said.split() == ["0027", "7"]


def test_this_process_keeps_its_own() -> None:
    before = os.umask(0o022), os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.umask(before[0])

    run("true", umask=0o777, nice=19, nofile=10)

    after = os.umask(before[0]), os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_NOFILE)
    assert after == before


def test_a_file_that_grows_too_large_ends_the_command_with_its_signal(tmp_path: Path) -> None:
    ended = run("sh", "-c", f"exec head -c 10000 /dev/zero >{tmp_path}/file", file_size_bytes=5000)

    assert ended.signal == signal.SIGXFSZ
    assert (tmp_path / "file").stat().st_size == 5000


def test_a_command_that_uses_up_its_processor_time_ends_with_its_signal() -> None:
    assert run("sh", "-c", "while :; do :; done", cpu_seconds=1).signal == signal.SIGXCPU


def test_without_a_group_a_process_cannot_have_more_memory_than_its_limit() -> None:
    ended = run(sys.executable, "-c", "x = bytearray(1 << 30)", memory_bytes=256 << 20)

    assert ended.code == 1


def test_a_limit_far_below_what_this_process_uses_does_not_keep_a_small_command_from_starting() -> None:
    assert run("/bin/echo", "hi", memory_bytes=8 << 20).said == "hi"


def test_a_prepared_command_starts_like_any_other(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$0 $1"; set -- $(cat /proc/$$/stat); test $1 = $5 && test $1 = $6 && pwd\n')
    script.chmod(0o755)

    ended = run("./script", "a b", cwd=str(tmp_path), nice=1)

    assert ended.said.split("\n") == ["./script a b", str(tmp_path)]


def test_variables_with_odd_names_reach_the_command() -> None:
    ended = run("/usr/bin/env", env={b"a.b-c": b"1", b"PATH": b"/usr/bin:/bin"}, nice=1)

    assert "a.b-c=1" in ended.said.split("\n")


def test_only_the_three_streams_and_no_signal_are_handed_down() -> None:
    ended = run("sh", "-c", "ls /proc/$$/fd; exec grep -E 'Sig(Ign|Blk)' /proc/self/status", nofile=64)

    *files, _, blocked, _, ignored = ended.said.split()
    assert files == ["0", "1", "2"]
    assert int(blocked, 16) & 0x7FFFFFFF == int(ignored, 16) & 0x7FFFFFFF == 0


@pytest.mark.parametrize(
    "program, code, why",
    [("no-such-program", 127, "not found on PATH"), ("/no/such", 127, "No such file"), ("/etc/passwd", 126, "denied")],
)
def test_a_program_that_cannot_run_is_told_as_for_any_other(program: str, code: int, why: str) -> None:
    with pytest.raises(CannotStart) as error:
        run(program, nice=1)

    assert error.value.code == code
    assert why.lower() in error.value.reason.lower()


def test_what_nobody_may_have_is_refused_with_what_may_be_had() -> None:
    error = refused(nofile=1 << 40)

    found = re.fullmatch(rf"cannot set nofile to {1 << 40}: this worker may give (\d+) at the most", error.reason)
    assert (error.code, error.is_passing) == (126, False)
    assert found is not None
    assert run("sh", "-c", "ulimit -n", nofile=int(found[1])).said == found[1]
    refused(nofile=int(found[1]) + 1)


def test_what_needs_privilege_is_refused_with_what_may_be_had() -> None:
    need_root()  # to become somebody else
    asked = [{"nofile": 65}, {"file_size_bytes": 2 << 20}, {"cpu_seconds": 61}, {"nice": -1}, {"cpu_seconds": 60}]

    code = AS_NOBODY % ", ".join(map(repr, asked))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout.splitlines() == [
        "126 False cannot set nofile to 65: this worker may give 64 at the most",
        "126 False cannot set file_size to 2MiB: this worker may give 1MiB at the most",
        "126 False cannot set cpu_seconds to 61 s: this worker may give 60 s at the most",
        "126 False cannot set nice to -1: this worker may give 0 at the lowest",
        "started",
    ], done.stderr


def test_a_group_that_is_gone_is_no_fault_of_the_command(tmp_path: Path) -> None:
    wanted = prepare.plan(Launch(memory_bytes=1 << 30), str(tmp_path / "gone"))

    with pytest.raises(CannotStart) as error:
        spawn(["true"], dict(os.environb), "/", stdin=0, output=1, preparation=wanted)

    assert error.value.is_passing
    assert str(tmp_path / "gone") in error.value.reason


def test_a_command_is_in_its_group_when_it_starts(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    wanted = prepare.plan(Launch(memory_bytes=1 << 30), str(tmp_path))

    pid = spawn(["test", "-s", str(tmp_path / "cgroup.procs")], {}, "/", stdin=0, output=1, preparation=wanted)

    assert os.waitpid(pid, 0)[1] == 0
    assert wanted.limits == ()


def test_nothing_stays_open_and_no_child_is_left(tmp_path: Path) -> None:
    before, children = set(os.listdir("/proc/self/fd")), children_of_this_process()

    run("true", nice=1)
    refused(nofile=1 << 40)

    assert set(os.listdir("/proc/self/fd")) == before
    assert children_of_this_process() == children


def children_of_this_process() -> set[str]:
    """Return the pids of what this process started and has not waited for; other tests may have left some running."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_commands_start_beside_busy_threads() -> None:
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            str([bytes(100) for _ in range(1000)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes = {run("true", nice=1, memory_bytes=1 << 30).code for _ in range(30)}
    is_over.set()
    for thread in threads:
        thread.join()

    assert codes == {0}
