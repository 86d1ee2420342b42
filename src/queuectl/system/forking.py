"""Forking: a child that goes on in this program with all it has loaded, and with nothing that this process holds."""

import os
import signal
import sys

from queuectl.model.value import Value
from queuectl.system.leaving import flush_streams, leave_now
from queuectl.system.signals import STOP_SIGNALS, leave_signals_to_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class Forked(Value):
    """A child whose standard input is the other end of `control`."""

    pid: int
    pidfd: int
    control: int


def can_fork() -> bool:
    """Whether this process has one thread: a child would wait for ever for what another held at that moment."""
    return len(os.listdir("/proc/self/task")) == 1


def fork(work: "Callable[[], None]", *, is_silent: bool) -> Forked:
    """Start a child that does some work and ends; raises OSError when the host has no room for one.

    A silent one has no output. For a process that `can_fork`, and that has no connection to a store: none works on
    both sides of a fork.
    """
    flush_streams()  # else the child would print it, too
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, no child could be waited for
    control_end, control = os.pipe2(os.O_CLOEXEC)
    # A Ctrl-C in the terminal is for the supervisor: its children hear of none from birth.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        pid = os.fork()
    except OSError:
        os.close(control)
        raise
    else:
        if pid == 0:
            _be_child(work, control_end, is_silent=is_silent)
        return Forked(pid=pid, pidfd=_pidfd_of(pid, control), control=control)
    finally:
        os.close(control_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _pidfd_of(pid: int, control: int) -> int:
    """Return what tells of a child's end; where there is none to be had, the child ends of the end of its pipe."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.close(control)
        os.waitpid(pid, 0)
        raise


def _be_child(work: "Callable[[], None]", control_end: int, *, is_silent: bool) -> "NoReturn":
    """Do the work; whatever becomes of it, nothing of what the parent would do next or at its end is done here."""
    code = 1
    try:
        leave_signals_to_supervisor()
        signal.pthread_sigmask(signal.SIG_SETMASK, (signal.SIGINT,))
        _take_streams(control_end, is_silent=is_silent)
        if not sys.flags.safe_path:
            del sys.path[0]  # the folder we were started in, whose files could pass for modules
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - it would go on as a second parent
        sys.excepthook(*sys.exc_info())
    finally:
        leave_now(code)


def _take_streams(control_end: int, *, is_silent: bool) -> None:
    """Have the control pipe as standard input, and close all that is the parent's.

    Above all the writing ends of the pipes of other children: whoever holds one keeps them from hearing of the
    parent's death.
    """
    os.dup2(control_end, 0)
    if is_silent:
        devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2:
            try:
                os.close(fd)
            except OSError:
                pass  # the one that listed the folder
