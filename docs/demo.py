"""Demo: fills an empty store with a plausible day of work, for the pictures of the documentation.

The past comes in by `queuectl import`: lines made from those of one real job, so that they have every field there is.
The present is real: workers run, jobs run and wait, schedules were fired.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("queuectl"))
HOURS = 24
SEED = 8
DEADLINE_S = 120.0
Shape = dict[str, object]

# What jobs of the past were: queue, command, tags, seconds they took, how often they came in an hour.
KINDS = (
    ("default", "./thumbnails.sh batch-{n}", ["images"], 4.0, 14),
    ("default", "python3 -m reports.build --month 2026-{m:02}", ["reports"], 22.0, 3),
    ("mail", "./send-mail.sh newsletter/{n}", ["mail"], 0.8, 22),
    ("mail", "./send-mail.sh receipt/{n}", ["mail", "shop"], 0.6, 12),
    ("media", "ffmpeg -i in/{n}.mov -crf 23 out/{n}.mp4", ["video"], 48.0, 2),
)
# How some of them ended for good: command, error, exit code, output, how many, how many hours ago the first died.
DEATHS = (
    ("mail", "./send-mail.sh newsletter/{n}", "exit code 75", 75,
     "connecting to smtp.internal:587\nERROR 421 4.7.0 too many connections, try again later\n", 14, 5.0),
    ("media", "ffmpeg -i in/{n}.mov -crf 23 out/{n}.mp4", "timed out after 10m", None,
     "frame= 4410 fps= 12 q=28.0 size=   51200kB time=00:02:57\n", 6, 16.0),
    ("default", "python3 -m reports.build --month 2026-{m:02}", "exit code 1", 1,
     "Traceback (most recent call last):\n  totals = rows[month]\nKeyError: '2026-02'\n", 3, 9.0),
)  # fmt: skip


SCRIPTS = {
    "backup.sh": "echo 214 files, 3.1 GB",
    "poll-orders.sh": "echo 12 orders",
    "check-links.sh": "echo 3 broken links; exit 1",
    "report.sh": "echo sent",
    "rotate.sh": "echo rotated",
    "thumbnails.sh": (
        "i=0; while :; do i=$((i+1)); echo image $i of 5000; "
        "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done; sleep 0.3; done"
    ),
    "quarter.sh": "echo reading the ledger; sleep 3600",
}


def fill(environ: "dict[str, str]", folder: Path) -> None:
    """Fill the store that an environment names; what its jobs run lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, line in SCRIPTS.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    run = Runner(environ, folder)
    run.say("import", "-", stdin="\n".join(_past(run)) + "\n")
    _set_up(run)
    _present(run)


