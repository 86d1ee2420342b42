"""What a job asks of its process: seen from inside the command, and told when it ends the command."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.model.verdict import OutcomeKind
from queuectl.runtime.launchpad import Launchpad
from queuectl.runtime.wording import CANCEL
from queuectl.system import oom
from queuectl.system.cgroups import V2, Place
from queuectl.system.home import Home
from queuectl.system.liveness import LifeLock
from tests.runtime.running import Bench
from tests.system.controlgroups import Kernel
from tests.system.groups import handed_over

HOG = f"exec {shlex.quote(sys.executable)} -c 'x = bytearray(1 << 30)'"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Somewhere to run commands."""
    bench = Bench(tmp_path / "home")
    yield bench
    bench.close()


class TestProcess:
    """Limits, priority, mask and shell."""

    def test_the_command_finds_what_the_job_asks_for(self, bench: Bench) -> None:
        asked = {"nofile": 50, "cpu_seconds": 7, "file_size_bytes": 1 << 20, "nice": 3, "umask": 0o077}

        report = bench.run("ulimit -n; ulimit -t; ulimit -f; nice; umask", launch=asked, shell="/bin/bash")

        assert report.output_tail.split() == [b"50", b"7", b"1024", b"3", b"0077"]

    def test_the_shell_of_the_job_comes_before_that_of_the_settings(self, bench: Bench) -> None:
        report = bench.run("echo ${BASH_VERSION:+bash}", launch={"shell": "/bin/bash"}, shell="/no/such/shell")

        assert report.output_tail == b"bash\n"

    def test_a_prepared_command_is_stopped_with_its_tree(self, bench: Bench) -> None:
        runner = bench.start("sleep 600 & sleep 600", timeout_s=0.2, launch={"nice": 1})
        bench.turn_until(runner, lambda: len(bench.living(runner)) == 3)

        outcome = bench.finish(runner).outcome

        assert outcome.kind is OutcomeKind.TIMED_OUT
        assert bench.living(runner) == []

    def test_what_cannot_be_had_keeps_the_command_from_starting(self, bench: Bench, tmp_path: Path) -> None:
        outcome = bench.run(f"touch {tmp_path}/started", launch={"nofile": 1 << 40}).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)
        assert str(outcome.error).startswith(f"cannot set nofile to {1 << 40}: this worker may give ")
        assert not (tmp_path / "started").exists()

    def test_the_processor_time_it_used_up_is_named(self, bench: Bench) -> None:
        outcome = bench.run("while :; do :; done", launch={"cpu_seconds": 1}).outcome

        assert outcome.error == "killed by SIGXCPU: it used up its 1 s of processor time"

    def test_a_file_it_wrote_too_large_is_named(self, bench: Bench, tmp_path: Path) -> None:
        line = f"exec head -c 10000 /dev/zero >{tmp_path}/file"

        outcome = bench.run(line, launch={"file_size_bytes": 4096}).outcome

        assert outcome.error == "killed by SIGXFSZ: it wrote a file beyond 4KiB"

    def test_nothing_stays_open_after_a_run(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "in").touch()
        before = set(os.listdir("/proc/self/fd"))

        bench.run("true", launch={"nice": 1, "stdin_file": str(tmp_path / "in")})
        bench.run("true", launch={"has_input": True}, kept_input=b"x")
        bench.run("true", launch={"nofile": 1 << 40, "stdin_file": str(tmp_path / "in")})

        assert set(os.listdir("/proc/self/fd")) == before


class TestStdin:
    """What a command reads."""

    def test_a_file_is_read_from_its_beginning_by_each_run(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "in").write_text("from a file\n")

        reports = [bench.run("cat", launch={"stdin_file": str(tmp_path / "in")}) for _ in range(2)]

        assert [report.output_tail for report in reports] == [b"from a file\n"] * 2

    def test_a_file_is_looked_for_in_the_folder_of_the_job(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "in").write_text("here\n")

        report = bench.run("cat", cwd=str(tmp_path), launch={"stdin_file": "in"})

        assert report.output_tail == b"here\n"

    def test_kept_bytes_are_read_as_they_are(self, bench: Bench) -> None:
        data = bytes(range(256)) * 20

        reports = [bench.run("cat", launch={"has_input": True, **more}, kept_input=data) for more in ({}, {"nice": 1})]

        assert [report.output_tail for report in reports] == [data, data]

    def test_a_file_that_is_missing_keeps_the_command_from_starting(self, bench: Bench) -> None:
        outcome = bench.run("cat", launch={"stdin_file": "/no/such/file"}).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)
        assert outcome.error == "cannot read standard input from /no/such/file: No such file or directory"

    def test_kept_bytes_that_are_gone_keep_the_command_from_starting(self, bench: Bench) -> None:
        outcome = bench.run("cat", launch={"has_input": True}).outcome

        assert (outcome.kind, outcome.error) == (
            OutcomeKind.NOT_STARTED,
            "its standard input is not in the store any more",
        )


