"""The kernel's count of kills for lack of memory, and how rarely it is read."""

import time

import pytest

from queuectl.system import oom
from queuectl.system.oom import KillCount


def test_the_count_is_the_kernels() -> None:
    with open("/proc/vmstat") as file:
        told = dict(line.split() for line in file)

    assert KillCount().now() >= int(told.get("oom_kill", 0))


def test_many_starts_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([5, 6])
    monkeypatch.setattr(oom, "read_count", lambda: next(answers))
    count = KillCount()

    assert {count.before_start(time.monotonic()) for _ in range(100)} == {5}


def test_a_kill_that_was_seen_is_not_held_against_what_starts_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([0, 1])
    monkeypatch.setattr(oom, "read_count", lambda: next(answers))
    count = KillCount()

    assert (count.before_start(time.monotonic()), count.now(), count.before_start(time.monotonic())) == (0, 1, 1)


def test_a_kill_of_long_ago_is_not_held_against_one_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 4, 4, 5])
    monkeypatch.setattr(oom, "read_count", lambda: next(counts))
    count = oom.KillCount()
    at_start = count.before_start(time.monotonic())

    for _ in range(2):
        count.look()

    assert (at_start, count.lately) == (3, 4)
    assert count.now() > count.lately
