"""Home: the folder of one queue on this host, and what lies where in it."""

import errno
import fcntl
import os

from queuectl.errors import StoreUnreachable
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MODE = 0o700
RUNS_PER_FOLDER = 1000
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "ceph", "lustre", "glusterfs", "afs"})


class Home(Value):
    """Where one queue keeps its files on this host.

    A SQLite file has its home to itself. Several PostgreSQL may share one, also with a SQLite file: each has a `folder`
    of its own for output there (docs/adr/0014-a-folder-of-output-per-store.md).
    """

    root: str
    folder: str = ""

    @property
    def database(self) -> str:
        """The SQLite file of the default store."""
        return os.path.join(self.root, "queue.db")

    @property
    def logs(self) -> str:
        """Output of commands that was too long or took too long for the database alone; names on record begin here."""
        return f"{self.root}/logs"

    @property
    def own_logs(self) -> str:
        """Where of that the output of this store lies."""
        return f"{self.logs}/{self.folder}" if self.folder else self.logs

    @property
    def run(self) -> str:
        """Locks of living workers and the wake file."""
        return os.path.join(self.root, "run")

    @property
    def wake(self) -> str:
        """The file whose touch wakes idle workers."""
        return os.path.join(self.root, "run", "wake")

    @property
    def changed(self) -> str:
        """The file whose touch tells those who watch that jobs changed."""
        return os.path.join(self.root, "run", "changed")

    @property
    def backups(self) -> str:
        """What a restore put something else in the place of."""
        return os.path.join(self.root, "backups")

    @property
    def secrets(self) -> str:
        """Values that commands get by name, a file each; the user makes it."""
        return os.path.join(self.root, "secrets")

    @property
    def worker_log(self) -> str:
        """What detached workers have to say."""
        return os.path.join(self.root, "queuectl.log")

    def make(self) -> None:
        """Create the folders, readable by their owner alone; those that exist stay as they are."""
        try:
            for path in (self.root, self.run, self.own_logs):
                _make_folder(path)
        except OSError as error:
            raise StoreUnreachable(
                f"cannot create {error.filename}: {error.strerror}",
                hint="set QUEUECTL_HOME to a folder you may write to",
            ) from None

    def refuse_network_disk(self) -> None:
        """Refuse a home whose locks would lie: SQLite on a network file system corrupts."""
        kind = _file_system(os.path.realpath(self.root))
        if kind in _NETWORK:
            raise StoreUnreachable(
                f"{self.root} is on a network file system ({kind}), where SQLite's locks cannot be trusted",
                hint="export QUEUECTL_HOME=/var/tmp/queuectl (any local disk), or use PostgreSQL for several hosts",
            )


def create_private(path: str) -> None:
    """Create an empty file only its owner may read, unless it is there; what grows beside it takes the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        sync_folder(os.path.dirname(path))
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise StoreUnreachable(
            f"cannot create {path}: {error.strerror}", hint="check the folder and the disk"
        ) from None


def make_folder(path: str) -> None:
    """Create a folder readable by its owner alone, unless it is there."""
    try:
        _make_folder(path)
    except OSError as error:
        raise StoreUnreachable(
            f"cannot create {error.filename}: {error.strerror}", hint="check the folder above it and the disk"
        ) from None


def _make_folder(path: str) -> None:
    """Create a folder with those above it that are missing, each made to last through a power cut."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        os.makedirs(each, mode=MODE, exist_ok=True)
        sync_folder(os.path.dirname(each))


def sync_folder(path: str) -> None:
    """Make what was created in a folder last through a power cut: a synced file in a lost folder is lost."""
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync a folder has nothing to sync
            raise
    finally:
        os.close(fd)


def folder_of(mark: str) -> str:
    """Return what the folder is called in which a store that is not local keeps output; never a number."""
    return f"postgresql-{mark}"


def is_own(home: "Home", name: str) -> bool:
    """Whether an output file is this store's own by its name; jobs that came from another store name that one's."""
    thousand = os.path.dirname(name)
    return os.path.dirname(thousand) == home.folder and os.path.basename(thousand).isdigit()


def remove_logs(home: "Home", names: "Iterable[str]") -> None:
    """Remove output files of this store and host; those of others, and those gone already, are passed by."""
    for name in names:
        if is_own(home, name):
            remove_file(os.path.join(home.logs, name))


def remove_file(path: str) -> None:
    """Remove a file that may be gone already, or out of our reach; then it harms nobody where it is."""
    try:
        os.unlink(path)
    except OSError:
        pass


def log_path(home: Home, number: int, run: int) -> str:
    """Return where the output of a run goes: by number, never by a name somebody gave."""
    return f"{home.own_logs}/{number // RUNS_PER_FOLDER}/{number}.{run}.log"


def stderr_path(home: Home, number: int, run: int) -> str:
    """Return where the error output of a run goes that is kept apart."""
    return f"{home.own_logs}/{number // RUNS_PER_FOLDER}/{number}.{run}.err.log"


def script_path(home: Home, number: int, run: int) -> str:
    """Return where a shell line goes that is too long to be an argument."""
    return os.path.join(home.run, f"{script_prefix(home)}{number}.{run}.sh")


def script_prefix(home: Home) -> str:
    """Return how the names of this store's scripts begin: another that shares the home has the same numbers."""
    return f"{home.folder}." if home.folder else ""


class setup_lock:  # noqa: N801 - used as a statement: `with setup_lock(home):`
    """Let one process at a time set a home up; freed by the kernel when the process dies."""

    def __init__(self, home: Home) -> None:
        self._path = os.path.join(home.run, "setup.lock")
        self._fd = -1

    def __enter__(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnreachable(
                f"cannot write {self._path}: {error.strerror}",
                hint="set QUEUECTL_HOME to a folder you may write to",
            ) from None
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _file_system(path: str) -> str:
    best, kind = "", ""
    for mount, name in _mounts():
        if (path == mount or path.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
            best, kind = mount, name
    return kind


def _mounts() -> "Iterator[tuple[str, str]]":
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                _, mount, kind, *_ = line.split(" ")
                yield mount.replace("\\040", " "), kind
    except OSError:
        return
