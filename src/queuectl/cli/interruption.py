"""Interruption: what a signal does to `queuectl run`: its job is cancelled, in a thread. Hearing it is in system/."""

import os
import threading

from queuectl.actions import control
from queuectl.actions.connect import connect
from queuectl.cli.store import who
from queuectl.cli.text import note, safe
from queuectl.errors import NotFound, QueuectlError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from queuectl.actions.connect import Target
    from queuectl.model.job import Job

LEAVE_SECONDS = 1.0
"""How long a cancel under way is waited for when this command leaves: `timeout` sends its signal twice in a row."""


class Interruption:
    """The first signal cancels the job, the second leaves at once. Use it in a `with` statement around the signals.

    A job that somebody else added is left alone, and this command leaves the first time.

    The signal may arrive anywhere, also amid an import that the cancel needs, so `hear` only writes a byte. A thread
    that was there before reads it and cancels the job through a connection of its own; nobody waits for it for long.
    """

    def __init__(self, target: "Target") -> None:
        self._target = target
        self._job: Job | None = None
        self._is_ours = True
        self.is_heard = False
        self._asked, self._ask = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="interruption", daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        os.close(self._ask)
        if error is KeyboardInterrupt and self._job is not None:
            note(f"not waiting for job {self._job.id} to end")
        self._thread.join(LEAVE_SECONDS)
        if error is not None and self._job is not None and self._thread.is_alive():
            note(f"job {self._job.id} may not be cancelled: the store has not answered yet; {self._remedy(self._job)}")

    def watch(self, job: "Job", *, is_ours: bool) -> None:
        """Cancel this job when asked to stop, if it is ours, and now if that was before it was there."""
        self._is_ours = is_ours  # first: whoever hears a signal in between must not take it for ours
        self._job = job
        if self.is_heard:
            self._obey()

    def hear(self) -> None:
        """Note that a signal came; for a signal handler, so it neither imports, nor locks, nor prints."""
        if not self.is_heard:
            self.is_heard = True
            self._obey()
        elif self._job is not None:
            raise KeyboardInterrupt

    def cancel_now(self) -> None:
        """Cancel the job if it is ours, or raise; through a connection of its own, for others may be in use."""
        if self._job is None or not self._is_ours:
            return
        database = connect(self._target)
        try:
            control.cancel(database, [str(self._job.seq)], who=who())
        except (Refused, NotFound):
            pass  # it has just ended
        finally:
            database.close()

    def _obey(self) -> None:
        if self._job is not None and not self._is_ours:
            raise KeyboardInterrupt
        os.write(self._ask, b"!")

    def _serve(self) -> None:
        """Cancel the job once, when asked to and it is known; read on to the end, lest a late byte find no reader."""
        is_done = False
        while os.read(self._asked, 1):
            if self._job is not None and not is_done:
                is_done = True
                self._cancel_or_tell(self._job)
        os.close(self._asked)

    def _cancel_or_tell(self, job: "Job") -> None:
        try:
            self.cancel_now()
        except QueuectlError as error:
            self._tell(job, error.message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job goes on and the person must know
            self._tell(job, f"internal error: {type(error).__name__}: {error}")

    def _tell(self, job: "Job", reason: str) -> None:
        note(f"job {job.id} was not cancelled and goes on: {safe(reason)}")
        note(f"  {self._remedy(job)}; a second signal leaves at once")

    def _remedy(self, job: "Job") -> str:
        return f"cancel it with: queuectl cancel {job.id}"
