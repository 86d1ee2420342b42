"""Streak: which jobs one call begins one after the other, and what becomes of the one that ends it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import clock
from queuectl.model.job import Claim, dumps
from queuectl.model.verdict import OutcomeKind
from queuectl.runtime import streak
from queuectl.runtime.runner import NEVER, PUMP_AFTER_S, Runner
from queuectl.runtime.streak import run_through
from queuectl.runtime.wording import FILE_COMMAND_BYTES, HAND_BACK
from queuectl.system import launch as quick
from queuectl.system import oom
from queuectl.system.endnotes import read_end_notes
from queuectl.system.liveness import read_note
from queuectl.system.process import Processes
from queuectl.system.variables import Variables
from tests.runtime.running import IN_ONE_CALL, STEP_BY_STEP, Bench, a_job, start_by, the_settings

PATIENCE_MS = 500
"""Enough for a command that does nothing, and what one takes at least that sleeps."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Somewhere to run commands."""
    start_by(IN_ONE_CALL, monkeypatch)
    monkeypatch.setattr(streak, "PUMP_AFTER_MS", 20_000)  # however slow this machine is
    bench = Bench(tmp_path / "home")
    assert bench.lock.expect_ends()
    yield bench
    bench.close()


def run_all(bench: Bench, *claims: Claim, **settings: str) -> tuple[list[tuple[int, bytes]], Runner | None]:
    """Run jobs through as a worker with much time does."""
    shared = Variables(os.environb)
    noted, last = run_through(claims, bench.home, the_settings(**settings), shared, bench.pad, bench.loop, NEVER)
    return [(claim.job.seq, report.output_tail) for claim, report in noted], last


def claims_of(bench: Bench, *commands: str) -> list[Claim]:
    """Return claims of shell lines."""
    return [Claim(job=a_job(seq, bench.worker_id).replace(command=line)) for seq, line in enumerate(commands, 1)]


def changed(claim: Claim, **changes: object) -> Claim:
    """Return a claim of a job that is another in something."""
    return Claim(job=claim.job.replace(**changes))


def test_jobs_run_one_after_the_other_with_all_that_a_command_finds(bench: Bench) -> None:
    first, second = claims_of(bench, "echo $QUEUECTL_JOB_ID in $PWD", "echo $QUEUECTL_CLAIM $COLOUR")

    noted, last = run_all(bench, changed(first, cwd="/tmp"), changed(second, env=dumps({"COLOUR": "red"})))

    assert noted == [(1, b"1 in /tmp\n"), (2, b"%b:2:1 red\n" % bench.worker_id.encode())]
    assert last is None


def test_of_those_that_ended_well_none_is_noted_as_under_way(bench: Bench) -> None:
    run_all(bench, *claims_of(bench, ":", ":", ":"))
    ends = read_end_notes(bench.lock.path)
    bench.lock.forget_outcomes()

    assert list(ends or ()) == [(1, 1), (2, 1), (3, 1)]
    assert read_note(bench.lock.path).leaders == ()
    assert bench.lock._places == {}


@pytest.mark.parametrize(
    "changes, settings",
    [
        ({"launch": dumps({"nice": 3})}, {}),
        ({"split_output": 1}, {}),
        ({"has_dependents": 1}, {}),
        ({"limits": "{}"}, {}),
        ({"timeout_ms": 1}, {}),
        ({}, {"job_timeout": str(PUMP_AFTER_S / 2)}),
        ({"command": f": {'x' * (FILE_COMMAND_BYTES // 4)}"}, {}),
        ({"command": None, "argv": '["true"]'}, {}),
        ({"env": dumps({"A": "b\0c"})}, {}),
    ],
    ids=[
        "options", "two outputs", "dependents", "limits", "timeout", "timeout of all", "long", "name", "NUL"
    ],
)  # fmt: skip
def test_one_that_takes_more_begins_in_no_streak_and_ends_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], settings: dict[str, str]
) -> None:
    plain, special, behind = claims_of(bench, ":", ":", ":")
    asked: list[int] = []
    launch = quick.launch

    def see_and_launch(commands: list[quick.Command], *more: object) -> object:
        asked.extend(command[0] for command in commands)
        return launch(commands, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(quick, "launch", see_and_launch)

    begun = run_all(bench, plain, changed(special, **changes), behind, **settings)

    assert begun == (([], None) if settings else ([(1, b"")], None))
    assert asked == ([] if settings else [1])


def test_without_the_compiled_module_none_begins_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    start_by(STEP_BY_STEP, monkeypatch)

    assert run_all(bench, *claims_of(bench, ":")) == ([], None)


def test_the_one_that_ends_a_streak_has_a_runner_from_when_it_began(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streak, "PUMP_AFTER_MS", PATIENCE_MS)
    first, second, third = claims_of(bench, ":", "sleep 600", ":")

    noted, last = run_all(bench, first, changed(second, timeout_ms=100), third)
    (leader,) = read_note(bench.lock.path).leaders
    assert last is not None
    has_run_s = last.elapsed_s
    report = bench.finish(last)

    assert (noted, last.claim.job.seq) == ([(1, b"")], 2)
    assert (leader.seq, leader.pid) == (2, last.pid)
    assert has_run_s >= PATIENCE_MS / 1000
    assert report.outcome.kind is OutcomeKind.TIMED_OUT
    assert report.begun_s == pytest.approx(leader.begun, abs=0.001)


def test_the_sleep_of_the_machine_is_not_the_time_of_a_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streak, "PUMP_AFTER_MS", PATIENCE_MS)
    (claim,) = claims_of(bench, "sleep 600")
    boot_s, began = clock.boot_s, time.monotonic()
    monkeypatch.setattr(clock, "boot_s", lambda: boot_s() + 3600)

    _, last = run_all(bench, changed(claim, timeout_ms=3_000_000))
    assert last is not None
    latest = time.monotonic() - began
    has_run_s = last.elapsed_s
    last.tick(time.monotonic(), Processes())
    is_stopped = last._stop_reason is not None
    last.stop(HAND_BACK, grace_s=0.0)
    bench.finish(last)

    assert has_run_s <= latest + 1
    assert not is_stopped


@pytest.mark.parametrize("kills, kind", [(1, OutcomeKind.OUT_OF_MEMORY), (0, OutcomeKind.KILLED)])
def test_one_that_was_killed_is_held_against_the_count_of_the_host_before_the_streak(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kills: int, kind: OutcomeKind
) -> None:
    count = 0
    monkeypatch.setattr(oom, "read_count", lambda: count)
    monkeypatch.setattr(oom, "FRESH_S", 0.0)
    launch = quick.launch

    def launch_and_count(*args: object) -> object:
        nonlocal count
        told = launch(*args)  # type: ignore[arg-type]
        count = kills
        return told

    monkeypatch.setattr(quick, "launch", launch_and_count)

    _, last = run_all(bench, *claims_of(bench, ":", "kill -9 $$"))

    assert last is not None
    assert bench.finish(last).outcome.kind is kind
