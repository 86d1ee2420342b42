"""Log lines of workers: for people or as JSON, each naming worker, job and run."""

import json
import os
import time

from queuectl import clock
from queuectl.model.units import iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.system.logfile import LogFile

TEXT = "text"
JSON = "json"


class Log:
    """Writes lines to the terminal (standard error) or to a file."""

    def __init__(self, source: str, *, form: str, file: "LogFile | None") -> None:
        self._source = source
        self._is_json = form == JSON
        self._file = file
        self._second = 0
        self._stamp = ""

    def info(self, event: str, message: str, *, job: str | None = None, run: int | None = None) -> None:
        """Write a line about what happened."""
        self._line("info", event, message, job, run)

    def warning(self, event: str, message: str, *, job: str | None = None, run: int | None = None) -> None:
        """Write a line about what a person should look at."""
        self._line("warning", event, message, job, run)

    def _line(self, level: str, event: str, message: str, job: str | None, run: int | None) -> None:
        now = clock.wall_ms()
        if self._is_json:
            line = self._json(now, level, event, message, job, run)
        else:
            about = "" if job is None else f"job {job} run {run}: "
            mark = "" if level == "info" else f"{level}: "
            line = f"{self._local(now)} {self._source} {mark}{about}{message}\n"
        if self._file is not None:
            self._file.write(line)
            return
        try:
            os.write(2, line.encode(errors="backslashreplace"))
        except OSError:
            pass  # the terminal is gone; the work goes on

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
