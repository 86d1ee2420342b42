"""Figures: counted by one thread for all, again when it is time, and told when they are there."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from queuectl.actions.connect import Target
from queuectl.errors import StoreUnreachable
from queuectl.store.database import Tx
from queuectl.web import figures, snapshot
from queuectl.web.figures import Figures
from queuectl.web.snapshot import Board

LONG_S = 30.0


@pytest.fixture
def board(sqlite_target: Target) -> Iterator[Board]:
    """The board of an empty store."""
    with closing(Board(sqlite_target)) as board:
        yield board


@pytest.fixture
def counted(board: Board) -> Iterator[Figures]:
    """Figures that nobody asked for yet."""
    with closing(Figures(board)) as counted:
        yield counted


def test_what_took_long_is_counted_a_tenth_of_the_time_at_most(
    counted: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "LEAST_S", 0.0)
    monkeypatch.setattr(figures, "SLIDES_S", 0.0)  # it is always time, but for what it costs
    runs: list[tuple[float, float]] = []

    def count(_tx: Tx) -> int:
        began = time.monotonic()
        time.sleep(0.02)  # stands for work
        runs.append((began, time.monotonic() - began))
        return len(runs)

    deadline = time.monotonic() + LONG_S
    while len(runs) < 3 and time.monotonic() < deadline:
        counted.get("x", count)

    assert len(runs) >= 3
    assert all(second[0] - first[0] >= figures.DUTY * first[1] for first, second in pairwise(runs))


def test_many_who_ask_at_once_have_it_counted_once(counted: Figures) -> None:
    calls: list[str] = []
    go = threading.Event()

    def count(_tx: Tx) -> int:
        calls.append(threading.current_thread().name)
        assert go.wait(LONG_S)
        return 7

    assert [counted.get("x", count) for _ in range(3)] == [None, None, None]  # not there in time
    go.set()

    found = wait_for(counted, "x", count)
    assert found.value == 7
    assert calls == ["figures"]


def test_pages_are_told_when_a_figure_is_there(board: Board, counted: Figures) -> None:
    told = threading.Event()
    before = board.current().version
    with board.watch(lambda view: told.set() if view.version > before else None):
        counted.get("x", lambda _tx: 1)

        assert told.wait(LONG_S)


def test_a_figure_that_cannot_be_counted_keeps_no_other_from_it(
    counted: Figures, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_tx: Tx) -> int:
        raise ZeroDivisionError

    def unreachable(_tx: Tx) -> int:
        raise StoreUnreachable("gone")

    assert counted.get("broken", broken) is None
    assert counted.get("unreachable", unreachable) is None

    assert wait_for(counted, "x", lambda _tx: 3).value == 3
    assert "'broken' cannot be counted" in capsys.readouterr().err


def test_the_end_waits_for_nothing_that_was_only_ordered(board: Board) -> None:
    counted, go, ran = Figures(board), threading.Event(), []

    def count(_tx: Tx) -> int:
        ran.append(1)
        assert go.wait(LONG_S)
        return 1

    for name in "abc":
        counted.get(name, count)
    ending = threading.Thread(target=counted.close)
    ending.start()
    while not counted._is_closed:
        time.sleep(0.001)
    go.set()
    ending.join(LONG_S)

    assert (len(ran), ending.is_alive()) == (1, False)


def test_a_count_that_takes_too_long_does_not_hold_up_the_end(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "CLOSE_S", 0.01)
    counted, go = Figures(board), threading.Event()
    counted.get("x", lambda _tx: go.wait(LONG_S))

    counted.close()

    assert not go.is_set()
    go.set()
    assert counted._thread is not None
    counted._thread.join(LONG_S)


def test_names_that_people_make_up_neither_pile_up_nor_keep_others_from_being_counted(
    counted: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MOST_KEPT", 5)
    monkeypatch.setattr(figures, "MOST_WAITING", 3)
    monkeypatch.setattr(figures, "PATIENCE_S", 0.0)
    go, ran = threading.Event(), []

    def count(_tx: Tx) -> int:
        ran.append(1)
        return int(go.wait(LONG_S))

    for number in range(20):
        counted.get(f"made up {number}", count)
    go.set()

    assert wait_for(counted, "x", lambda _tx: 7).value == 7
    assert len(ran) == 3
    assert max(len(counted._asked), len(counted._kept)) <= 5


def wait_for(counted: Figures, name: str, work: Callable[[Tx], object]) -> figures.Figure:
    """Ask until it is counted."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        if (found := counted.get(name, work)) is not None:
            return found
    raise AssertionError(f"{name} was never counted")


def test_a_look_that_takes_too_long_does_not_hold_up_the_end_of_the_board(
    sqlite_target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CLOSE_S", 0.01)
    monkeypatch.setattr(snapshot, "PATIENCE_S", 0.01)
    go, looks = threading.Event(), threading.Event()

    def wait(_tx: Tx) -> object:
        looks.set()
        assert go.wait(LONG_S)
        raise OSError("gone")

    monkeypatch.setattr(snapshot, "_read", wait)
    board = Board(sqlite_target)
    board.current()
    assert looks.wait(LONG_S)

    board.close()

    assert not go.is_set()
    board.current()  # whoever comes now rings at nobody's door
    go.set()
    assert board._thread is not None
    board._thread.join(LONG_S)
    assert not board._thread.is_alive()
