"""The faults, and the driver that picks one after another. What must hold all the same is in checker.py."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

import apsw

from tests.chaos.calls import DONE, REFUSED, STORE, TIMED_OUT, Calls, Done
from tests.chaos.crew import Crew
from tests.chaos.notes import Kill, Notes, boot_clock, wall_ms
from tests.chaos.processes import Process, commands_of, send
from tests.chaos.stores import PostgresStore, SqliteStore, Store
from tests.program import wait_for
from tests.proxy import Proxy

LEASE_S = 7.0
HEAD_START_S = 1.5
PAUSE_S = (0.1, 1.4)
BETWEEN_OUTAGES_S = 2.0  # else little would be enqueued, and little could go wrong
SHORT_S = (0.2, 4.0)
LONG_S = (LEASE_S + 0.5, LEASE_S + 4.0)
AFTERWARDS_MS = 3_000  # a hand-back may be written a little after the call that asked for it has returned
MUCH_LATER_MS = 30_000
NEWEST = 40  # a job to cancel is looked for among these: older ones are over

Fault = Callable[[], None]
Thing = TypeVar("Thing")


class Driver:
    """Does something bad every now and then, and undoes what has an end."""

    def __init__(self, store: Store, crew: Crew, calls: Calls, notes: Notes, dice: random.Random) -> None:
        self._store = store
        self._crew = crew
        self._calls = calls
        self._notes = notes
        self._dice = dice
        self._undos: list[tuple[float, str, Callable[[], None]]] = []
        self._next_fault = self._next_outage = 0.0
        self._can_restart = calls.knows("worker", "restart")
        self._menu = self._faults()

    def begin(self) -> None:
        """Begin a round: leave the queue a moment to get going."""
        self._next_fault = self._next_outage = time.monotonic() + HEAD_START_S

    def turn(self) -> None:
        """Undo what is due, and strike when it is time."""
        now = time.monotonic()
        for undo in [undo for undo in self._undos if undo[0] <= now]:
            self._undo(undo)
        if now >= self._next_fault:
            self._next_fault = now + self._dice.uniform(*PAUSE_S)
            self._dice.choices([*self._menu], weights=[*self._menu.values()])[0]()

    def heal(self) -> None:
        """Undo everything that is still in force."""
        for undo in [*self._undos]:
            self._undo(undo)

    def _faults(self) -> dict[Fault, float]:
        """Return what may happen to this store, each with its weight."""
        menu: dict[Fault, float] = {
            self._kill_worker: 7,
            self._kill_supervisor: 2,
            self._kill_supervisor_and_workers: 2,
            self._kill_everything: 1,
            self._freeze_worker: 3,
            self._freeze_supervisor: 2,
            self._freeze_everything: 1,
            self._order_stop: 1,
            self._order_stop_now: 1,
            self._terminate_supervisor: 1,
            self._terminate_supervisor_twice: 1,
            self._cancel: 4,
            self._retry: 4,
        }
        if self._can_restart:
            menu |= {self._order_restart: 1, self._order_restart_now: 1}
        if isinstance(self._store, SqliteStore):
            menu[self._lock_database] = 3
        if isinstance(self._store, PostgresStore):
            menu |= {self._cut: 2, self._hold: 2, self._swallow: 2, self._lose_an_answer: 2}
            menu |= {self._end_backends: 2, self._stop_server: 1}
        return menu

    # Kills

    def _kill_worker(self) -> None:
        self._kill("kill worker", self._some(self._crew.workers()))

    def _kill_supervisor(self) -> None:
        self._kill("kill supervisor", self._some(self._crew.supervisors()))

    def _kill_supervisor_and_workers(self) -> None:
        for supervisor in self._some(self._crew.supervisors()):
            both = [supervisor, *self._crew.workers_under(supervisor)]
            self._kill("kill supervisor and workers", self._dice.choice((both, both[::-1])))

    def _kill_everything(self) -> None:
        self._kill("kill everything", [*self._crew.supervisors(), *self._crew.workers()])
        if self._dice.random() < 0.5:
            return
        # The workers first: one that lived to see its command killed would count that as a failure, and rightly.
        wait_for(lambda: not self._crew.workers(), "the workers to die")
        for command in commands_of(self._crew.home):
            send(command, signal.SIGKILL)

    def _kill(self, fault: str, processes: Sequence[Process]) -> None:
        if not processes:
            return
        at = boot_clock()
        self._count(fault, processes)
        for process in processes:
            if send(process, signal.SIGKILL) and process.worker is not None:
                self._notes.kills.append(Kill(worker=process.worker, at=at, fault=fault))

    # Processes that stand still

    def _freeze_worker(self) -> None:
        self._freeze("freeze worker", self._some(self._crew.workers()))

    def _freeze_supervisor(self) -> None:
        self._freeze("freeze supervisor", self._some(self._crew.supervisors()))

    def _freeze_everything(self) -> None:
        """Stop supervisors, workers and commands, as closing a laptop does."""
        ours = [*self._crew.supervisors(), *self._crew.workers(), *commands_of(self._crew.home)]
        self._freeze("freeze everything", ours)

    def _freeze(self, fault: str, processes: Sequence[Process]) -> None:
        if not processes:
            return
        self._count(fault, processes)
        for process in processes:
            send(process, signal.SIGSTOP)

        def thaw() -> None:
            for process in processes:
                send(process, signal.SIGCONT)

        self._later(self._duration(), f"thaw {_pids(processes)}", thaw)

    # Orders, and what people do meanwhile

    def _order_stop(self) -> None:
        self._order("stop", "--timeout", "5s")

    def _order_stop_now(self) -> None:
        self._order("stop", "--now", "--timeout", "10s")

    def _order_restart(self) -> None:
        self._order("restart", "--timeout", "10s")

    def _order_restart_now(self) -> None:
        self._order("restart", "--now", "--timeout", "10s")

    def _order(self, *words: str) -> None:
        self._count(f"worker {' '.join(word for word in words if word in ('stop', 'restart', '--now'))}")
        begun = wall_ms()

        def note(done: Done | None) -> None:
            if "--now" in words:
                over = done is not None and done.returncode == DONE
                self._notes.hand_backs.append((begun, wall_ms() + (AFTERWARDS_MS if over else MUCH_LATER_MS)))

        self._calls.start("worker", *words, may_end=(DONE, TIMED_OUT, STORE), then=note)

    def _terminate_supervisor(self) -> None:
        self._terminate("sigterm", 1)

    def _terminate_supervisor_twice(self) -> None:
        self._terminate("sigterm twice", 2)
        self._notes.hand_backs.append((wall_ms(), wall_ms() + MUCH_LATER_MS))

    def _terminate(self, fault: str, times: int) -> None:
        processes = self._some(self._crew.supervisors())
        self._count(fault, processes)
        for process in processes * times:
            send(process, signal.SIGTERM)
            time.sleep(0.05)  # two at once are one

    def _cancel(self) -> None:
        for job in self._some(self._notes.acknowledged[-NEWEST:]):
            self._count("cancel")
            self._notes.cancelled.add(job)
            self._calls.start("cancel", job, may_end=(DONE, STORE, REFUSED))

    def _retry(self) -> None:
        for job in self._some([*self._notes.acknowledged]):
            self._count("retry")
            self._notes.revived.add(job)
            self._calls.start("retry", job, may_end=(DONE, STORE, REFUSED))

    # The database

    def _lock_database(self) -> None:
        assert isinstance(self._store, SqliteStore)
        try:
            self._during("lock database", self._store.locked(), self._dice.uniform(0.5, 4))
        except apsw.BusyError:
            self._notes.tell("the lock was not to be had")

    def _cut(self) -> None:
        self._outage("cut", Proxy.cut, self._dice.uniform(0.05, 3))

    def _hold(self) -> None:
        self._outage("hold packets", Proxy.holding, self._duration())

    def _swallow(self) -> None:
        self._outage("swallow packets", Proxy.swallowing, self._duration())

    def _lose_an_answer(self) -> None:
        self._outage("lose answer", lambda proxy: proxy.losing_answer_to_commit(b""), self._dice.uniform(0.5, 2))

    def _stop_server(self) -> None:
        assert isinstance(self._store, PostgresStore)
        mode, store = self._dice.choice(("fast", "immediate")), self._store
        self._outage(f"stop server {mode}", lambda _: store.server_down(mode), self._dice.uniform(0, 3))

    def _end_backends(self) -> None:
        assert isinstance(self._store, PostgresStore)
        if not any("server" in name for _, name, _ in self._undos):
            self._count("end backends")
            ended = self._store.terminate_backends(self._dice.choice((0.3, 1)))
            self._notes.tell(f"{ended} backends ended")

    def _outage(self, fault: str, trouble: Callable[[Proxy], AbstractContextManager[object]], seconds: float) -> None:
        """Let the database be out of reach for a while, unless it is or has just been so."""
        assert isinstance(self._store, PostgresStore)
        if time.monotonic() >= self._next_outage:
            self._next_outage = time.monotonic() + seconds + BETWEEN_OUTAGES_S
            self._during(fault, trouble(self._store.proxy), seconds)

    # What they have in common

    def _during(self, fault: str, trouble: AbstractContextManager[object], seconds: float) -> None:
        stack = ExitStack()
        stack.enter_context(trouble)
        self._count(fault)
        self._later(seconds, f"end of {fault}", stack.close)

    def _duration(self) -> float:
        """Return how long a fault lasts: on PostgreSQL sometimes longer than the lease."""
        is_long = isinstance(self._store, PostgresStore) and self._dice.random() < 0.25
        return self._dice.uniform(*(LONG_S if is_long else SHORT_S))

    def _later(self, seconds: float, name: str, undo: Callable[[], None]) -> None:
        self._notes.tell(f"{name} in {seconds:.2f} s")
        self._undos.append((time.monotonic() + seconds, name, undo))

    def _undo(self, undo: tuple[float, str, Callable[[], None]]) -> None:
        self._undos.remove(undo)
        undo[2]()
        self._notes.tell(undo[1])

    def _some(self, things: Sequence[Thing]) -> list[Thing]:
        """Return one of the things, or none when there are none."""
        return [self._dice.choice(things)] if things else []

    def _count(self, fault: str, processes: Sequence[Process] = ()) -> None:
        self._notes.faults[fault] += 1
        self._notes.tell(f"{fault} {_pids(processes)}")


def _pids(processes: Sequence[Process]) -> str:
    return " ".join(f"{process.pid}{'/' + process.worker[:6] if process.worker else ''}" for process in processes)
