"""Launchpad: what the commands of one worker are started from, and what the kernel says when one of them is over."""

import errno
import os

from queuectl.model.units import size_text
from queuectl.model.verdict import Outcome
from queuectl.system import cgroups, process, stdin
from queuectl.system.oom import KillCount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.launch import Launch
    from queuectl.system.cgroups import Group, Groups
    from queuectl.system.liveness import LifeLock
    from queuectl.system.prepare import Preparation

_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE})
_KILLED_CODE = 128 + 9  # what a shell returns when its last command was ended by SIGKILL


class Launchpad:
    """An empty standard input, the lock that says what runs, groups that limit memory, the kernel's count of kills.

    Made when this process has set up its signals: a command is given back those that are changed by then.
    """

    def __init__(self, worker_id: str, lock: "LifeLock") -> None:
        self.lock = lock
        self.devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.kills = KillCount()
        self.signals = bytes(process.changed_signals())
        self._worker_id = worker_id
        self._groups: Groups | None = None
        self._place = cgroups.find_place()
        if self._place is not None:
            cgroups.sweep(self._place)

    def make_group(self, name: str, limit_bytes: int) -> "Group | None":
        """Make the group of a run; None where this host has handed us no place, and each process is limited alone."""
        if self._place is None:
            return None
        try:
            if self._groups is None:
                self._groups = cgroups.Groups(self._place, self._worker_id)
            return self._groups.make(name, limit_bytes)
        except OSError as error:
            reason = f"cannot make a control group with memory {size_text(limit_bytes)}: {error.strerror}"
            is_passing = error.errno in _NO_ROOM
            raise process.CannotStart(process.CANNOT_RUN, reason, is_passing=is_passing) from None

    def drop_group(self, group: "Group") -> None:
        """Remove the group of a run that is over."""
        if self._groups is not None:
            self._groups.drop(group)

    def close(self) -> None:
        """Let go of everything."""
        if self._groups is not None:
            self._groups.close()
        os.close(self.devnull)


class Takeoff:
    """What one run that asks for something has of its own: a group, a standard input."""

    def __init__(self, launch: "Launch", pad: Launchpad, name: str) -> None:
        self._launch = launch
        self._pad = pad
        self._name = name
        self._group: Group | None = None

    def preparation(self) -> "Preparation | None":
        """Return how its process is to be prepared; None for one that needs nothing but its input or its shell."""
        launch = self._launch
        if launch.is_plain:
            return None
        from queuectl.system.prepare import plan  # most commands ask for nothing

        if launch.memory_bytes is not None:
            self._group = self._pad.make_group(self._name, launch.memory_bytes)
        return plan(launch, None if self._group is None else self._group.path)

    def open_stdin(self, cwd: str, kept: bytes | None) -> int | None:
        """Open what it reads; None for nothing. `kept` is what the store holds for it."""
        if self._launch.stdin_file is not None:
            return stdin.open_file(os.path.join(cwd, self._launch.stdin_file))
        if not self._launch.has_input:
            return None
        if kept is None:
            raise process.CannotStart(process.CANNOT_RUN, "its standard input is not in the store any more")
        return stdin.hold(kept)

    def outcome(self, ended: process.Ended) -> Outcome | None:
        """Say how it ended where that follows from a limit of its own; None where nothing is known."""
        launch, name = self._launch, process.signal_name(ended.signal or 0)
        if self._group is not None and self._group.kills():
            limit = size_text(launch.memory_bytes or 0)
            if name == "SIGKILL" or ended.exit_code == _KILLED_CODE:
                return Outcome.out_of_memory(signal=ended.signal, exit_code=ended.exit_code, limit=limit)
            if ended.exit_code:
                note = f"the kernel killed a process of it at its limit of {limit} of memory"
                return Outcome.exited(ended.exit_code, note=note)
        if name == "SIGXCPU" and launch.cpu_seconds is not None:
            why = f"it used up its {launch.cpu_seconds} s of processor time"
            return Outcome.killed(ended.signal or 0, name, why=why)
        if name == "SIGXFSZ" and launch.file_size_bytes is not None:
            why = f"it wrote a file beyond {size_text(launch.file_size_bytes)}"
            return Outcome.killed(ended.signal or 0, name, why=why)
        return None

    def end(self) -> None:
        """Remove its group."""
        if self._group is not None:
            self._pad.drop_group(self._group)


def outcome_of(ended: process.Ended, kills_before: int, count: KillCount) -> Outcome:
    """Say how a command ended that was not stopped by us.

    After a SIGKILL that was not ours, the kernel's count of kills tells whether lack of memory was the reason.
    """
    if ended.signal:
        name = process.signal_name(ended.signal)
        if name == "SIGKILL" and count.now() > kills_before:
            return Outcome.out_of_memory(signal=ended.signal)
        return Outcome.killed(ended.signal, name)
    code = ended.exit_code or 0
    if code == _KILLED_CODE and count.now() > kills_before:
        return Outcome.out_of_memory(exit_code=code)
    return Outcome.exited(code)
