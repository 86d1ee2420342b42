"""A terminal of one's own: runs the program on a pseudo-terminal and returns what a person would see."""

import errno
import fcntl
import os
import shlex
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.program import DEADLINE_S, PROGRAM, Cli, wait_for


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


class Pane:
    """A window of tmux in which a person types: a terminal that can be looked at, and made wider or narrower."""

    def __init__(self, cli: Cli, shell: Sequence[str], *, columns: int = 150, env: Mapping[str, str] = {}) -> None:
        self._tmux = ["tmux", "-S", str(cli.folder / "tmux"), "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", "40"]
        path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
        subprocess.run(
            [*self._tmux, "new-session", "-d", *size, "-s", "t", shlex.join(shell)],
            check=True,
            env={**cli.environ, "PATH": path, "TERM": "xterm", **env},
            cwd=cli.folder,
        )

    def press(self, *keys: str) -> None:
        """Type words, and keys as tmux names them."""
        subprocess.run([*self._tmux, "send-keys", "-t", "t", "--", *keys], check=True)

    def resize(self, columns: int) -> None:
        """Make the window wider or narrower."""
        subprocess.run([*self._tmux, "resize-window", "-t", "t", "-x", str(columns)], check=True)

    def wait_for(self, words: str) -> str:
        """Wait until the screen shows some words and return it."""
        return wait_for(
            lambda: text if words in (text := self.text()) else None, lambda: f"{words!r} in {self.text()!r}"
        )

    def text(self) -> str:
        """What is on the screen."""
        return subprocess.run([*self._tmux, "capture-pane", "-p", "-t", "t"], capture_output=True, text=True).stdout

    __repr__ = text

    def history(self) -> str:
        """What is on the screen, and what was before it left at the top."""
        argv = [*self._tmux, "capture-pane", "-p", "-S", "-", "-t", "t"]
        return subprocess.run(argv, capture_output=True, text=True).stdout

    def close(self) -> None:
        """Close the window, and end the shell in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True)
