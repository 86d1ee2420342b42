"""Liveness: a worker holds a lock for as long as it lives; whoever can take that lock knows it is dead.

The locked file also says what only its holder knows and others need when it is gone or hangs: when it last renewed its
lease, and what tells the commands it runs: pids, and the pipes they print into. Where its death is no crash, that
stands there, too. It is written without a sync: after a power cut there are no commands.
"""

import fcntl
import os
from enum import StrEnum

from queuectl.errors import StoreUnreachable
from queuectl.model.attempt import NOTED_OUTPUT_BYTES
from queuectl.model.value import Value
from queuectl.system.endnotes import EndNotes, path_of, read_end_notes, remove_left_notes
from queuectl.system.home import Home, folder_of, remove_file
from queuectl.system.process import Left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.system.launch import Notes

RECORD_BYTES = 128
SUFFIX = ".lock"
_STRUCK_OUT = b" " * (RECORD_BYTES - 1) + b"\n"


class Pulse(StrEnum):
    """What this host can know about a process by its lock."""

    ALIVE = "alive"
    DEAD = "dead"
    OUT_OF_SIGHT = "out of sight"


class Parting(StrEnum):
    """Why the death of a worker is no crash, and nothing that its jobs are charged for."""

    ENDED = "ended"
    """It did not renew its lease, and was ended for it."""
    LEFT = "left"
    """It was told to stop, and could not settle what it held: the store was away."""


class Leader(Value):
    """A command under way, as its worker notes it in two steps.

    Before it is started: when that was, on the boot-time clock, and which pipes it will print into. Then also the pid
    of its first process, 0 until it is known, and a moment at which that pid was surely the command's.
    """

    seq: int
    run: int
    pid: int = 0
    since: float = 0.0
    begun: float = 0.0
    pipes: tuple[int, ...] = ()


class LifeNote(Value):
    """What the locked file says: the last sign of life on the boot-time clock, the lease, the commands under way.

    `parting` is there where the death of the holder is no crash.
    """

    seen_at: float
    lease_s: float
    store: str
    leaders: tuple[Leader, ...]
    parting: Parting | None = None

    def left(self, worker_id: str) -> list[Left]:
        """Return what these notes of a worker that is gone say about the commands it may have left."""
        return [
            Left(
                mark=f"{worker_id}:{leader.seq}:{leader.run}",
                leader=leader.pid,
                started=leader.since,
                seen_at=self.seen_at,
                begun=leader.begun,
                pipes=leader.pipes,
            )
            for leader in self.leaders
        ]


