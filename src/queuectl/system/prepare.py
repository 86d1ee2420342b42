"""Preparation: limits, priority and file mode mask of a command, in force before its first instruction.

A command that asks for none of them is started by process.py alone. Groups that limit a whole tree are in cgroups.py.

By fork, not by a shell in between and not by util-linux: `ulimit -f` counts 512 bytes in one shell and 1024 in the
next, dash drops variables whose names it does not like, and `prlimit` and `nice` may not be installed. Between fork and
exec the child calls the kernel and nothing else, so that a lock another thread held at that moment cannot stop it.
"""

import errno
import gc
import os
import resource
import signal
import warnings
from functools import partial

from queuectl.model.units import size_text
from queuectl.model.value import Value
from queuectl.system.process import CANNOT_RUN, RESET_SIGNALS, CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from queuectl.model.launch import Launch

EXEC = "exec"
NICE = "nice"
MEMORY = "memory"
GROUP = "group"
CAP_SYS_RESOURCE = 24
SPARE_BLOCKS = 16
SPARE_BLOCK_BYTES = 4000


class Limit(Value):
    """One limit of the kernel: what a person calls it, its number there, and what it shall be."""

    name: str
    resource: int
    soft: int
    hard: int
    wanted: str


class Preparation(Value):
    """What is done to a new process before it becomes the command."""

    limits: tuple[Limit, ...] = ()
    nice: int | None = None
    umask: int | None = None
    group: str | None = None
    """The folder of the control group it joins."""


def plan(launch: "Launch", group: str | None) -> Preparation:
    """Return how to prepare a command; without a group, each of its processes has the limit of memory for itself."""
    limits = []
    if launch.nofile is not None:
        limits.append(_limit("nofile", resource.RLIMIT_NOFILE, launch.nofile, f"{launch.nofile}"))
    if launch.file_size_bytes is not None:
        size = launch.file_size_bytes
        limits.append(_limit("file_size", resource.RLIMIT_FSIZE, size, size_text(size)))
    if launch.cpu_seconds is not None:
        limits.append(_cpu_limit(launch.cpu_seconds))
    if launch.memory_bytes is not None and group is None:
        # The last one: it holds for the child itself as soon as it is set.
        size = launch.memory_bytes
        limits.append(_limit(MEMORY, resource.RLIMIT_AS, size, size_text(size)))
    return Preparation(limits=tuple(limits), nice=launch.nice, umask=launch.umask, group=group)


def start(
    program: bytes,
    words: list[bytes],
    env: "Mapping[bytes, bytes]",
    streams: tuple[int, int, int],
    preparation: Preparation,
) -> int:
    """Start a program in a new session, prepared; an OSError means that it cannot be run, as of posix_spawn."""
    told, tell = os.pipe()
    try:
        pid = _fork()
        if pid == 0:
            _become(program, words, env, streams, preparation, tell)
    except BaseException:
        os.close(told)
        raise
    finally:
        os.close(tell)
    with open(told, "rb") as file:
        said = file.read()  # ends when the child becomes the command, or dies
    if not said:
        return pid
    os.waitpid(pid, 0)
    step, _, number = said.decode().partition(" ")
    if step == EXEC and int(number) == errno.ENOMEM and any(limit.name == MEMORY for limit in preparation.limits):
        raise CannotStart(
            CANNOT_RUN, f"cannot run {os.fsdecode(words[0])!r} with so little memory"
        )  # its limit, not want of the host
    if step == EXEC:
        raise OSError(int(number), os.strerror(int(number)))
    raise _refusal(step, int(number), preparation)


def _limit(name: str, number: int, value: int, wanted: str) -> Limit:
    return Limit(name=name, resource=number, soft=value, hard=value, wanted=wanted)


