"""Processes: starting a command in a session of its own, seeing its whole tree, and ending all of it."""

import errno
import os
import signal
import time

from queuectl.model.value import Value
from queuectl.system.names import CLAIM_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CANNOT_RUN = 126
NOT_FOUND = 127

# What Python ignores must not be ignored by commands: a shell pipe relies on SIGPIPE.
_RESET_SIGNALS = [
    signal.SIGPIPE,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGXFSZ,
]


_NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


class CannotStart(Exception):
    """A command that did not start; `code` is what a shell would have returned.

    `is_passing` means that the host had no room just now, which is not the command's fault.
    """

    def __init__(self, code: int, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.is_passing = is_passing


class Ended(Value):
    """How a process ended and what the kernel says it used, its waited-for children included."""

    exit_code: int | None
    signal: int | None
    cpu_ms: int
    peak_memory_bytes: int


def spawn(argv: "Sequence[str]", env: "Mapping[bytes, bytes]", cwd: str, *, stdin: int, output: int) -> int:
    """Start a program in a new session and return its pid.

    posix_spawn and not subprocess: it is a tenth quicker per command (docs/performance.md). It cannot change the
    folder of the child, so this process steps into it for the moment of the start; every path we use is absolute.
    """
    try:
        os.chdir(cwd)
    except OSError as error:
        raise CannotStart(CANNOT_RUN, f"cannot enter {cwd}: {error.strerror}") from None
    try:
        program = _resolve(argv[0], env)
        return _posix_spawn(program, argv, env, stdin, output)
    except OSError as error:
        code = NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN
        is_passing = error.errno in _NO_ROOM
        raise CannotStart(code, f"cannot run {argv[0]}: {error.strerror}", is_passing=is_passing) from None
    finally:
        os.chdir("/")


def reap(pid: int) -> Ended | None:
    """Collect a child that ended; None means it still runs."""
    found, status, usage = os.wait4(pid, os.WNOHANG)
    if found == 0:
        return None
    return Ended(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        cpu_ms=round((usage.ru_utime + usage.ru_stime) * 1000),
        peak_memory_bytes=usage.ru_maxrss * 1024,
    )


def is_over(pid: int) -> bool:
    """Whether a child of ours has ended; it stays to be collected."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def terminate(leader: int) -> None:
    """Ask the command's group to end; one that was stopped is continued so that it can."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        _signal_group(leader, number)


def kill_tree(leader: int, mark: str) -> bool:
    """Send SIGKILL to all that is left of a command; True means nothing was.

    The leader must not have been reaped, so that its group id cannot belong to another.
    """
    members = tree(leader, mark)
    for pid in members:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # gone already; or another user's: then the command is not over
    return not members


def kill_marked(mark: str, deadline_s: float = 5.0) -> bool:
    """End whoever still carries a mark, with the sessions they lead; True when two looks in a row found nobody."""
    empty, until = 0, time.monotonic() + deadline_s
    while empty < 2 and time.monotonic() < until:
        leaders = {session for pid, (_, _, session) in _processes() if _carries(pid, mark)}
        alive = [kill_tree(leader, mark) for leader in leaders - {os.getsid(0)}]
        empty = 0 if alive else empty + 1
        if alive:
            time.sleep(0.01)
    return empty >= 2


def tree(leader: int, mark: str) -> list[int]:
    """Return the living processes of a command: its group, session and descendants, and who carries its mark."""
    table = {pid: links for pid, links in _processes() if pid != os.getpid()}
    members = {pid for pid, (_, group, session) in table.items() if leader in (pid, group, session)}
    members |= {pid for pid in table if pid not in members and _carries(pid, mark)}
    while grown := {pid for pid, (parent, _, _) in table.items() if parent in members} - members:
        members |= grown
    return sorted(members)


def signal_name(number: int) -> str:
    """Return a signal's name, `SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def start_own(
    argv: "Sequence[str]", env: "Mapping[str, str]", *, stdin: int, output: int | None, detached: bool
) -> int:
    """Start one of our own processes afresh; `output` None shares ours.

    SIGINT is blocked from birth: a Ctrl-C in the terminal is for the supervisor, which then tells its workers.
    """
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0)]
    if output is not None:
        actions += [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    mask = () if detached else (signal.SIGINT,)
    return os.posix_spawn(argv[0], list(argv), dict(env), file_actions=actions, setsid=detached, setsigmask=mask)


def _posix_spawn(program: str, argv: "Sequence[str]", env: "Mapping[bytes, bytes]", stdin: int, output: int) -> int:
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    try:
        return os.posix_spawn(
            program, list(argv), env, file_actions=actions, setsid=True, setsigdef=_RESET_SIGNALS, setsigmask=()
        )
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without a first line that names its interpreter: what a shell does.
        words = ["/bin/sh", program, *argv[1:]]
        return os.posix_spawn(
            "/bin/sh", words, env, file_actions=actions, setsid=True, setsigdef=_RESET_SIGNALS, setsigmask=()
        )


def _resolve(program: str, env: "Mapping[bytes, bytes]") -> str:
    """Find a program on the PATH the command itself will have."""
    if "/" in program:
        return program
    denied = False
    for folder in os.fsdecode(env.get(b"PATH", os.fsencode(os.defpath))).split(":"):
        path = os.path.join(folder or ".", program)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            denied = True
    if denied:
        raise PermissionError(errno.EACCES, "permission denied")
    raise FileNotFoundError(errno.ENOENT, "not found on PATH")


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass


def _processes() -> "Iterator[tuple[int, tuple[int, int, int]]]":
    """Yield (pid, (parent, group, session)) of every process that is not a zombie."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            yield int(name), (int(fields[1]), int(fields[2]), int(fields[3]))


def _carries(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{CLAIM_VARIABLE}={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False
