"""What the doctor finds is looked for once for all who ask at the same time."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from queuectl.model.finding import Finding, ok
from queuectl.web import examining
from tests.program import DEADLINE_S, wait_for
from tests.web.serving import Site

DOCTOR = "/api/v1/doctor"


class Slow:
    """A doctor who takes as long as the test likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[bool] = []
        self.go_on = threading.Event()
        self.waiting: list[object] = []
        self.is_broken = False
        monkeypatch.setattr(examining, "examine", self.examine)
        slow = self

        class Counted(Future[examining.Examined]):
            def result(self, timeout: float | None = None) -> examining.Examined:
                slow.waiting.append(self)
                return super().result(timeout)

        monkeypatch.setattr(examining, "Future", Counted)

    def examine(self, _target: object, _environ: object, *, is_deep: bool = False) -> list[Finding]:
        self.looks.append(is_deep)
        assert self.go_on.wait(DEADLINE_S)
        if self.is_broken:
            raise ValueError("broken")
        return [ok(f"look {len(self.looks)}")]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def test_many_who_ask_at_once_share_one_look(local_site: Site, slow: Slow) -> None:
    with ThreadPoolExecutor(12) as threads:
        asked = [threads.submit(local_site.get, path) for path in [DOCTOR] * 8 + ["/health"] * 4]
        wait_for(lambda: len(slow.waiting) == 11 and len(slow.looks) == 1, "one looks, and all others wait for it")
        slow.go_on.set()
        answers = [each.result(DEADLINE_S) for each in asked]

    assert slow.looks == [False]
    assert {answer.status for answer in answers} == {200}
    assert all(b"look 1" in answer.body for answer in answers)


def test_a_deep_look_is_shared_with_those_alone_who_ask_for_one(local_site: Site, slow: Slow) -> None:
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(local_site.get, path) for path in [DOCTOR, f"{DOCTOR}?deep=true"] * 2]
        wait_for(lambda: len(slow.waiting) == 2 and len(slow.looks) == 2, "two look, and two wait for them")
        slow.go_on.set()
        assert {each.result(DEADLINE_S).status for each in asked} == {200}

    assert sorted(slow.looks) == [False, True]


def test_who_asks_after_a_look_is_told_of_a_new_one(local_site: Site, slow: Slow) -> None:
    slow.go_on.set()

    told = [local_site.get(DOCTOR).json()["findings"][0]["what"] for _ in range(2)]

    assert told == ["look 1", "look 2"]


def test_a_look_that_breaks_keeps_nobody_waiting(local_site: Site, slow: Slow) -> None:
    slow.is_broken = True
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(local_site.get, DOCTOR) for _ in range(2)]
        wait_for(lambda: len(slow.waiting) == 1 and len(slow.looks) == 1, "one looks, and one waits")
        slow.go_on.set()
        assert {each.result(DEADLINE_S).status for each in asked} == {500}

    slow.is_broken = False
    assert local_site.get(DOCTOR).status == 200