def _cpu_limit(seconds: int) -> Limit:
    """At the soft limit the kernel sends SIGXCPU, at the hard one SIGKILL; were they the same, SIGKILL alone."""
    allowed = resource.getrlimit(resource.RLIMIT_CPU)[1]
    hard = seconds + 1 if allowed == resource.RLIM_INFINITY else max(seconds, min(seconds + 1, allowed))
    return Limit(name="cpu_seconds", resource=resource.RLIMIT_CPU, soft=seconds, hard=hard, wanted=f"{seconds} s")


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork beside threads; the head of this file says why this one is safe.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become(
    program: bytes,
    argv: list[bytes],
    env: "Mapping[bytes, bytes]",
    streams: tuple[int, int, int],
    preparation: Preparation,
    tell: int,
) -> "NoReturn":
    """Turn the child into the command, or say which step failed and end; never returns into the worker's code."""
    step = EXEC
    try:
        gc.disable()  # a finalizer could speak to the server over a connection that is the worker's
        spare = [bytes(SPARE_BLOCK_BYTES) for _ in range(SPARE_BLOCKS)]
        os.setsid()
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        for number in RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if preparation.umask is not None:
            os.umask(preparation.umask)
        for name, act in _steps(preparation):
            step = name
            act()
        spare.clear()  # what is left to do finds room here, below a limit of memory that the child itself exceeds
        step = EXEC
        _execute(program, argv, env)
    except OSError as error:
        os.write(tell, b"%s %d" % (step.encode(), error.errno or errno.EIO))
    except ValueError:  # the kernel's EPERM or EINVAL for a limit, as Python gives it
        os.write(tell, b"%s %d" % (step.encode(), errno.EPERM))
    except MemoryError:
        os.write(tell, b"%s %d" % (EXEC.encode(), errno.ENOMEM))
    finally:
        os._exit(CANNOT_RUN)


def _steps(preparation: Preparation) -> "list[tuple[str, Callable[[], object]]]":
    """List what the kernel may refuse, each step with its name."""
    steps: list[tuple[str, Callable[[], object]]] = []
    if (group := preparation.group) is not None:
        steps.append((GROUP, partial(_join, group)))
    if (nice := preparation.nice) is not None:
        steps.append((NICE, partial(os.setpriority, os.PRIO_PROCESS, 0, nice)))
    for limit in preparation.limits:
        act = partial(resource.setrlimit, limit.resource, (limit.soft, limit.hard))
        steps.append((limit.name, act))
    return steps


def _join(group: str) -> None:
    fd = os.open(os.path.join(group, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, b"0")  # whoever writes it
    os.close(fd)


def _execute(program: bytes, argv: list[bytes], env: "Mapping[bytes, bytes]") -> "NoReturn":
    try:
        os.execve(program, argv, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without a first line that names its interpreter: what a shell does.
        os.execve(b"/bin/sh", [b"/bin/sh", program, *argv[1:]], env)


def _refusal(step: str, number: int, preparation: Preparation) -> CannotStart:
    if step == GROUP:
        reason = f"cannot join the control group {preparation.group}: {os.strerror(number)}"
        # Swept away by somebody in between: the next try makes a new one.
        return CannotStart(CANNOT_RUN, reason, is_passing=number in (errno.ENOENT, errno.ENODEV))
    if step == NICE:
        return CannotStart(CANNOT_RUN, f"cannot set nice to {preparation.nice}: {_allowed_nice()}")
    limit = next(limit for limit in preparation.limits if limit.name == step)
    return CannotStart(CANNOT_RUN, f"cannot set {limit.name} to {limit.wanted}: {_allowed(limit)}")


def _allowed_nice() -> str:
    current = os.getpriority(os.PRIO_PROCESS, 0)
    hard = resource.getrlimit(resource.RLIMIT_NICE)[1]
    lowest = -20 if hard == resource.RLIM_INFINITY else 20 - hard
    return f"this worker may give {min(current, max(-20, lowest))} at the lowest"


def _allowed(limit: Limit) -> str:
    most = resource.getrlimit(limit.resource)[1]
    if limit.resource == resource.RLIMIT_NOFILE:
        # Above the hard limit only with a privilege that root need not have, and nobody above what the kernel can do.
        most = max(most, _number_in("/proc/sys/fs/nr_open")) if _is_privileged() else most
    shown = f"{most}" if limit.name == "nofile" else f"{most} s" if limit.name == "cpu_seconds" else size_text(most)
    return f"this worker may give {shown} at the most"


def _is_privileged() -> bool:
    """Whether this process may raise a hard limit."""
    with open("/proc/self/status", "rb") as file:
        masks = [line.split()[1] for line in file if line.startswith(b"CapEff:")]
    return bool(masks) and bool(int(masks[0], 16) >> CAP_SYS_RESOURCE & 1)


def _number_in(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0
