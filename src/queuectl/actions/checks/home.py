"""Checks of the home: whether it can be used, who else can read it, the disk it is on, and what lies about in it."""

import os
import re

from queuectl.actions.liveness import store_mark
from queuectl.errors import StoreUnreachable
from queuectl.model.finding import error, ok, warning
from queuectl.model.units import counted, rough_size_text
from queuectl.store import claims
from queuectl.system.disk import owned, space_of, user_name
from queuectl.system.home import script_prefix
from queuectl.system.liveness import Pulse, may_belong_to, pulse_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding
    from queuectl.system.disk import Space

FULL_BYTES = 8 << 20
TIGHT_BYTES = 256 << 20
FULL_FILES = 100
TIGHT_FILES = 1000
TIGHT_PART = 0.05
NAMED = 5
_LOCK = r"([0-9a-f]{16})\.lock"
_SCRIPT = r"(\d+)\.(\d+)\.sh"


def home(case: "Case") -> "Iterator[Finding]":
    """Whether the folder of this queue is there and can be written."""
    root = case.target.home.root
    try:
        os.stat(root)
    except FileNotFoundError:
        yield _can_be_made(root)
        return
    except OSError as failed:
        yield error(f"{root} cannot be looked at: {failed.strerror}", "set QUEUECTL_HOME to a folder you may write to")
        return
    if not os.path.isdir(root):
        yield error(f"{root} is not a folder", "move it away, or set QUEUECTL_HOME to another folder")
        return
    folders = [path for path in (root, case.target.home.run, case.target.home.logs) if os.path.isdir(path)]
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    for path in closed:
        why = "the disk is mounted read-only" if _is_read_only(path) else f"it is {_whose(path)}"
        yield error(f"{path} cannot be written: {why}", f"make it yours to write: chmod u+rwx {path}")
    if not closed:
        yield ok(f"{root} can be written")


def _can_be_made(root: str) -> "Finding":
    """Judge whether a folder that is not there can be made: whether the nearest one above it can be written."""
    above = os.path.dirname(root)
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    if os.access(above, os.W_OK | os.X_OK):
        return ok(f"{root} does not exist yet; the first command that needs it makes it")
    return error(f"{root} cannot be made: {above} cannot be written", "set QUEUECTL_HOME to a folder you may write to")


def private(case: "Case") -> "Iterator[Finding]":
    """Whether somebody else can read commands and output, or slip commands in."""
    home, path = case.target.home, case.target.sqlite_path
    files = [path, f"{path}-wal", f"{path}-shm"] if path else []
    found = [one for each in (home.root, home.logs, home.run, *files) if (one := owned(each)) is not None]
    # What lies in a folder that nobody else may enter cannot be reached, whatever its own mode.
    root = owned(home.root)
    is_shut = root is not None and not root.mode & 0o011 and (path is None or path.startswith(f"{home.root}/"))
    is_fine = True
    for one in found:
        if one.owner != os.geteuid():
            is_fine = False
            who = user_name(one.owner)
            yield warning(
                f"{one.path} belongs to {who}, not to {user_name(os.geteuid())}",
                f"run queuectl as {who}, or hand it over: chown -R {user_name(os.geteuid())} {one.path}",
            )
        if is_shut and one is not root and one.path != home.root:
            continue
        if one.is_writable_by_others:
            is_fine = False
            yield error(
                f"{one.path} can be changed by other users (mode {one.mode:03o}): they could have commands run as you",
                f"chmod go= {one.path}",
            )
        elif one.is_readable_by_others:
            is_fine = False
            yield warning(
                f"{one.path} can be read by other users (mode {one.mode:03o}): commands and output may hold secrets",
                f"chmod go= {one.path}",
            )
    if is_fine:
        yield ok("only its owner can read the home" if found else "nothing is there to be read")


def file_system(case: "Case") -> "Iterator[Finding]":
    """Whether the locks of SQLite can be trusted on this disk."""
    try:
        case.target.home.refuse_network_disk()
    except StoreUnreachable as refused:
        yield error(refused.message, refused.hint)
    else:
        yield ok("a local disk")


def disk(case: "Case") -> "Iterator[Finding]":
    """Whether there is room left for the database, the output of commands and their files."""
    places = {case.target.home.root: "the home"}
    if case.target.sqlite_path is not None:
        places.setdefault(os.path.dirname(case.target.sqlite_path), "the database")
    for path, what in places.items():
        yield from judge_space(f"{what} ({path})", space_of(path))


def judge_space(where: str, space: "Space") -> "Iterator[Finding]":
    """Judge the room of one disk."""
    free = f"{rough_size_text(space.free_bytes)} of {rough_size_text(space.total_bytes)}"
    files = f"{space.free_files} of {space.total_files}"
    is_fine = True
    if space.free_bytes < FULL_BYTES:
        is_fine = False
        yield error(f"the disk of {where} is full: {free} free", "remove something, or move the home to another disk")
    elif space.free_bytes < max(TIGHT_BYTES, min(space.total_bytes * TIGHT_PART, 4 * TIGHT_BYTES)):
        is_fine = False
        yield warning(f"the disk of {where} is nearly full: {free} free", "remove something before it is full")
    if space.total_files and space.free_files < FULL_FILES:
        is_fine = False
        yield error(
            f"the disk of {where} takes no more files: {files} inodes free", "remove files; many small ones use them up"
        )
    elif space.total_files and space.free_files < max(TIGHT_FILES, space.total_files * TIGHT_PART):
        is_fine = False
        yield warning(
            f"the disk of {where} takes few more files: {files} inodes free",
            "remove files; many small ones use them up",
        )
    if is_fine:
        yield ok(f"{free} free for {where}")


def leftovers(case: "Case") -> "Iterator[Finding]":
    """Whether locks and scripts of workers that are gone lie about."""
    folder = case.target.home.run
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    running = {claim.mark for claim in case.store.read(claims.running)} if case.has_tables else set()
    left = [name for name in names if _is_left_lock(case, name, running) or _is_left_script(case, name, running)]
    if left:
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        yield warning(
            f"{folder} holds {counted(len(left), 'file')} of no running worker: {', '.join(left[:NAMED])}{more}",
            f"a running worker removes its locks; or: cd {folder} && rm {' '.join(left[:NAMED])}",
        )
    else:
        yield ok("no files of workers that are gone")


def _is_left_lock(case: "Case", name: str, running: "Collection[str]") -> bool:
    found = re.fullmatch(_LOCK, name)
    if not found:
        return False
    path = os.path.join(case.target.home.run, name)
    if case.has_tables:
        if not may_belong_to(path, store_mark(case.store.dialect)):
            return False
        needed = {worker.id for worker in case.fleet.workers} | {mark.partition(":")[0] for mark in running}
        if found[1] in needed:
            return False
    return pulse_of(path) is Pulse.DEAD


def _is_left_script(case: "Case", name: str, running: "Collection[str]") -> bool:
    found = re.fullmatch(re.escape(script_prefix(case.target.home)) + _SCRIPT, name)
    if not found or not case.has_tables:
        return False
    return not any(mark.endswith(f":{found[1]}:{found[2]}") for mark in running)


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _whose(path: str) -> str:
    one = owned(path)
    return "out of reach" if one is None else f"{user_name(one.owner)}'s, mode {one.mode:03o}"