class Runner:
    """Runs queuectl in one environment."""

    def __init__(self, environ: "dict[str, str]", folder: Path) -> None:
        self.environ = environ
        self.folder = folder

    def say(self, *words: str, stdin: str = "", is_checked: bool = True) -> str:
        """Run a command line and return what it prints."""
        done = subprocess.run(
            [PROGRAM, *words],
            input=stdin,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )
        if is_checked and done.returncode:
            raise SystemExit(f"queuectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def wait_for(self, *words: str, count: int) -> None:
        """Wait until a list has so many lines."""
        until = time.monotonic() + DEADLINE_S
        while len(self.say(*words).splitlines()) < count:
            if time.monotonic() > until:
                raise SystemExit(f"not within {DEADLINE_S:g} s: queuectl {' '.join(words)} has {count} lines")
            time.sleep(0.1)


def _past(run: Runner) -> "list[str]":
    """Return the lines of an export of the last day."""
    chance = random.Random(SEED)
    job, attempt, header = _prototypes(run)
    now_ms = int(time.time() * 1000)
    begun = sorted(
        (now_ms - chance.random() * HOURS * 3_600_000, kind)
        for kind in KINDS
        for _ in range(int(kind[4] * HOURS * chance.uniform(0.85, 1.15)))
    )
    lines: list[tuple[Shape, list[Shape]]] = []
    for at, (queue, command, tags, seconds, _) in begun:
        took_s = seconds * chance.lognormvariate(0, 0.5)
        lines.append(_ended(job, attempt, chance, int(at), queue, command, tags, took_s, None))
    for queue, command, error, code, output, count, hours in DEATHS:
        for _ in range(count):
            at = now_ms - chance.random() ** 2 * hours * 3_600_000
            lines.append(_ended(job, attempt, chance, int(at), queue, command, ["batch"], 3.0, (error, code, output)))
    lines.sort(key=lambda line: str(line[0]["created_at"]))
    shapes: list[Shape] = [{**header, "last_number": len(lines)}]
    for number, (one, runs) in enumerate(lines, start=1):
        shapes += [{**one, "number": number}, *({**each, "job": number} for each in runs)]
    runs_in_all = sum(len(runs) for _, runs in lines)
    return [json.dumps(each) for each in (*shapes, {"type": "end", "jobs": len(lines), "runs": runs_in_all})]


def _prototypes(run: Runner) -> "tuple[Shape, Shape, Shape]":
    """Run one job in the store and return its lines and the header; it is removed again."""
    run.say("enqueue", "true")
    run.say("worker", "start", "--until-idle")
    lines = [json.loads(line) for line in run.say("export").splitlines()]
    run.say("delete", "1", "--yes")
    of = {str(line["type"]): line for line in lines}
    return of["job"], of["run"], of["header"]


def _ended(
    job: Shape,
    attempt: Shape,
    chance: random.Random,
    at_ms: int,
    queue: str,
    command: str,
    tags: "list[str]",
    took_s: float,
    death: "tuple[str, int | None, str] | None",
) -> "tuple[Shape, list[Shape]]":
    """Return a job that is over, and its runs."""
    line = command.format(n=chance.randint(1000, 9999), m=chance.randint(1, 12))
    runs, start_ms = [], at_ms + int(chance.expovariate(1 / 1500))
    waited_ms = start_ms - at_ms
    is_flaky = death is None and chance.random() < 0.03
    tries = 3 if death else 2 if is_flaky else 1
    for number in range(1, tries + 1):
        end_ms = start_ms + int(took_s * 1000)
        error, code, output = death or ((None, 0, "done\n") if number == tries else ("exit code 1", 1, "busy\n"))
        runs.append(
            {
                **attempt,
                "queue": queue,
                "run": number,
                "attempt": number,
                "started_at": _iso(start_ms),
                "finished_at": _iso(end_ms),
                "outcome": "timed_out" if error and error.startswith("timed out") else "exited",
                "exit_code": code,
                "error": error,
                "cpu_ms": int(took_s * 400),
                "peak_memory_bytes": chance.randint(8, 180) << 20,
                "output_bytes": len(output),
                "output_tail": output,
                "waited_ms": waited_ms if number == 1 else 40,
            }
        )
        start_ms = end_ms + 2000 * number
    last = runs[-1]
    shape = {
        **job,
        "id": None,
        "state": "dead" if death else "completed",
        "queue": queue,
        "command": line,
        "cwd": "/srv/shop",
        "tags": tags,
        "max_retries": 2 if death else 3,
        "run": tries,
        "attempts": tries,
        "created_at": _iso(at_ms),
        "updated_at": last["finished_at"],
        "started_at": last["started_at"],
        "finished_at": last["finished_at"],
        "exit_code": last["exit_code"],
        "error": last["error"],
        "waited_ms": waited_ms,
    }
    return shape, runs


def _iso(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03}Z"


def _set_up(run: Runner) -> None:
    run.say("queue", "set", "mail", "--concurrency", "4", "--rate", "20/m")
    run.say("queue", "set", "media", "--concurrency", "1", "--timeout", "10m")
    run.say("limit", "set", "licence", "2")
    run.say("config", "set", "max_retries", "4")
    run.say("config", "set", "job_timeout", "30m")
    schedules = (
        (["nightly-backup", "30 2 * * *", "--tz", "Europe/Oslo"], "./backup.sh --all"),
        (["poll-orders", "--every", "10m", "--overlap", "skip"], "./poll-orders.sh"),
        (["weekly-report", "0 7 * * mon", "--queue", "mail"], "./report.sh weekly"),
        (["check-links", "15 */4 * * *", "--max-retries", "0"], "./check-links.sh https://shop.example"),
        (["rotate-logs", "@daily", "--jitter", "5m"], "./rotate.sh"),
    )
    for words, command in schedules:
        run.say("schedule", "add", *words, command)
    run.say("schedule", "pause", "rotate-logs")


def _present(run: Runner) -> None:
    """Let workers run, and give them something to do for as long as pictures are taken."""
    run.say("worker", "start", "-n", "2", "-j", "2", "-d", "--queue", "default", "--queue", "mail")
    for name, times in (("nightly-backup", 7), ("poll-orders", 5), ("check-links", 4)):
        for _ in range(times):
            job = run.say("schedule", "run", name).strip()
            run.say("wait", job, is_checked=False)
    run.say("enqueue", "--tag", "images", "--id", "thumbnails", "./thumbnails.sh spring")
    run.say("enqueue", "--tag", "images", "--id", "resize", "./thumbnails.sh summer")
    run.say("enqueue", "--tag", "reports", "--id", "quarter", "--mutex", "reports", "./quarter.sh 2026-3")
    run.wait_for("list", "--state", "processing", "-q", count=3)
    run.say("enqueue", "--id", "quarter-again", "--mutex", "reports", "./report.sh quarter")
    run.say("enqueue", "--id", "publish", "--after", "quarter", "./publish.sh quarter")
    run.say("enqueue", "--id", "invoice", "--delay", "2h", "./invoice.sh")
    run.say("enqueue", "--id", "flaky", "--backoff-base", "600", "--priority", "9", "exit 7")
    run.wait_for("list", "--state", "failed", "-q", count=1)
    run.say("enqueue", "--from", "-", "--queue", "media", stdin="".join(f"./encode.sh {n}\n" for n in range(40, 71)))
    run.say("queue", "pause", "media")
    run.say("cancel", "invoice")
    run.say("enqueue", "--id", "invoice-late", "--delay", "3h", "./invoice.sh")


def main() -> int:
    """Fill the store that this environment names; the folder of its scripts is the argument."""
    fill(dict(os.environ), Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
