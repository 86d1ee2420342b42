"""What a disk holds after a power cut: rebuilt from what strace saw programs write and sync."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

BY_NAME = ("openat", "creat", "mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "truncate")
BY_DESCRIPTOR = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "splice", "fallocate", "ftruncate",
    "sync_file_range", "fsync", "fdatasync",
)  # fmt: skip
SYNCS = ("fsync", "fdatasync")
STRACE = (
    "strace", "--follow-forks", "--seccomp-bpf", f"--trace={','.join(BY_NAME + BY_DESCRIPTOR)}",
    "--decode-fds=path", "--strings-in-hex=all", "--string-limit=100000000",
)  # fmt: skip
"""Writes down every call that can change a file or sync it, with all of the bytes."""
SECTOR = 512

_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
_BEGUN = re.compile(r"(.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"(.*)\) += (-?\d+)(?:<[^>]*>)?(?: .*)?$")
_FD = re.compile(r"(\d+|AT_FDCWD)<((?:\\x..)*)>(?:, )?")
_TEXT = re.compile(r'"((?:\\x..)*)"(?:, )?')


class Call:
    """One call of the kernel that succeeded, with the moments at which it began and ended."""

    def __init__(self, name: str, args: str, result: int, began: int, ended: int) -> None:
        self.name = name
        self.began = began
        self.ended = ended
        self.result = result
        self.fd, self.fd_path, rest = -1, "", args
        if found := _FD.match(rest):
            self.fd = -1 if found[1] == "AT_FDCWD" else int(found[1])
            self.fd_path, rest = _bytes(found[2]).decode(), rest[found.end() :]
        self.text = b""
        if found := _TEXT.match(rest):
            self.text, rest = _bytes(found[1]), rest[found.end() :]
        self.rest = rest

    @property
    def path(self) -> str:
        """The file or folder it is about, by name or by an open descriptor."""
        return self.text.decode() if self.name in BY_NAME else self.fd_path


def calls_in(log: Path) -> list[Call]:
    """Read what strace wrote, in the order in which the calls ended."""
    calls: list[Call] = []
    begun: dict[tuple[str, str], tuple[int, str]] = {}
    with log.open(encoding="ascii") as file:
        for moment, line in enumerate(file):
            if not (found := _LINE.match(line)):
                continue
            pid, resumed, fresh, rest = found.groups()
            began, args = begun.pop((pid, resumed), (moment, "")) if resumed else (moment, "")
            name = resumed or fresh
            if cut := _BEGUN.match(rest):
                begun[pid, name] = moment, args + cut[1]
            elif (ended := _ENDED.match(rest)) and int(ended[2]) >= 0:
                calls.append(Call(name, args + ended[1], int(ended[2]), began, moment))
    return calls


class Disk:
    """The history of the files of one folder, from its beginning, as far as they matter to SQLite."""

    def __init__(self, folder: Path, calls: list[Call]) -> None:
        self._folder = str(folder)
        self._files: list[_File] = []
        self._names: dict[str, _File] = {}
        self._folder_syncs: list[Call] = []
        for call in calls:
            if call.path == self._folder and call.name in SYNCS:
                self._folder_syncs.append(call)
            elif call.path.startswith(f"{self._folder}/queue.db") and not call.path.endswith("-shm"):
                self._take(call)

    def after_power_cut(self, moment: int, keeps: Callable[[], bool]) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of the files: what was synced before a moment, and of the rest what `keeps` says."""
        for file in self._files:
            is_there = _is_durable(file.made, self._folder_syncs, moment) or (file.made.began < moment and keeps())
            if file.removed is not None and file.removed.began < moment:
                is_gone = _is_durable(file.removed, self._folder_syncs, moment) or keeps()
                is_there = is_there and not is_gone
            if is_there:
                yield file.name, file.content(moment, keeps)

    def _take(self, call: Call) -> None:
        name = call.path.removeprefix(f"{self._folder}/")
        if call.name == "openat":
            if name not in self._names and "O_CREAT" in call.rest:
                self._names[name] = _File(name, call)
                self._files.append(self._names[name])
        elif call.name == "unlink":
            self._names.pop(name).removed = call
        elif call.name in ("pwrite64", "ftruncate"):
            self._names[name].changes.append(call)
        elif call.name in SYNCS:
            self._names[name].syncs.append(call)
        else:
            raise AssertionError(f"{call.name} of {call.path}: the disk does not know what that does")


class _File:
    def __init__(self, name: str, made: Call) -> None:
        self.name = name
        self.made = made
        self.removed: Call | None = None
        self.changes: list[Call] = []
        self.syncs: list[Call] = []

    def content(self, moment: int, keeps: Callable[[], bool]) -> bytes:
        """Return what the disk has of it: every change that was synced, and of the others what `keeps` says."""
        data = bytearray()
        for change in self.changes:
            if change.began >= moment:
                continue
            is_durable = _is_durable(change, self.syncs, moment)
            if change.name == "pwrite64":
                step = change.result if is_durable else SECTOR
                for offset in range(0, change.result, step):
                    if is_durable or keeps():
                        sector = change.text[offset : min(offset + step, change.result)]
                        _put(data, int(change.rest.split(", ")[1]) + offset, sector)
            elif is_durable or keeps():
                size = int(change.rest)
                data.extend(bytes(max(0, size - len(data))))
                del data[size:]
        return bytes(data)


def _put(data: bytearray, start: int, piece: bytes) -> None:
    data.extend(bytes(max(0, start - len(data))))
    data[start : start + len(piece)] = piece


def nothing() -> bool:
    """Keep nothing of what was not synced: the disk had not begun to write it."""
    return False


def everything() -> bool:
    """Keep all that was not synced: the disk was quick."""
    return True


def by_chance(seed: int) -> Callable[[], bool]:
    """Keep some sectors of what was not synced, and not others: the disk was in the middle of it."""
    chance = random.Random(seed)
    return lambda: chance.random() < 0.5


def _is_durable(change: Call, syncs: list[Call], moment: int) -> bool:
    """Whether a sync began after the change had ended, and ended before the moment."""
    return any(change.ended < sync.began and sync.ended < moment for sync in syncs)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
