"""The supervisor's own loop, where only a fault at the right moment shows what it does."""

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.errors import INTERRUPTED_CODE, StoreUnreachable
from queuectl.model.duty import Duty
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.supervisor import Plan, Supervisor
from queuectl.store import workers
from queuectl.store.database import Database
from tests.store.rows import add_job


def refuse(*_: object) -> None:
    raise StoreUnreachable("nobody answers")


def leave(target: Target, monkeypatch: pytest.MonkeyPatch, *, stop: str, is_away: bool, until_idle: bool = True) -> int:
    """Let a supervisor that was told so leave; return its exit code."""
    plan = Plan(count=1, slots=1, duty=Duty(), until_idle=until_idle, log_form=TEXT, log_to_file=False)
    supervisor = Supervisor(target, plan, Log("supervisor", form=TEXT, file=None), lambda _: None, [])
    monkeypatch.setattr(supervisor._heartbeat, "stop", lambda: None)  # it never began to beat
    supervisor._stop = stop
    with monkeypatch.context() as away:
        for name in ("read", "write") if is_away else ():
            away.setattr(supervisor._database, name, refuse)
        supervisor._end()
    return supervisor.exit_code


@pytest.mark.parametrize("is_away", [False, True])
def test_one_that_was_to_do_all_and_was_stopped_with_a_job_left_says_so_by_its_exit_code(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    connect(target).close()
    add_job(db)

    assert leave(target, monkeypatch, stop=workers.DRAIN, is_away=is_away) == INTERRUPTED_CODE
    assert leave(target, monkeypatch, stop=workers.DRAIN, is_away=is_away, until_idle=False) == 0
    assert leave(target, monkeypatch, stop="", is_away=is_away) == 0


def test_one_that_was_stopped_when_nothing_was_left_has_done_all_it_was_to(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(target).close()

    assert leave(target, monkeypatch, stop=workers.DRAIN, is_away=False) == 0
