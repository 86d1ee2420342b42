"""Log lines of workers: for people or as JSON, each naming worker, job and run."""

import json
import select
import time
from contextlib import contextmanager

from queuectl import clock
from queuectl.errors import QueuectlError
from queuectl.model.units import counted, iso_text
from queuectl.system.stderr import Stderr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queuectl.system.logfile import LogFile

TEXT = "text"
JSON = "json"
MAX_TEXT = 300
REPEAT_S = 30.0
FAREWELL_S = 1.0
"""How long a process that ends waits for who reads its lines, where some were left out."""


class Log:
    """Writes lines to the terminal (standard error) or to a file."""

    def __init__(self, source: str, *, form: str, file: "LogFile | None") -> None:
        self._source = source
        self._is_json = form == JSON
        self._file = file
        self._stderr = Stderr() if file is None else None
        self._dropped = 0
        self._second = 0
        self._stamp = ""
        self._trouble = ""
        self._repeat_at = 0.0

    def info(self, event: str, message: str, *, job: str | None = None, run: int | None = None) -> None:
        """Write a line about what happened."""
        self._line("info", event, message, job, run)

    def warning(self, event: str, message: str, *, job: str | None = None, run: int | None = None) -> None:
        """Write a line about what a person should look at."""
        self._line("warning", event, message, job, run)

    def trouble(self, message: str) -> None:
        """Say that the store cannot be used just now: at once, when it is something else, and then now and then."""
        now = time.monotonic()
        if message != self._trouble or now >= self._repeat_at:
            self._trouble, self._repeat_at = message, now + REPEAT_S
            self.warning("store", f"{message}; trying again")

    def trouble_over(self) -> None:
        """Say that the store can be used again, if it could not be."""
        if self._trouble:
            self._trouble = ""
            self.info("store", "the store can be used again")

    def runs(self, told: "Iterable[tuple[str, str, str, int]]") -> None:
        """Write a line about each of several runs: event, message, job and run. Several at once: it is most of it."""
        now = clock.wall_ms()
        if self._is_json:
            lines = [self._json(now, "info", *each) for each in told]
        else:
            head = f"{self._local(now)} {self._source} job"
            lines = [f"{head} {job} run {run}: {_shown(message)}\n" for _, message, job, run in told]
        self._write(lines)

    def close(self) -> None:
        """Say how many of the last lines were left out: no line comes any more that would say it before itself."""
        stderr, end = self._stderr, time.monotonic() + FAREWELL_S
        if stderr is None:
            return
        while not (self._has_said_all(stderr) and stderr.write(b"")) and (left_s := end - time.monotonic()) > 0:
            stderr.wait(left_s)

    @contextmanager
    def crashes(self) -> "Iterator[None]":
        """Put whatever ends this process unforeseen into the log, where somebody finds it, and let it end."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, QueuectlError):
                import traceback

                told = f"crashed: {traceback.format_exc()}"
                for line in [told] if self._is_json else told.splitlines():
                    self.warning("crashed", line)
            raise

    def _line(self, level: str, event: str, message: str, job: str | None, run: int | None) -> None:
        self._write([self._made(level, event, message, job, run)])

    def _made(self, level: str, event: str, message: str, job: str | None = None, run: int | None = None) -> str:
        now = clock.wall_ms()
        if self._is_json:
            return self._json(now, level, event, message, job, run)
        about = "" if job is None else f"job {job} run {run}: "
        mark = "" if level == "info" else f"{level}: "
        return f"{self._local(now)} {self._source} {mark}{about}{_shown(message)}\n"

    def _write(self, lines: "list[str]") -> None:
        if self._file is not None:
            self._file.write("".join(lines))
        elif self._stderr is not None and lines:
            self._write_together(self._stderr, [line.encode(errors="backslashreplace") for line in lines])

    def _write_together(self, stderr: Stderr, lines: "list[bytes]") -> None:
        """Write lines, as many at once as a pipe takes in one piece: others write into it, too.

        Where that would block they are left out: a reader that stands still costs lines, never the work.
        """
        at_once = max(1, select.PIPE_BUF // max(map(len, lines)))
        for start in range(0, len(lines), at_once):
            some = lines[start : start + at_once]
            if not (self._has_said_all(stderr) and stderr.write(b"".join(some))):
                self._dropped += len(some)

    def _has_said_all(self, stderr: Stderr) -> bool:
        """Say how many lines were left out, unless that would block; False: it would."""
        if self._dropped:
            said = f"{counted(self._dropped, 'line')} left out: nobody read them in time"
            if not stderr.write(self._made("warning", "left_out", said).encode()):
                return False
            self._dropped = 0
        return True

    def _json(self, now: int, level: str, event: str, message: str, job: str | None, run: int | None) -> str:
        fields: dict[str, object] = {
            "time": iso_text(now),
            "level": level,
            "source": self._source,
            "event": event,
        }
        if job is not None:
            fields |= {"job": job, "run": run}
        return json.dumps({**fields, "message": message}) + "\n"

    def _local(self, now: int) -> str:
        second = now // 1000
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return self._stamp


def one_line(text: str) -> str:
    """Return text as part of a log line: cut short, and with nothing in it that a terminal would obey."""
    return _shown(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}...")


def _shown(text: str) -> str:
    """Show what a terminal would obey, and what would begin another line: reasons hold names that people gave."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
