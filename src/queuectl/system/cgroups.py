"""Control groups: one per run that limits the memory of its whole tree, where this host has handed us a place for them.

A group belongs to whoever manages it, so we make ours only in one that was handed over: systemd marks those of units
with `Delegate=`. The other place is the top of the hierarchy, for root on a host without a manager. Without either,
the limit is set per process (prepare.py).

    <place>/queuectl.main              the supervisor and its workers (version 2 allows no processes beside groups)
    <place>/queuectl.<worker id>       of one worker, locked by it for life: whoever can take the lock may remove it
    <place>/queuectl.<worker id>/3.1   of one run
"""

import contextlib
import errno
import fcntl
import os

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "queuectl."
MAIN = "queuectl.main"
OWN_GROUPS = "/proc/self/cgroup"
MOUNTS = "/proc/self/mountinfo"
_DELEGATE_MARKS = ("trusted.delegate", "user.delegate")


class Version(Value):
    """The files of one version of control groups: limits in the order they must be written, and where kills count."""

    number: int
    limits: tuple[str, ...]
    no_swap: str | None
    kills: str


V1 = Version(
    number=1,
    # The second includes swap, may not be below the first, and is missing where swap is not accounted.
    limits=("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    no_swap=None,
    kills="memory.oom_control",
)
V2 = Version(number=2, limits=("memory.max",), no_swap="memory.swap.max", kills="memory.events")


class Place(Value):
    """A group in which we may make others."""

    path: str
    version: Version


class Group:
    """The group of one run."""

    def __init__(self, path: str, version: Version, limit_bytes: int) -> None:
        self.path = path
        self._version = version
        os.mkdir(path)
        try:
            self._limit(limit_bytes)
        except OSError:
            remove(path)
            raise

    def _limit(self, limit_bytes: int) -> None:
        first, *others = self._version.limits
        _write(os.path.join(self.path, first), f"{limit_bytes}")
        for name in others:
            with contextlib.suppress(FileNotFoundError):
                _write(os.path.join(self.path, name), f"{limit_bytes}")
        if self._version.no_swap is not None:
            with contextlib.suppress(FileNotFoundError):
                _write(os.path.join(self.path, self._version.no_swap), "0")

    def kills(self) -> int:
        """Return how many of its processes the kernel has killed for lack of memory."""
        for line in _read(os.path.join(self.path, self._version.kills)).splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill" and number.isdigit():
                return int(number)
        return 0


class Groups:
    """The groups of one worker, each removed when nothing lives in it any more."""

    def __init__(self, place: Place, worker_id: str) -> None:
        self._version = place.version
        self._path = os.path.join(place.path, f"{PREFIX}{worker_id}")
        self._lock = _make_locked(self._path)
        self._left: list[str] = []
        try:
            if self._version.number == 2:
                _write(os.path.join(self._path, "cgroup.subtree_control"), "+memory")
        except OSError:
            self.close()
            raise

    def make(self, name: str, limit_bytes: int) -> Group:
        """Make the group of a run; an OSError means that there is none."""
        self._remove_left()
        return Group(os.path.join(self._path, name), self._version, limit_bytes)

    def drop(self, group: Group) -> None:
        """Remove a group; while something the command left in the background lives in it, that is done later."""
        self._left.append(group.path)
        self._remove_left()

    def close(self) -> None:
        """Remove what is empty and let go of the rest, which the next worker that starts here removes."""
        self._remove_left()
        remove(self._path)
        os.close(self._lock)

    def _remove_left(self) -> None:
        self._left = [path for path in self._left if not remove(path)]


def find_place() -> Place | None:
    """Return where this process may make groups that limit memory; None where nobody has handed it a place."""
    for path, version, is_top in _own_groups():
        if version is V1 and (is_top or is_handed_over(path)) and os.access(path, os.W_OK):
            return Place(path=path, version=version)
        if version is V2:
            # Beside the group we live in: ours after `move_aside`, or a unit's DelegateSubgroup=.
            above = path if is_top else os.path.dirname(path)
            if _can_limit_memory(above, is_top=is_top):
                return Place(path=above, version=version)
    return None


def move_aside() -> None:
    """Move this process, alone in a group that was handed over, into one below it, so that others can be made there.

    Done by a supervisor before its first worker. Where somebody else lives in the group, nothing is touched.
    """
    for path, version, is_top in _own_groups():
        if (
            version is not V2
            or is_top
            or not is_handed_over(path)
            or "memory" not in _words(path, "cgroup.controllers")
        ):
            continue
        if _words(path, "cgroup.procs") != [str(os.getpid())]:
            continue
        main = os.path.join(path, MAIN)
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(main)
            _write(os.path.join(main, "cgroup.procs"), str(os.getpid()))
            _write(os.path.join(path, "cgroup.subtree_control"), "+memory")


def sweep(place: Place) -> None:
    """Remove the groups of workers that are dead, as far as nothing lives in them; whose lock is held is alive."""
    for name in _folders(place.path):
        if not name.startswith(PREFIX) or name == MAIN:
            continue
        path = os.path.join(place.path, name)
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for run in _folders(path):
                    remove(os.path.join(path, run))
                remove(path)
            finally:
                os.close(fd)


def is_handed_over(path: str) -> bool:
    """Whether the manager of this host says that it leaves a group, and what is below it, to those who live in it."""
    for mark in _DELEGATE_MARKS:
        with contextlib.suppress(OSError):
            if os.getxattr(path, mark) == b"1":
                return True
    return False


def remove(path: str) -> bool:
    """Remove a group; False means that something still lives in it."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        return error.errno not in (errno.EBUSY, errno.ENOTEMPTY)
    return True


def _can_limit_memory(path: str, *, is_top: bool) -> bool:
    if not os.access(os.path.join(path, "cgroup.subtree_control"), os.W_OK):
        return False
    if "memory" in _words(path, "cgroup.subtree_control"):
        return is_top or is_handed_over(path)
    if is_top or not is_handed_over(path) or _words(path, "cgroup.procs"):
        return False  # the top belongs to the host, and a group with processes cannot pass a controller on
    try:
        _write(os.path.join(path, "cgroup.subtree_control"), "+memory")
    except OSError:
        return False
    return True


def _own_groups() -> "Iterator[tuple[str, Version, bool]]":
    """Yield the folder of each group this process is in that could limit memory, and whether it is the top one."""
    mounts = {version.number: where for version, where in _mounts()}
    for line in _read(OWN_GROUPS).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = V1 if "memory" in controllers.split(",") else V2 if number == "0" and not controllers else None
        if version is None or version.number not in mounts:
            continue
        root, folder = mounts[version.number]
        inside = os.path.relpath(path, root)
        if inside.startswith(".."):
            continue  # mounted from elsewhere in the hierarchy
        yield os.path.normpath(os.path.join(folder, inside)), version, path == "/"


def _mounts() -> "Iterator[tuple[Version, tuple[str, str]]]":
    """Yield where the hierarchies that could limit memory are mounted: the group at their top, and the folder."""
    for line in _read(MOUNTS).splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            yield V2 if kind == "cgroup2" else V1, (fields[3], fields[4])


def _make_locked(path: str) -> int:
    """Make a folder and lock it; a sweep that found it between the two has removed it, and then it is made again."""
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.path.exists(path) and os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
        os.close(fd)


def _folders(path: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _words(path: str, name: str) -> list[str]:
    return _read(os.path.join(path, name)).split()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