class TestMemory:
    """Limits of memory, and kills for the lack of it."""

    def test_without_a_group_each_process_is_limited(self, bench: Bench) -> None:
        bench.pad._place = None

        report = bench.run(HOG, launch={"memory_bytes": 256 << 20})

        assert (report.outcome.kind, report.outcome.exit_code) == (OutcomeKind.EXITED, 1)
        assert b"MemoryError" in report.output_tail

    def test_a_hog_dies_by_its_group_and_is_told_so(self, bench: Bench) -> None:
        with handed_over() as bench.pad._place:
            killed = bench.run(HOG, launch={"memory_bytes": 64 << 20}).outcome
            passed_on = bench.run(f"({HOG}); exit $?", launch={"memory_bytes": 64 << 20}).outcome
            survived = bench.run(f"({HOG}); exit 3", launch={"memory_bytes": 64 << 20}).outcome
            assert bench.pad._groups is not None
            bench.pad._groups.close()
            bench.pad._groups = None

        assert (killed.kind, killed.signal, killed.exit_code) == (OutcomeKind.OUT_OF_MEMORY, 9, None)
        assert (passed_on.kind, passed_on.signal, passed_on.exit_code) == (OutcomeKind.OUT_OF_MEMORY, None, 137)
        assert killed.error == "out of memory: killed by the kernel at its limit of 64MiB"
        assert survived.error == "exit code 3; the kernel killed a process of it at its limit of 64MiB of memory"

    @pytest.mark.parametrize(
        "line, kind, error",
        [
            ("kill -9 $$", OutcomeKind.OUT_OF_MEMORY, "out of memory: killed by the kernel at its limit of 64MiB"),
            ("exit 3", "exited", "exit code 3; the kernel killed a process of it at its limit of 64MiB of memory"),
            ("exit 0", "exited", None),
            ("kill -15 $$", "killed", "killed by SIGTERM"),
        ],
    )
    def test_what_the_group_counted_decides(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, kind: str, error: str | None
    ) -> None:
        kernel = Kernel(tmp_path / "cgroup", 2, monkeypatch)
        bench.pad._place = Place(path=str(kernel.top), version=V2)
        group = kernel.top / f"queuectl.{bench.worker_id}" / "1.1"
        line = f"cat {group}/memory.max; echo 'oom_kill 1' >{group}/memory.events; : >{group}/cgroup.procs; {line}"

        report = bench.run(line, launch={"memory_bytes": 64 << 20})

        assert (report.outcome.kind, report.outcome.error) == (kind, error)
        assert report.output_tail == str(64 << 20).encode()
        assert not group.exists()

    def test_a_group_that_cannot_be_made_keeps_the_command_from_starting(self, bench: Bench, tmp_path: Path) -> None:
        bench.pad._place = Place(path=str(tmp_path / "missing"), version=V2)

        outcome = bench.run("true", launch={"memory_bytes": 64 << 20}).outcome

        assert outcome.kind is OutcomeKind.NOT_STARTED
        assert str(outcome.error).startswith("cannot make a control group with memory 64MiB: ")

    @pytest.mark.parametrize(
        "line, kills, error",
        [
            ("kill -9 $$", 1, "out of memory: killed while the kernel killed for lack of memory on this host"),
            ("kill -9 $$", 0, "killed by SIGKILL"),
            ("kill -15 $$", 1, "killed by SIGTERM"),
            (
                "sh -c 'kill -9 $$'; exit $?",
                1,
                "out of memory: killed while the kernel killed for lack of memory on this host",
            ),
            ("exit 3", 1, "exit code 3"),
        ],
    )
    def test_a_plain_command_is_held_against_the_count_of_the_host(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, line: str, kills: int, error: str
    ) -> None:
        count = 0
        monkeypatch.setattr(oom, "read_count", lambda: count)
        runner = bench.start(line)
        count = kills

        assert bench.finish(runner).outcome.error == error

    def test_a_command_we_stopped_is_not_held_against_it(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        count = 0
        monkeypatch.setattr(oom, "read_count", lambda: count)
        runner = bench.start("trap '' TERM; while :; do sleep 0.05; done", kill_grace_seconds="0")
        count = 1

        runner.stop(CANCEL)

        assert bench.finish(runner).outcome.kind is OutcomeKind.CANCELLED


def test_what_a_worker_that_was_killed_left_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(root=str(tmp_path / "home"))
    home.make()
    lock = LifeLock(home, "next")
    kernel = Kernel(tmp_path / "cgroup", 2, monkeypatch)
    kernel.live_in("/")
    (kernel.top / "cgroup.subtree_control").write_text("memory")
    for path in ("queuectl.dead", "queuectl.dead/7.1"):
        kernel.make(kernel.top / path)

    pad = Launchpad("next", lock)
    group = pad.make_group("8.1", 1 << 20)
    between = sorted(path.name for path in kernel.top.glob("queuectl.*"))
    assert group is not None
    pad.drop_group(group)
    pad.close()
    lock.release()

    assert between == ["queuectl.next"]
    assert list(kernel.top.glob("queuectl.*")) == []
