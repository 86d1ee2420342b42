"""Runner: one real command from its start to its report, in every way it can end."""

import errno
import gc
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.model.verdict import Outcome, OutcomeKind
from queuectl.runtime.wording import CANCEL, DEADLINE, HAND_BACK, TIMEOUT, longest_run
from queuectl.system import launch as quick
from queuectl.system import process
from queuectl.system.limits import FILES_PER_RUN
from queuectl.system.liveness import read_note
from tests.program import wait_for
from tests.runtime.running import STEP_BY_STEP, WAYS, Bench, a_job, has_printed, is_running, start_by

SHORT_GRACE = {"kill_grace_seconds": "0.3"}


@pytest.fixture(params=WAYS)
def bench(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Somewhere to run commands, started in each of the ways there are."""
    start_by(request.param, monkeypatch)
    bench = Bench(tmp_path / "home")
    yield bench
    bench.close()


class TestEnds:
    """How a run is reported."""

    @pytest.mark.parametrize("code", [0, 1, 42, 255])
    def test_the_exit_code_is_the_commands(self, bench: Bench, code: int) -> None:
        outcome = bench.run(f"exit {code}").outcome

        assert (outcome.kind, outcome.exit_code, outcome.is_success) == (OutcomeKind.EXITED, code, code == 0)

    def test_one_that_a_debugger_has_still_is_collected_later(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = [0]

        def not_yet(look: Callable[..., object]) -> Callable[..., object]:
            def later(*args: object) -> object:
                looks[0] += 1
                return None if looks[0] < 3 else look(*args)

            return later

        monkeypatch.setattr(quick, "land", not_yet(quick.land))
        monkeypatch.setattr(process, "reap", not_yet(process.reap))

        outcome = bench.run("exit 3").outcome

        assert (outcome.exit_code, looks[0]) == (3, 3)

    def test_one_that_a_debugger_has_still_is_not_looked_at_all_the_time(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runner = bench.start("exit 3")
        with monkeypatch.context() as held:
            held.setattr(quick, "land", lambda *_: None)
            held.setattr(process, "reap", lambda _: None)
            held.setattr(process, "is_over", lambda _: False)
            bench.turn_until(runner, lambda: runner.is_over)
            runner.stop(CANCEL)
            now = time.monotonic() + 600
            runner.tick(now, process.Processes())

            assert runner.next_tick() > time.monotonic()
        assert bench.finish(runner).outcome.exit_code == 3

    def test_a_signal_that_ended_the_command_is_named(self, bench: Bench) -> None:
        outcome = bench.run("kill -9 $$").outcome

        assert (outcome.kind, outcome.exit_code, outcome.signal) == (OutcomeKind.KILLED, None, 9)

    def test_what_the_kernel_counted_is_reported(self, bench: Bench) -> None:
        report = bench.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")

        assert report.cpu_ms is not None
        assert report.cpu_ms >= 10
        assert report.peak_memory_bytes is not None
        assert report.peak_memory_bytes > 100_000

    def test_nothing_stays_open_after_a_run(self, bench: Bench) -> None:
        bench.run("echo before")
        gc.collect()  # what earlier tests left to it
        before = set(os.listdir("/proc/self/fd"))

        bench.run("seq 100000", max_output_bytes="64KiB")
        bench.run("sleep 60", timeout_s=0.05)
        bench.run(argv='["/no/such/program"]')

        assert set(os.listdir("/proc/self/fd")) == before

    def test_a_command_that_ends_leaves_what_it_started_in_the_background_alone(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        runner = bench.start(f"sleep 600 >/dev/null 2>&1 & echo $! >{tmp_path}/pid")

        report = bench.finish(runner)
        left = int((tmp_path / "pid").read_text())

        assert report.outcome.is_success
        assert is_running(left)
        os.kill(left, signal.SIGKILL)


class TestStarts:
    """What a command finds when it starts, and what happens when it cannot."""

    def test_a_folder_that_is_missing(self, bench: Bench) -> None:
        outcome = bench.run("true", cwd="/no/such/folder").outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)
        assert outcome.error == "cannot enter /no/such/folder: No such file or directory"

    @pytest.mark.parametrize("program", ["no-such-program", "/no/such/program", "./no-such-program"])
    def test_a_program_that_is_missing(self, bench: Bench, program: str) -> None:
        outcome = bench.run(argv=json.dumps([program])).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 127)
        assert program in str(outcome.error)

    def test_a_file_that_may_not_be_executed(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("echo hi\n")

        outcome = bench.run(argv=json.dumps([str(tmp_path / "plain")])).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)

    def test_a_file_on_the_path_that_may_not_be_executed(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "plain").write_text("echo hi\n")
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")

        outcome = bench.run(argv='["plain"]').outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)

    def test_a_shell_that_is_missing(self, bench: Bench) -> None:
        outcome = bench.run("true", shell="/no/such/shell").outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 127)
        assert "/no/such/shell" in str(outcome.error)

    @pytest.mark.parametrize(
        "asked",
        [
            {"argv": ["echo", "a\0b"]},
            {"argv": ["/bin/echo", "\ud800"]},
            {"command": "echo \ud800"},
            {"command": f": {'x' * (200 << 10)}\ud800"},
            {"command": "true", "cwd": "/tmp/\0"},
            {"command": "true", "cwd": "/\ud800"},
            {"command": "true", "env": {"A": "b\0C=d"}},
            {"command": "true", "env": {"A": "\ud800"}},
            {"command": "true", "split_output": True, "cwd": "/\0"},
            {"command": "true\0", "launch": {"nofile": 50}},
            {"command": "true", "launch": {"stdin_file": "\0"}},
        ],
    )
    def test_what_no_program_can_be_given_does_not_start(self, bench: Bench, asked: dict[str, object]) -> None:
        if "argv" in asked:
            asked = {**asked, "argv": json.dumps(asked["argv"])}
        before = set(os.listdir("/proc/self/fd"))

        report = bench.run(**asked)  # type: ignore[arg-type]

        assert (report.outcome.kind, report.outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)
        assert str(report.outcome.error).isprintable()
        assert set(os.listdir("/proc/self/fd")) == before
        assert os.listdir(bench.home.run) == []

    def test_what_tells_a_command_is_noted_before_it_is_started_and_its_pid_after(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spawn, noted = os.posix_spawn, []

        def look_and_spawn(*args: object, **named: object) -> int:
            noted.append(read_note(bench.lock.path).leaders)
            return spawn(*args, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "posix_spawn", look_and_spawn)

        runner = bench.start("readlink /proc/self/fd/1 /proc/self/fd/2; sleep 600", split_output=True)
        ((before,),), (after,) = noted, read_note(bench.lock.path).leaders
        bench.turn_until(runner, lambda: has_printed(runner))
        runner.stop(HAND_BACK, grace_s=0)
        printed = bench.finish(runner).output_tail.decode()

        assert (before.pid, before.seq, before.run, after.pid) == (0, 1, 1, runner.pid)
        assert before.pipes == after.pipes
        assert printed.split() == [f"pipe:[{inode}]" for inode in after.pipes]

    @pytest.mark.parametrize("pipes", [0, 1], ids=["for stdout", "for stderr"])
    def test_without_a_descriptor_for_a_pipe_it_is_handed_back_and_nothing_stays_open(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, pipes: int
    ) -> None:
        before = set(os.listdir("/proc/self/fd"))
        make, left = os.pipe2, [pipes]

        def make_a_few(flags: int) -> tuple[int, int]:
            if not left[0]:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            left[0] -= 1
            return make(flags)

        monkeypatch.setattr(os, "pipe2", make_a_few)

        runner = bench.start("true", split_output=True)

        assert runner.report is not None
        assert runner.report.outcome == Outcome.handed_back("cannot make a pipe for its output: Too many open files")
        assert runner.is_starved
        assert set(os.listdir("/proc/self/fd")) == before

    def test_a_command_that_cannot_be_watched_is_ended_and_handed_back(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start_by(STEP_BY_STEP, monkeypatch)  # in one call, what is watched is made with the command
        started = []

        def refuse(pid: int) -> int:
            started.append(pid)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(os, "pidfd_open", refuse)

        runner = bench.start("exec env -i sh -c 'setsid sleep 600 & sleep 600'")

        assert runner.report is not None
        assert runner.report.outcome.kind is OutcomeKind.HANDED_BACK
        assert bench.living(runner) == []
        assert not os.path.exists(f"/proc/{started[0]}")  # collected, too

    def test_a_script_without_a_first_line_runs_through_sh(self, bench: Bench, tmp_path: Path) -> None:
        script = tmp_path / "script"
        script.write_text('echo "$0 got $1"\n')
        script.chmod(0o755)

        report = bench.run(argv='["./script", "a b"]', cwd=str(tmp_path))

        assert report.output_tail == b"./script got a b\n"

    def test_an_argument_vector_meets_no_shell(self, bench: Bench) -> None:
        report = bench.run(argv='["printf", "%s|", "$HOME", "a  b", "*"]')

        assert report.output_tail == b"$HOME|a  b|*|"

    def test_the_shell_of_the_settings_is_used(self, bench: Bench) -> None:
        report = bench.run("echo ${BASH_VERSION:+bash}", shell="/bin/bash")

        assert report.output_tail == b"bash\n"

    def test_stdin_is_empty(self, bench: Bench) -> None:
        report = bench.run("cat; readlink /proc/self/fd/0")

        assert report.output_tail == b"/dev/null\n"

    def test_signals_do_what_they_do_by_default(self, bench: Bench) -> None:
        report = bench.run("yes | head -1; grep -E 'Sig(Ign|Blk)' /proc/self/status")

        y, _, blocked, _, ignored = report.output_tail.split()
        assert (report.outcome.is_success, y) == (True, b"y")
        assert int(blocked, 16) & 0x7FFFFFFF == int(ignored, 16) & 0x7FFFFFFF == 0

    def test_the_command_leads_a_session_of_its_own(self, bench: Bench) -> None:
        report = bench.run("set -- $(cat /proc/$$/stat); echo $$ $5 $6")

        pid, group, session = report.output_tail.split()
        assert pid == group == session

    def test_only_the_three_streams_are_handed_down(self, bench: Bench) -> None:
        report = bench.run(argv='["ls", "/proc/self/fd"]')

        assert report.output_tail.split() == [b"0", b"1", b"2", b"3"]  # 3 is the folder ls itself reads

    def test_a_shell_line_of_200_kib_runs_through_a_file_that_is_gone_after(self, bench: Bench) -> None:
        line = f"x='{'y' * (200 << 10)}'; ls {bench.home.run}; echo ${{#x}}"

        report = bench.run(line)

        assert report.output_tail.split() == [b"1.1.sh", b"204800"]
        assert os.listdir(bench.home.run) == []

    def test_a_long_shell_line_is_measured_in_bytes(self, bench: Bench) -> None:
        report = bench.run(f"x='{'ä' * (66 << 10)}'; echo ok")

        assert report.output_tail == b"ok\n"

    def test_a_long_shell_line_that_removes_its_own_file_harms_nobody(self, bench: Bench) -> None:
        report = bench.run(f"rm {bench.home.run}/*.sh; : '{'y' * (200 << 10)}'")

        assert report.outcome.is_success

    def test_a_long_shell_line_that_cannot_be_written_does_not_start(self, bench: Bench) -> None:
        os.rmdir(bench.home.run)

        outcome = bench.run(f": '{'y' * (200 << 10)}'").outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)


class TestOutput:
    """What is kept of what a command prints."""

    def test_both_streams_are_kept_in_order(self, bench: Bench) -> None:
        report = bench.run("echo one; echo two >/dev/stderr; echo three")

        assert report.output_tail == b"one\ntwo\nthree\n"

    def test_tee_to_stderr_works(self, bench: Bench) -> None:
        report = bench.run("echo both | tee /dev/stderr; sleep 0.3; echo later | tee /dev/stderr")

        assert report.output_tail == b"both\nboth\nlater\nlater\n"
        assert report.output_file == "0/1.1.log"
        assert Path(bench.home.logs, report.output_file).read_bytes() == report.output_tail

    def test_short_output_makes_no_file(self, bench: Bench) -> None:
        report = bench.run("echo short")

        assert (report.output_bytes, report.output_file, os.listdir(bench.home.logs)) == (6, None, [])

    def test_output_of_a_command_that_goes_on_can_be_read_while_it_runs(self, bench: Bench) -> None:
        runner = bench.start("echo begun; sleep 600")

        bench.turn_until(runner, lambda: bench.log(runner).exists())
        seen = bench.log(runner).read_bytes()
        runner.stop(HAND_BACK)
        bench.finish(runner)

        assert seen == b"begun\n"
        assert runner.elapsed_s < 60

    def test_output_that_begins_late_can_be_read_while_it_runs(self, bench: Bench) -> None:
        runner = bench.start("sleep 0.5; echo late; sleep 600")

        bench.turn_until(runner, lambda: bench.log(runner).exists())
        seen = bench.log(runner).read_bytes()
        runner.stop(HAND_BACK)
        bench.finish(runner)

        assert seen == b"late\n"

    def test_a_file_that_is_due_is_never_forgotten(self, bench: Bench) -> None:
        runner = bench.start("echo begun; sleep 600")
        bench.turn_until(runner, lambda: has_printed(runner))

        while runner.elapsed_s < 0.2:  # the worker is busy with something else while the time passes
            pass
        due = runner.next_tick()
        runner.stop(HAND_BACK)
        bench.finish(runner)

        assert due <= time.monotonic()

    def test_a_child_that_keeps_the_pipe_open_does_not_delay_the_end(self, bench: Bench, tmp_path: Path) -> None:
        runner = bench.start(f"sleep 600 & echo $! >{tmp_path}/pid; echo done")

        report = bench.finish(runner)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

        assert (report.outcome.is_success, report.output_tail) == (True, b"done\n")
        assert runner.elapsed_s < 60

    def test_a_child_that_floods_the_pipe_does_not_delay_the_end(self, bench: Bench, tmp_path: Path) -> None:
        runner = bench.start(f"yes flood & echo $! >{tmp_path}/pid; sleep 0.3")

        report = bench.finish(runner)
        flood = int((tmp_path / "pid").read_text())
        wait_for(lambda: not is_running(flood) or None, "the child to find its pipe closed")

        assert report.outcome.is_success
        assert runner.elapsed_s < 60

    def test_a_log_that_cannot_be_written_does_not_stop_the_command(self, bench: Bench) -> None:
        os.rmdir(bench.home.logs)
        Path(bench.home.logs).write_text("a file where the folder should be")

        report = bench.run("seq 50000; sleep 0.3; echo end")

        assert report.outcome.is_success
        assert report.output_tail.startswith(b"[queuectl: the output could not be written to disk: ")
        assert report.output_tail.endswith(b"50000\nend\n")


class TestStops:
    """Ending a command means ending its whole tree."""

    def test_a_timeout_ends_the_tree_children_in_the_background_included(self, bench: Bench) -> None:
        runner = bench.start("sleep 600 & (sleep 600; true) & sleep 600", timeout_s=0.2)

        outcome = bench.finish(runner).outcome

        assert (outcome.kind, outcome.error) == (OutcomeKind.TIMED_OUT, "timed out after 0.2 s")
        assert bench.living(runner) == []

    def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(self, bench: Bench) -> None:
        runner = bench.start("sh -c 'trap \"\" TERM; while :; do sleep 1; done' & wait", timeout_s=0.2, **SHORT_GRACE)

        outcome = bench.finish(runner).outcome

        assert outcome.kind is OutcomeKind.TIMED_OUT
        assert bench.living(runner) == []
        assert runner.elapsed_s >= 0.5

    def test_a_child_in_a_session_of_its_own_is_found_by_its_mark(self, bench: Bench) -> None:
        runner = bench.start("setsid sleep 600 & sleep 600", timeout_s=600, **SHORT_GRACE)

        outcome = bench.time_out(runner, lambda: len(bench.living(runner)) == 3).outcome

        assert outcome.kind is OutcomeKind.TIMED_OUT
        assert bench.living(runner) == []

    def test_a_child_without_the_mark_is_found_by_its_session(self, bench: Bench, tmp_path: Path) -> None:
        line = f"env -i sleep 600 & echo $! >{tmp_path}/pid; echo begun; sleep 600"
        runner = bench.start(line, timeout_s=600, **SHORT_GRACE)

        bench.time_out(runner, lambda: has_printed(runner))

        assert not is_running(int((tmp_path / "pid").read_text()))

    def test_a_stopped_child_is_ended_too(self, bench: Bench, tmp_path: Path) -> None:
        line = f"sleep 600 & echo $! >{tmp_path}/pid; kill -STOP $!; echo begun; wait"
        runner = bench.start(line, timeout_s=600, kill_grace_seconds="600")

        outcome = bench.time_out(runner, lambda: has_printed(runner)).outcome

        assert outcome.kind is OutcomeKind.TIMED_OUT
        assert not is_running(int((tmp_path / "pid").read_text()))  # continued, so that it could end within the grace

    def test_a_command_that_ends_well_within_the_grace_still_timed_out(self, bench: Bench) -> None:
        command = "trap 'echo tidied up; exit 0' TERM; echo begun; while :; do sleep 0.05; done"
        runner = bench.start(command, timeout_s=600, kill_grace_seconds="600")

        report = bench.time_out(runner, lambda: has_printed(runner))

        assert (report.outcome.kind, report.outcome.exit_code) == (OutcomeKind.TIMED_OUT, 0)
        assert report.output_tail.endswith(b"tidied up\n")

    def test_what_is_printed_during_the_grace_is_kept(self, bench: Bench) -> None:
        command = "trap 'echo last words; sleep 0.2; echo really; exit' TERM; echo begun; while :; do sleep 0.05; done"
        runner = bench.start(command, timeout_s=600, kill_grace_seconds="600")

        report = bench.time_out(runner, lambda: has_printed(runner))

        assert report.output_tail.endswith(b"last words\nreally\n")

    def test_a_job_without_a_timeout_has_that_of_the_settings(self, bench: Bench) -> None:
        outcome = bench.run("sleep 600", job_timeout="0.2").outcome

        assert outcome.error == "timed out after 0.2 s"

    @pytest.mark.parametrize(
        "reason, kind", [(CANCEL, "cancelled"), (HAND_BACK, "handed_back"), (TIMEOUT, "timed_out")]
    )
    def test_the_first_reason_to_stop_decides(self, bench: Bench, reason: str, kind: str) -> None:
        runner = bench.start("sleep 600", timeout_s=600)

        runner.stop(reason)
        runner.stop(HAND_BACK)
        runner.stop(CANCEL)

        assert bench.finish(runner).outcome.kind == kind

    def test_a_timeout_that_passes_while_a_cancelled_command_tidies_up_changes_nothing(self, bench: Bench) -> None:
        command = "trap 'sleep 1.5; exit 0' TERM; echo begun; while :; do sleep 0.05; done"
        runner = bench.start(command, timeout_s=600, kill_grace_seconds="600")
        bench.turn_until(runner, lambda: has_printed(runner))

        runner.stop(CANCEL)
        outcome = bench.time_out(runner, lambda: True).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.CANCELLED, 0)

    def test_a_command_that_ended_before_the_first_signal_keeps_its_own_outcome(self, bench: Bench) -> None:
        runner = bench.start("exit 7")
        wait_for(lambda: not is_running(runner._pid) or None, "the command to end")

        runner.stop(CANCEL)
        outcome = bench.finish(runner).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.EXITED, 7)

    def test_so_does_one_that_ends_while_its_processes_are_looked_for(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runner = bench.start(f"until test -e {tmp_path}/go; do sleep 0.01; done; exit 7")
        look = process.Processes.tree

        def look_slowly(self: process.Processes, leader: int, mark: str, known: dict[int, float]) -> list[int]:
            found = look(self, leader, mark, known)
            (tmp_path / "go").touch()
            wait_for(lambda: not is_running(leader) or None, "the command to end")
            return found

        monkeypatch.setattr(process.Processes, "tree", look_slowly)
        runner.stop(CANCEL)
        outcome = bench.finish(runner).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.EXITED, 7)

    def test_a_process_of_another_user_does_not_bring_the_worker_down(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runner = bench.start("trap '' TERM; while :; do sleep 0.05; done", timeout_s=0.1, kill_grace_seconds="0")
        refused = []

        def refuse(pid: int, number: int) -> None:
            refused.append(pid)
            raise PermissionError(1, "Operation not permitted")

        with monkeypatch.context() as patched:
            patched.setattr(os, "kill", refuse)
            bench.turn_until(runner, lambda: len(refused) > 3)
        is_over_too_early = runner.report is not None
        outcome = bench.finish(runner).outcome

        assert not is_over_too_early
        assert outcome.kind is OutcomeKind.TIMED_OUT


# Output in two pipes.


def test_both_streams_are_kept_apart_when_asked_for(bench: Bench) -> None:
    report = bench.run("echo out; echo err >&2; echo more", split_output=True)

    assert (report.output_tail, report.output_bytes, report.output_file) == (b"out\nmore\n", 9, None)
    assert (report.stderr_tail, report.stderr_bytes, report.stderr_file) == (b"err\n", 4, None)


def test_both_streams_share_one_pipe_by_default(bench: Bench) -> None:
    report = bench.run("echo out; echo err >&2; echo more")

    assert report.output_tail == b"out\nerr\nmore\n"
    assert (report.stderr_bytes, report.stderr_file, report.stderr_tail) == (None, None, None)


def test_each_of_two_streams_has_the_limits_of_its_own(bench: Bench) -> None:
    runner = bench.start(
        "seq 100000 >&2; seq 20000; sleep 0.3",
        split_output=True,
        max_output_bytes="64KiB",
        output_tail_bytes="1KiB",
    )

    report = bench.finish(runner)

    logs = Path(bench.home.logs)
    assert (report.output_file, report.stderr_file) == ("0/1.1.log", "0/1.1.err.log")
    for name, total, last in (("0/1.1.log", 108_894, b"20000\n"), ("0/1.1.err.log", 588_895, b"100000\n")):
        text = (logs / name).read_bytes()
        assert len(text) <= 64 << 10
        assert text.startswith(b"1\n2\n")
        assert text.endswith(last)
        assert total in (report.output_bytes, report.stderr_bytes)
    assert (len(report.output_tail), len(report.stderr_tail or b"")) == (1024, 1024)
    assert sorted(os.listdir(logs / "0")) == ["1.1.err.log", "1.1.log"]


def test_a_split_command_that_cannot_start_has_two_empty_streams(bench: Bench) -> None:
    report = bench.run("true", cwd="/no/such/folder", split_output=True)

    assert report.outcome.kind is OutcomeKind.NOT_STARTED
    assert (report.output_bytes, report.stderr_bytes, report.stderr_tail) == (0, 0, b"")


def test_a_run_opens_no_more_files_than_a_worker_counts_on(bench: Bench) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))

    runner = bench.start("seq 100000; seq 100000 >&2; sleep 60", split_output=True, max_output_bytes="64KiB")
    bench.turn_until(
        runner, lambda: len(os.listdir(bench.log(runner).parent)) == 6 if bench.log(runner).exists() else 0
    )
    opened = len(os.listdir("/proc/self/fd")) - before
    runner.stop(CANCEL)
    bench.finish(runner)

    assert opened == FILES_PER_RUN


@pytest.mark.parametrize(
    "timeout_ms, setting_s, left_ms, expected",
    [
        (None, 0, None, (0, TIMEOUT)),
        (None, 7, None, (7, TIMEOUT)),
        (5_000, 7, None, (5, TIMEOUT)),
        (None, 0, 1_500, (1.5, DEADLINE)),
        (0, 7, 1_500, (1.5, DEADLINE)),
        (5_000, 0, 1_500, (1.5, DEADLINE)),
        (None, 1, 1_500, (1, TIMEOUT)),
        (1_500, 0, 1_500, (1.5, TIMEOUT)),
        (None, 0, 0, (0.001, DEADLINE)),
    ],
)
def test_a_run_is_stopped_by_its_timeout_or_by_the_deadline_of_its_job(
    timeout_ms: int | None, setting_s: float, left_ms: int | None, expected: tuple[float, str]
) -> None:
    deadline_at = None if left_ms is None else 9_000 + left_ms
    job = a_job(1, "w1").replace(started_at=9_000, timeout_ms=timeout_ms, deadline_ms=1, deadline_at=deadline_at)

    assert longest_run(job, setting_s) == expected