class LifeLock:
    """The lock one process holds from its start to its death, however it dies."""

    def __init__(self, home: Home, worker_id: str, store: str = "") -> None:
        self.path = lock_path(home, worker_id)
        self._store = store
        try:
            self._fd = self._make()
            while not os.path.exists(self.path):  # somebody who tidied up was quicker than our lock
                os.close(self._fd)
                self._fd = self._make()
        except OSError as error:
            raise StoreUnreachable(
                f"cannot write {self.path}: {error.strerror}", hint="check the folder and the disk"
            ) from None
        self._places: dict[int, int] = {}
        self._free_places: list[int] = []
        self._stale_places: set[int] = set()
        """Those of the free ones that still name a command whose end is noted."""
        self._unnoted: set[int] = set()
        """Commands that could not be written down when they began."""
        self._ends = EndNotes(self.path)
        self.note_life(0.0, 0.0)

    def _make(self) -> int:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    def note_life(self, now: float, lease_s: float) -> None:
        """Write down that this process lived, and renewed its lease, at a time on the boot-time clock."""
        self._put(0, _record(f"{now:.3f} {lease_s:.3f} {self._store}".encode()))

    def notes_for(self, seq: int) -> "Notes":
        """Return where who launches a command notes it in our place: system/launch.py."""
        return self._fd, self._place_of(seq) * RECORD_BYTES, RECORD_BYTES, -1, 0

    def notes_for_row(self, seq: int) -> "Notes":
        """Return where who launches a row of commands, this one first, notes them and their ends in our place."""
        return *self.notes_for(seq)[:3], self._ends.lend(), NOTED_OUTPUT_BYTES

    def noted_over(self, first: int, last: int | None) -> None:
        """Learn that several were noted at the place of one, each when the end of the one before was noted.

        What stands there now is `last`; None means that none is under way: the end of every one is noted.
        """
        place = self._places.pop(first)
        if last is None:
            self._let_go(place)
        else:
            self._places[last] = place

    def note_start(self, leader: Leader) -> None:
        """Write down a command that is about to be started."""
        first = _first_words(leader.pid, leader.since) if leader.pid else _NO_PID_YET
        words = _start_words(first, leader.seq, leader.run, leader.begun)
        pipes = b" ".join([b"%d" % pipe for pipe in leader.pipes])
        if not self._put(self._place_of(leader.seq), _record(words + pipes)):
            self.drop_stale()
            self._unnoted.add(leader.seq)
            self._ends.remove()  # a job without a note may have begun from now on

    def note_pid(self, leader: Leader, pid: int, since: float) -> None:
        """Add the pid of a command that was written down, and a moment at which it was surely the command's."""
        if leader.seq in self._unnoted:
            self._unnoted.discard(leader.seq)
            self.note_start(leader.replace(pid=pid, since=since))
        else:
            self._put(self._places[leader.seq], _first_words(pid, since))

    def note_ends(self, seqs: "Sequence[int]") -> None:
        """Strike out those of some commands that are noted as under way."""
        for seq in self._places.keys() & seqs:
            place = self._places.pop(seq)
            self._free_places.append(place)
            self._put(place, _STRUCK_OUT)
        self._unnoted.difference_update(seqs)

    def expect_ends(self) -> bool:
        """Make ready to write down how runs end, before jobs are taken ahead; False means that none may be."""
        return not self._unnoted and self._ends.open()

    def note_outcome(self, seq: int, run: int, note: str) -> bool:
        """Write down in JSON how a run ended; False means that it must be settled at once.

        Where it was noted as under way, the next command is noted over it: `read_note` goes by its end until then.
        """
        if not self._ends.add(seq, run, note):
            return False
        place = self._places.pop(seq, None)
        self._unnoted.discard(seq)
        if place is not None:
            self._let_go(place)
        return True

    def forget_outcomes(self) -> None:
        """Strike out how runs ended: they are settled."""
        self.drop_stale()
        self._ends.clear()

    def drop_stale(self) -> None:
        """Strike out commands whose ends are noted and over which none was noted: their pids may be another's."""
        for place in self._stale_places:
            self._put(place, _STRUCK_OUT)
        self._stale_places.clear()

    def release(self) -> None:
        """Remove the lock after the worker's row was closed."""
        self._ends.remove()
        remove_file(self.path)
        os.close(self._fd)

    def _let_go(self, place: int) -> None:
        """Let the next command be noted where the end of the one that stands there is noted."""
        self._free_places.append(place)
        self._stale_places.add(place)

    def _place_of(self, seq: int) -> int:
        place = self._places.get(seq)
        if place is None:
            place = self._places[seq] = self._free_places.pop() if self._free_places else len(self._places) + 1
            self._stale_places.discard(place)
        return place

    def _put(self, place: int, words: bytes) -> bool:
        try:
            return os.pwrite(self._fd, words, place * RECORD_BYTES) == len(words)
        except OSError:
            return False  # no space: what the commands carry in their environment still tells them


def _first_words(pid: int, since: float) -> bytes:
    """Return what changes once a command runs, always as long, so that it can be written over."""
    return b"%10d %16.3f" % (pid, since)


def _start_words(first: bytes, seq: int, run: int, begun: float) -> bytes:
    """Return all that is noted of a command but the pipes that come behind it."""
    return b"%b %d %d %.3f " % (first, seq, run, begun)


def _record(words: bytes) -> bytes:
    return words.ljust(RECORD_BYTES - 1) + b"\n"


_NO_PID_YET = _first_words(0, 0.0)


def lock_path(home: Home, worker_id: str) -> str:
    """Return where a worker of a home keeps its lock."""
    return os.path.join(home.run, f"{worker_id}{SUFFIX}")


def remove_lock(path: str) -> None:
    """Remove the lock of a worker that is gone, and all it noted beside it."""
    remove_file(path_of(path))
    remove_file(path)


