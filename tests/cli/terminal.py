"""A terminal of one's own: runs the program on a pseudo-terminal and returns what a person would see."""

import errno
import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Mapping
from dataclasses import dataclass

from tests.program import DEADLINE_S, PROGRAM, Cli


@dataclass(frozen=True)
class Seen:
    """What came of a command line: its exit code, what the terminal got, and what went into the pipe."""

    code: int
    screen: str
    piped: str


def on_terminal(
    cli: Cli,
    *words: str,
    stdout_in_pipe: bool = False,
    typed: str = "",
    columns: int = 120,
    env: Mapping[str, str] = {},
) -> Seen:
    """Run a command line on a terminal; `stdout_in_pipe` leaves it only stdin and stderr."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [PROGRAM, *words],
        env={**_without_size(cli.environ), "TERM": "xterm-256color", **env},
        cwd=cli.folder,
        stdin=theirs,
        stdout=subprocess.PIPE if stdout_in_pipe else theirs,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        piped, _ = process.communicate(timeout=DEADLINE_S)
        screen = _everything_from(ours)
        os.close(ours)
    return Seen(process.returncode, screen.replace("\r\n", "\n"), piped or "")


def _without_size(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out what would speak louder than the terminal itself."""
    return {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}


def _everything_from(terminal: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError as error:
            if error.errno == errno.EIO:  # the other end is closed and all is read
                break
            raise
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces).decode(errors="replace")
