"""The poll loop: one wait with a deadline, a callback per descriptor."""

import os
import select
import time

import pytest

from queuectl.runtime.loop import Loop


class Pipe:
    """A pipe whose reading end is watched."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def ring(self) -> None:
        os.write(self.write_end, b"x")

    def close(self) -> None:
        for fd in (self.read_end, self.write_end):
            os.close(fd)


def test_a_turn_ends_at_its_time() -> None:
    begun = time.monotonic()

    Loop().turn(begun + 0.1)

    assert 0.09 <= time.monotonic() - begun < 60


def test_a_time_that_has_passed_does_not_wait() -> None:
    begun = time.monotonic()

    Loop().turn(begun - 100)

    assert time.monotonic() - begun < 60


def test_another_thread_may_end_its_waiting_once() -> None:
    loop, begun = Loop(), time.monotonic()
    loop.ring()

    is_told = select.select([loop.fileno()], [], [], 0)[0] != []
    loop.turn(begun + 60)
    took_s = time.monotonic() - begun

    assert is_told
    assert took_s < 60
    assert select.select([loop.fileno()], [], [], 0)[0] == []


def test_nothing_of_it_stays_open() -> None:
    before = os.listdir("/proc/self/fd")

    Loop().close()

    assert os.listdir("/proc/self/fd") == before


def test_what_is_readable_is_called_back_at_once() -> None:
    loop, pipe, heard = Loop(), Pipe(), []
    loop.watch(pipe.read_end, lambda: heard.append(os.read(pipe.read_end, 1)))

    pipe.ring()
    loop.turn(time.monotonic() + 60)

    assert heard == [b"x"]
    pipe.close()


def test_the_end_of_a_pipe_is_called_back() -> None:
    loop, pipe, heard = Loop(), Pipe(), []
    loop.watch(pipe.read_end, lambda: heard.append(os.read(pipe.read_end, 1)))

    os.close(pipe.write_end)
    loop.turn(time.monotonic() + 60)

    assert heard == [b""]
    os.close(pipe.read_end)


def test_a_descriptor_that_is_forgotten_is_silent() -> None:
    loop, pipe = Loop(), Pipe()
    loop.watch(pipe.read_end, lambda: pytest.fail("it was forgotten"))

    loop.unwatch(pipe.read_end)
    loop.unwatch(pipe.read_end)
    pipe.ring()
    loop.turn(0)

    pipe.close()


def test_a_callback_may_forget_another_of_the_same_turn() -> None:
    loop, pipes, heard = Loop(), [Pipe(), Pipe()], []
    for pipe, other in (pipes, reversed(pipes)):

        def called(pipe: Pipe = pipe, other: Pipe = other) -> None:
            heard.append(pipe)
            loop.unwatch(other.read_end)

        loop.watch(pipe.read_end, called)

    for pipe in pipes:
        pipe.ring()
    loop.turn(time.monotonic() + 60)

    assert len(heard) == 1
    for pipe in pipes:
        pipe.close()


def test_forgetting_a_descriptor_that_was_closed_already_is_fine() -> None:
    loop, pipe = Loop(), Pipe()
    loop.watch(pipe.read_end, lambda: None)
    pipe.close()

    loop.unwatch(pipe.read_end)


def test_each_turn_is_noted_for_the_heartbeat() -> None:
    loop = Loop()
    before = loop.turned_at

    loop.turn(time.monotonic() + 0.01)

    assert loop.turned_at > before


def test_what_is_watched_once_rings_once_also_where_its_number_is_anothers_by_then() -> None:
    loop, first, heard = Loop(), Pipe(), []
    loop.watch_once(first.read_end, lambda: heard.append("first"))
    first.ring()
    loop.turn(time.monotonic() + 60)

    kept = os.dup(first.read_end)  # as a process has that was just started: it stays readable
    number = first.read_end
    second = Pipe()
    os.dup2(second.read_end, number)
    loop.watch_once(number, lambda: heard.append("second"))
    loop.turn(time.monotonic())
    before = [*heard]
    second.ring()
    loop.turn(time.monotonic() + 60)

    assert (before, heard) == (["first"], ["first", "second"])
    os.close(kept)
    first.close()
    second.close()


def test_who_was_closed_without_a_word_takes_nothing_from_one_that_is_watched_once_under_its_number() -> None:
    loop, first, heard = Loop(), Pipe(), []

    def bell() -> None:
        heard.append("bell")

    loop.watch(first.read_end, bell)
    second = Pipe()
    os.dup2(second.read_end, first.read_end)  # closes it, as a library does that connects again
    loop.watch_once(first.read_end, lambda: heard.append("end"))
    loop.unwatch(first.read_end, bell)
    second.ring()
    loop.turn(time.monotonic() + 10)

    assert heard == ["end"]
    first.close()
    second.close()