def home_of(path: str, home: Home) -> Home:
    """Return the home in which a lock lies, as its holder means it: several homes may share a PostgreSQL.

    Its holder may spell the URL in another way than `home` was made from; the lock says which folder follows from it.
    """
    store = read_note(path).store if home.folder else ""
    folder = folder_of(store) if store.isalnum() else home.folder
    return Home(root=os.path.dirname(os.path.dirname(path)), folder=folder)


def note_parting(path: str, why: Parting) -> None:
    """Say in a lock that its holder is about to be gone, and that this is no crash.

    Before it is: from its death on, anybody on this host may be the first to look after its jobs.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return  # it has just left by itself
    try:
        os.write(fd, f"\n{why}\n".encode())  # a line of its own: a full disk may have cut off the one before
    except OSError:
        pass  # no space: it is taken for a crash, unless whoever looks after its jobs has ended it
    finally:
        os.close(fd)


def read_note(path: str) -> LifeNote:
    """Return what a process wrote into its locked file; nothing where that cannot be read."""
    try:
        with open(path, "rb") as file:
            lines = file.read().decode("ascii", "replace").splitlines()
    except OSError:
        lines = []
    leaders, seen_at, lease_s, store, parting = [], 0.0, 0.0, "", None
    for number, line in enumerate(lines):
        words = line.replace("\0", " ").split()
        try:
            if number == 0 and len(words) >= 2:
                seen_at, lease_s, store = float(words[0]), float(words[1]), "".join(words[2:])
            elif len(words) == 1:
                parting = Parting(words[0])
            elif len(words) >= 4:
                leaders.append(_leader_of(words))
        except ValueError:
            continue  # cut off half way by a full disk
    if leaders and (ends := read_end_notes(path)):
        leaders = [leader for leader in leaders if (leader.seq, leader.run) not in ends]
    return LifeNote(seen_at=seen_at, lease_s=lease_s, store=store, leaders=tuple(leaders), parting=parting)


def _leader_of(words: list[str]) -> Leader:
    """Read the note of a command; an earlier version wrote the first four words alone."""
    pid, since, seq, run, begun, *pipes = words if len(words) > 4 else (*words, "0")
    return Leader(
        pid=int(pid), since=float(since), seq=int(seq), run=int(run), begun=float(begun), pipes=tuple(map(int, pipes))
    )


def numbers_under_way(home: Home) -> set[int]:
    """Return the numbers of the jobs whose commands the processes of a home wrote down as running."""
    try:
        paths = [os.path.join(home.run, name) for name in os.listdir(home.run) if name.endswith(SUFFIX)]
    except OSError:
        return set()
    return {leader.seq for path in paths for leader in read_note(path).leaders}


def pulse_of(path: str, *, pid: int | None = None, has_rebooted: bool = False) -> Pulse:
    """Tell whether the holder of a lock lives, at once, across pid reuse and reboots.

    A lock file that is not there proves nothing: it may have been removed, or lie in another container of this name.
    `pid`, where pids of the holder mean something here, then tells at least that nobody can be alive; and so does a
    host known to have started anew since.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        is_gone = has_rebooted or (pid is not None and not os.path.exists(f"/proc/{pid}"))
        return Pulse.DEAD if is_gone else Pulse.OUT_OF_SIGHT
    except OSError:
        return Pulse.OUT_OF_SIGHT
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return Pulse.ALIVE
    finally:
        os.close(fd)
    return Pulse.DEAD


def may_belong_to(path: str, store: str) -> bool:
    """Whether a lock is of this store, or says nothing: a home may serve several.

    One that is empty was left by a process killed before its first word, and so before any row spoke of it.
    """
    try:
        return os.path.getsize(path) == 0 or read_note(path).store == store
    except OSError:
        return False


def remove_left_locks(home: Home, store: str, is_needed: "Callable[[str], bool]") -> None:
    """Remove the locks of a home that nobody holds and nobody needs, such as of a process killed as it started.

    Each is removed while it is held here, so that no other can be about to use it.
    """
    try:
        names = os.listdir(home.run)
    except OSError:
        return
    remove_left_notes(home, names)
    for name in names:
        worker_id = name.removesuffix(SUFFIX)
        if worker_id in (name, "setup"):
            continue
        path = os.path.join(home.run, name)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if may_belong_to(path, store) and not is_needed(worker_id):
                remove_lock(path)
        except OSError:
            pass  # its holder lives
        finally:
            os.close(fd)
