"""Processes: starting a command in a session of its own, seeing its whole tree, and ending all of it."""

import errno
import os
import signal
import sys
import time

from queuectl.model.value import Value
from queuectl.system.names import CLAIM_VARIABLE, RESTARTED_VARIABLE
from queuectl.system.pipes import Held, held_by
from queuectl.system.programs import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from queuectl.system.prepare import Preparation

CANNOT_RUN = 126
NOT_FOUND = 127
KILL_S = 2.0
TICK_S = 0.02  # how far the start of a process, as the kernel tells it, may lie before it was

# A command finds every signal as the kernel has it at the beginning, whatever Python, a shell or nohup made of it for
# us: a shell pipe relies on SIGPIPE. Those of real time, from 34 on, nobody here has touched. 32 and 33 are the C
# library's own: what it starts (posix_spawn) finds them ignored, what the compiled module starts does not.
RESET_SIGNALS = [number for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP)]


def changed_signals() -> list[int]:
    """Return those of them that are not so in this process."""
    return [number for number in RESET_SIGNALS if signal.getsignal(number) is not signal.SIG_DFL]


NO_ROOM = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})


class CannotStart(Exception):
    """A command that did not start; `code` is what a shell would have returned.

    `is_passing` means that the host had no room just now, which is not the command's fault.
    """

    def __init__(self, code: int, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.is_passing = is_passing


def encoded(text: str) -> bytes:
    """Return what a job says as the kernel takes it: in UTF-8, as the store has it, whatever the language here.

    Raises CannotStart for half a character. Bytes that are no text come out as they came in.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise CannotStart(CANNOT_RUN, f"cannot be given to a program: {error}") from None


def word_of(text: str) -> bytes:
    """Return a word, or the name of a file, as the kernel takes it; raises CannotStart where it cannot be one."""
    if "\0" in text:
        raise CannotStart(CANNOT_RUN, f"cannot be given to a program: {text!r} holds a NUL")
    return encoded(text)


class Ended(Value):
    """How a process ended and what the kernel says it used, its waited-for children included."""

    exit_code: int | None
    signal: int | None
    cpu_ms: int
    peak_memory_bytes: int

    @classmethod
    def of_status(cls, status: int, cpu_ms: float, peak_kib: int) -> "Ended":
        """Build from what wait(2) says and the kernel counted."""
        code = os.waitstatus_to_exitcode(status)
        return cls(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cpu_ms=round(cpu_ms),
            peak_memory_bytes=peak_kib * 1024,
        )


def spawn(
    argv: "Sequence[str]",
    env: "Mapping[bytes, bytes]",
    cwd: str,
    *,
    stdin: int,
    output: int,
    errors: int | None = None,
    preparation: "Preparation | None" = None,
) -> int:
    """Start a program in a new session and return its pid; `errors` None sends both streams into `output`.

    posix_spawn and not subprocess: it is a tenth quicker per command (docs/performance.md). It cannot change the
    folder of the child, so this process steps into it for the moment of the start; every path we use is absolute.
    """
    words, folder = [word_of(word) for word in argv], word_of(cwd)
    try:
        os.chdir(folder)
    except OSError as error:
        raise CannotStart(CANNOT_RUN, f"cannot enter {cwd}: {error.strerror}") from None
    try:
        program = resolve(words[0], env, folder)
        if preparation is not None:
            from queuectl.system import prepare  # most commands ask for nothing

            streams = (stdin, output, output if errors is None else errors)
            return prepare.start(program, words, env, streams, preparation)
        return _posix_spawn(program, words, env, stdin, output, output if errors is None else errors)
    except OSError as error:
        code = NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN
        is_passing = error.errno in NO_ROOM
        raise CannotStart(code, f"cannot run {argv[0]!r}: {error.strerror}", is_passing=is_passing) from None
    finally:
        os.chdir("/")


def reap(pid: int) -> Ended | None:
    """Collect a child that ended; None means it still runs."""
    found, status, usage = os.wait4(pid, os.WNOHANG)
    if found == 0:
        return None
    cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
    return Ended.of_status(status, cpu_ms, usage.ru_maxrss)


def is_over(pid: int) -> bool:
    """Whether a child of ours has ended; it stays to be collected."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def terminate(leader: int) -> None:
    """Ask the command's group to end; one that was stopped is continued so that it can."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        _signal_group(leader, number)


class Links(Value):
    """What ties a process to others, and when it started, on the boot-time clock."""

    parent: int
    group: int
    session: int
    started: float


class Processes:
    """One look at all processes of this host that are not zombies; taken when first asked something."""

    _table: dict[int, Links] | None = None  # most are never asked anything

    @property
    def table(self) -> dict[int, Links]:
        """Every process but this one, by pid."""
        if self._table is None:
            self._marks: dict[int, bytes] = {}
            self._held: dict[int, Held] = {}
            self._table = {pid: links for pid, links in _read_processes() if pid != os.getpid()}
        return self._table

    def tree(self, leader: int, mark: str, known: dict[int, float]) -> list[int]:
        """Return the living processes of a command: its group, session and descendants, and who carries its mark.

        `known` is who was seen in it before, each with its start. Whoever of them lives still belongs to it, though the
        parent that tied him to it may have ended since; whoever is found joins them.
        """
        return self._grown(self._tied(leader) | self._marked(mark), known)

    def of_leader(self, leader: int) -> list[int]:
        """Return the group, session and descendants of a leader; unlike `tree` it reads nobody's environment."""
        return self._grown(self._tied(leader), {})

    def left_of(self, left: "Left", known: dict[int, float]) -> list[int]:
        """Return what lives of a command whose worker is gone.

        Group and session of the leader count only when they are still the ones of that command: its number may be
        another's by now. They are, if a member carries the mark or can print for the command, or started when the
        number was surely the command's.
        """
        members = self._marked(left.mark) | self._writing(left)
        if left.leader:
            tied = self._tied(left.leader)
            is_ours = bool(tied & members) or any(
                self.table[pid].started <= (left.started if pid == left.leader else left.seen_at) for pid in tied
            )
            if is_ours:
                members |= tied
        return self._grown(members, known)

    def marks(self) -> dict[int, str]:
        """Return the mark of every process that carries one, by pid."""
        name = f"{CLAIM_VARIABLE}=".encode()
        found = {pid: self._mark_of(pid).removeprefix(name) for pid in self.table}
        return {pid: mark.decode("ascii", "replace") for pid, mark in found.items() if mark}

    def _tied(self, leader: int) -> set[int]:
        return {pid for pid, links in self.table.items() if leader in (pid, links.group, links.session)}

    def _marked(self, mark: str) -> set[int]:
        wanted = f"{CLAIM_VARIABLE}={mark}".encode()
        if mark.endswith(":"):
            return {pid for pid in self.table if self._mark_of(pid).startswith(wanted)}
        return {pid for pid in self.table if self._mark_of(pid) == wanted}

    def _writing(self, left: "Left") -> set[int]:
        """Return who can write into the pipes of a command: whatever it did to its environment, they are of it.

        Not who is older, for he was handed the pipe, nor one of our own that works for another: a worker that was
        started in a command prints into its pipe, and drops its mark.
        """
        if not left.pipes:
            return set()
        wanted, own = frozenset(left.pipes), {left.mark.partition(":")[0]}
        younger = [pid for pid, links in self.table.items() if links.started >= left.begun - TICK_S]
        return {pid for pid in younger if (held := self._held_by(pid)).pipes & wanted and held.lives <= own}

    def _held_by(self, pid: int) -> Held:
        if pid not in self._held:
            self._held[pid] = held_by(pid)
        return self._held[pid]

    def _mark_of(self, pid: int) -> bytes:
        if pid not in self._marks:
            self._marks[pid] = _read_mark(pid)
        return self._marks[pid]

    def _grown(self, members: set[int], known: dict[int, float]) -> list[int]:
        """Add who was known before, and then the descendants of all, with the groups and sessions they lead."""
        table = self.table
        members |= {pid for pid, started in known.items() if pid in table and table[pid].started == started}
        while (
            grown := {
                pid
                for pid, links in table.items()
                if links.parent in members or links.group in members or links.session in members
            }
            - members
        ):
            members |= grown
        known.update({pid: table[pid].started for pid in members})
        return sorted(members)


class Left(Value):
    """What is known of a command whose worker is gone: its mark, and what its worker noted: pipes and a leader.

    A mark that ends with a colon stands for all that begin with it, as all commands of one worker do.
    `started` and `seen_at` are moments on the boot-time clock at which that pid was surely the command's own; `begun`
    is one before its first process was there.
    """

    mark: str
    leader: int = 0
    started: float = 0.0
    seen_at: float = 0.0
    begun: float = 0.0
    pipes: tuple[int, ...] = ()


def kill(pids: "Iterable[int]") -> None:
    """Send SIGKILL; who is gone already, or belongs to another user, is passed by."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # another user's: then its command is not over


def end_left(commands: "Sequence[Left]", deadline_s: float = KILL_S) -> dict[str, list[int]]:
    """End what is left of commands whose workers are gone, until two looks in a row find nothing.

    Returns, by mark, the processes that could not be ended in time: another user's, or stuck in the kernel.
    """
    empty, until = 0, time.monotonic() + deadline_s
    known: dict[str, dict[int, float]] = {command.mark: {} for command in commands}
    while True:
        processes = Processes()
        left = {one.mark: pids for one in commands if (pids := processes.left_of(one, known[one.mark]))}
        empty = 0 if left else empty + 1
        if empty >= 2 or time.monotonic() >= until:
            return left
        kill({pid for pids in left.values() for pid in pids})
        if left:
            time.sleep(0.01)


def is_stopped(pid: int) -> bool:
    """Whether a process has been stopped (SIGSTOP) and not continued."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


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


def become(argv: "Sequence[str]", env: "Mapping[str, str]") -> "NoReturn":
    """Become one of our own processes: same pid, same streams, nothing else of the old."""
    os.execve(argv[0], list(argv), dict(env))


def start_over() -> "NoReturn":
    """Become the program this process was started as, anew: same pid, same arguments, nothing else of the old."""
    become([sys.executable, *sys.orig_argv[1:]], {**os.environ, RESTARTED_VARIABLE: "1"})


def _posix_spawn(
    program: bytes, argv: "Sequence[bytes]", env: "Mapping[bytes, bytes]", stdin: int, output: int, errors: int
) -> int:
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, errors, 2),
    ]
    try:
        return os.posix_spawn(
            program, list(argv), env, file_actions=actions, setsid=True, setsigdef=RESET_SIGNALS, setsigmask=()
        )
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without a first line that names its interpreter: what a shell does.
        words = [b"/bin/sh", program, *argv[1:]]
        return os.posix_spawn(
            "/bin/sh", words, env, file_actions=actions, setsid=True, setsigdef=RESET_SIGNALS, setsigmask=()
        )


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass


def _read_processes() -> "Iterator[tuple[int, Links]]":
    ticks = os.sysconf("SC_CLK_TCK")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            parent, group, session = map(int, fields[1:4])
            started = int(fields[19]) / ticks
            yield int(name), Links(parent=parent, group=group, session=session, started=started)


def _read_mark(pid: int) -> bytes:
    """Return the one word of a process's environment that names the claim it belongs to."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = b"\0" + file.read()
    except OSError:
        return b""
    start = environ.find(f"\0{CLAIM_VARIABLE}=".encode())
    return b"" if start < 0 else environ[start + 1 :].split(b"\0", 1)[0]
