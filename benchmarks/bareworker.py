"""A worker without commands: it claims and settles as a worker does, so that only the store is measured.

`python -m benchmarks.bareworker JOBS [handful]` adds jobs to a fresh SQLite file and works them off, for a profiler.
Two such runs with more and with fewer tell what a job takes: one alone has the start of it all in it.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import closing

from benchmarks.stores import sqlite_store
from queuectl.actions.connect import Target, connect
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.duty import Duty
from queuectl.model.job import Claim, JobSpec
from queuectl.model.verdict import Outcome
from queuectl.runtime.identity import Identity, new_id
from queuectl.store import workers
from queuectl.store.takers import Taker
from queuectl.system.memory import keep_freed_memory

SPEC = JobSpec(command="true", cwd="/")
DONE = Report(outcome=Outcome.exited(0))
SHORT = DONE.replace(cpu_ms=1, peak_memory_bytes=1 << 20, begun_s=0.0, ended_s=0.0)
"""A run of which nothing follows, so that several are settled at once."""
HANDFUL = 50
"""As many no-ops as one worker takes ahead here."""
LEASE_S = 60


class BareWorker:
    """One registered worker with one slot."""

    def __init__(self, target: Target) -> None:
        keep_freed_memory()  # as a worker process does
        self.database = connect(target, is_durable=False, is_patient=False)
        self._front = connect(target)
        self._identity = Identity(
            self.database,
            target.home,
            new_id(),
            kind=workers.WORKER,
            supervisor_id=None,
            duty=Duty(),
            slots=1,
            lease_s=LEASE_S,
        )
        self._holder = Holder(taker=Taker(worker_id=self._identity.id), host=self._identity.host)
        self._ended: list[tuple[Claim, Report]] = []

    def close(self) -> None:
        """Sign off."""
        self._identity.end()
        self.database.close()
        self._front.close()

    def step(self) -> bool:
        """Settle the job in hand and claim the next; False where there was none."""
        step = settle_and_claim(self.database, self._holder, self._ended, 1, {})
        self._ended = [(claim, DONE) for claim in step.claimed]
        return bool(self._ended)

    def work_off(self, jobs: int, clock: Callable[[], float] = time.perf_counter) -> float:
        """Claim and settle so many jobs, which must be there; return how long that took."""
        begun = clock()
        for _ in range(jobs):
            if not self.step():
                raise AssertionError("the queue ran dry")
        self.step()
        return clock() - begun

    def work_off_all(self) -> int:
        """Claim and settle until nothing is left; return how many that were."""
        done = 0
        while self.step():
            done += 1
        return done

    def work_off_all_by_the_handful(self) -> int:
        """Do the same with several in one transaction."""
        done, ended = 0, list[tuple[Claim, Report]]()
        while True:
            step = settle_and_claim(self.database, self._holder, ended, 1, {}, ahead=HANDFUL - 1)
            ended = [(claim, SHORT) for claim in step.claimed]
            if not ended:
                return done
            done += len(ended)

    def work_off_by_the_handful(self, jobs: int, clock: Callable[[], float] = time.perf_counter) -> float:
        """Do the same with several in one transaction, as a worker does whose commands are short."""
        begun, left, ended = clock(), jobs, list[tuple[Claim, Report]]()
        while left or ended:
            ahead = min(HANDFUL, left) - 1
            step = settle_and_claim(self.database, self._holder, ended, min(1, left), {}, ahead=max(0, ahead))
            ended = [(claim, SHORT) for claim in step.claimed]
            if left and not ended:
                raise AssertionError("the queue ran dry")
            left -= len(ended)
        return clock() - begun

    @property
    def has_log(self) -> bool:
        """Whether its store has a log that is moved into it now and then."""
        return self.database.dialect.is_local

    def empty_log(self) -> None:
        """Move the log of a SQLite file into it, as a supervisor does beside its workers."""
        self.database.dialect.make_room()

    def submit(self, jobs: int, spec: JobSpec = SPEC) -> None:
        """Add so many jobs that are alike, as durably as for a person."""
        submit(self._front, [spec] * jobs, who="bench", environ={})


def main() -> None:
    """Work off as many jobs as asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bareworker", description="Claim and settle, no commands."
    )
    parser.add_argument("jobs", type=int, help="how many to add and to work off")
    parser.add_argument("way", nargs="?", choices=["handful"], help="several in one transaction, as short jobs are")
    asked = parser.parse_args()
    with sqlite_store() as target, closing(BareWorker(target)) as worker:
        worker.submit(asked.jobs)
        (worker.work_off_by_the_handful if asked.way else worker.work_off)(asked.jobs)


if __name__ == "__main__":
    main()
