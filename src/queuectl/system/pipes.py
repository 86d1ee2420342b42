"""Pipes: which pipe a descriptor belongs to, and which processes can still write into it."""

import os
import re

from queuectl.model.value import Value

# The lock of one of our own processes, which may have been removed while its holder lives (liveness.py).
_LIFE_LOCK = re.compile(r"/run/([0-9a-f]{16})\.lock(?: \(deleted\))?\Z")


class Held(Value):
    """What a process has open: the pipes it can write into, and the ids whose locks it holds as one of ours."""

    pipes: frozenset[int]
    lives: frozenset[str]


def inode_of(fd: int) -> int:
    """Return the number by which the kernel knows a pipe for as long as anybody has it open."""
    return os.fstat(fd).st_ino


def held_by(pid: int) -> Held:
    """Look at what a process has open; nothing where it is gone, or another user's."""
    pipes, lives = [], []
    folder = f"/proc/{pid}/fd"
    for name in _names_in(folder):
        path = f"{folder}/{name}"
        try:
            link = os.readlink(path)
            if link.startswith("pipe:[") and os.lstat(path).st_mode & 0o200:  # its writing end
                pipes.append(int(link[6:-1]))
            elif (life := _LIFE_LOCK.search(link)) is not None:
                lives.append(life[1])
        except OSError:
            continue  # closed meanwhile
    return Held(pipes=frozenset(pipes), lives=frozenset(lives))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
