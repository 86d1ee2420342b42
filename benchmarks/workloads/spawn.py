"""The limit in Python: start `/bin/sh -c :` COUNT times, one at a time, output through a pipe, and wait for each.

Run as a script of its own. It does what spawn.c beside it does.
"""

import os
import select
import sys

ENVIRON = dict(os.environb)  # encoded once, not for every command


def run_once() -> None:
    """Start the command, wait for its end, take its output."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_DUP2, writing, 2),
    ]
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", ":"], ENVIRON, file_actions=actions, setsid=True)
    os.close(writing)
    pidfd = os.pidfd_open(pid)
    watched = select.poll()
    watched.register(pidfd, select.POLLIN)
    watched.poll()
    while os.read(reading, 65536):
        pass
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    os.close(pidfd)
    os.close(reading)
    if ended is None or ended.si_status:
        sys.exit(1)


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        run_once()
