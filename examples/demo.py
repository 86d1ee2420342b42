"""The demo behind `make demo`: a mixed batch through two workers, in a throw-away home, with each command shown.

Standard library only; the program is the `queuectl` beside this interpreter. Whatever happens (an error, Ctrl-C, a
closed terminal), the workers are stopped and the home is removed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("queuectl"))
POLL_S = 0.2
DEADLINE_S = 50.0
BAR_WIDTH = 12
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PARTS = "".join(f"sleep 0.4; echo part {number}\n" for number in range(1, 21))

BATCH = (
    ("quick: a shell line, and a program with its arguments, run without a shell",
     ["--id", "hello", "echo hello from job $QUEUECTL_JOB_ID"],
     ["--id", "urgent", "--priority", "10", "--", "echo", "a higher priority runs first"]),
    ("slow, and one that must not run beside it: both name the mutex `disk`",
     ["--id", "slow", "--mutex", "disk", "sleep 6; echo slow but sure"],
     ["--id", "after", "--mutex", "disk", "echo my turn"]),
    ("failing: one works at its third attempt, one never does",
     ['{"id": "flaky", "command": "echo attempt $QUEUECTL_ATTEMPT; test $QUEUECTL_ATTEMPT -ge 3", "backoff_base": 1}'],
     ["--id", "broken", "--max-retries", "2", "--backoff-base", "1.5", "echo disk is on fire >&2; exit 3"]),
    ("timing out",
     ["--id", "stuck", "--timeout", "2s", "--max-retries", "0", "sleep 600"]),
)  # fmt: skip


class Failed(Exception):
    """What the demo shows did not happen."""


def main() -> int:
    """Run the demo and clean up after it, however it ends."""
    if not os.path.exists(PROGRAM):
        print(f"no {PROGRAM}; set up first with: make setup", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    home = tempfile.mkdtemp(prefix="queuectl-demo-")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUEUECTL_")}
    environ["QUEUECTL_HOME"] = home
    try:
        show(environ)
    except Failed as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    finally:
        clean_up(environ, home)
    return 0


def show(environ: dict[str, str]) -> None:
    """Fill a queue, work it off, and look at what became of it."""
    say("A mixed batch. `enqueue` prints the id of each job.")
    for title, *jobs in BATCH:
        print(f"\n# {title}")
        for words in jobs:
            queuectl(environ, "enqueue", *words)
    print("\n# many at once: twenty lines from standard input, all or none")
    enqueue_parts(environ)

    say("Two workers in the background.")
    with uninterrupted():
        queuectl(environ, "worker", "start", "-n", "2", "-d")
    print("\n# why does one of them wait? every gate it must pass, open or shut")
    queuectl(environ, "why", "after")
    print()
    watch(environ)

    say("The flaky job needed three runs; each is on record.")
    queuectl(environ, "show", "flaky")
    print()
    queuectl(environ, "logs", "flaky")

    say("Where everything stands, and what kept failing: the dead letter queue.")
    queuectl(environ, "status")
    print()
    queuectl(environ, "dlq", "list")
    print("\n`queuectl dlq retry broken` would give it a fresh life.")


def queuectl(environ: dict[str, str], *words: str) -> None:
    """Show a command line and run it; its output goes where ours goes."""
    print(f"$ queuectl {' '.join(map(quoted, words))}", flush=True)
    # What enqueue says on a terminal (no worker runs yet) would be true and in the way.
    errors = subprocess.PIPE if words[0] == "enqueue" else None
    done = subprocess.run([PROGRAM, *words], env=environ, stderr=errors, text=True)
    if done.returncode != 0:
        raise Failed(f"queuectl {words[0]} left with {done.returncode}: {done.stderr or ''}".rstrip())


def enqueue_parts(environ: dict[str, str]) -> None:
    """Add the twenty lines and show their ids on one line, as the command shown would."""
    print("$ seq 20 | sed 's/.*/sleep 0.4; echo part &/' | queuectl enqueue --from - | xargs", flush=True)
    done = subprocess.run([PROGRAM, "enqueue", "--from", "-"], env=environ, input=PARTS, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    print(" ".join(done.stdout.split()))


def quoted(word: str) -> str:
    """Quote a word the way a person would."""
    return f"'{word}'" if "'" not in word and shlex.quote(word) != word else shlex.quote(word)


def watch(environ: dict[str, str]) -> None:
    """Show the progress until no job is left to run: redrawn in place on a terminal, a line per change in a pipe."""
    begun = time.monotonic()
    on_terminal = sys.stdout.isatty()
    shown = ""
    while True:
        counts = job_counts(environ)
        text = progress(counts)
        if on_terminal:
            line = f"{text}  {time.monotonic() - begun:.0f} s"
            print(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif text != shown:
            print(text, flush=True)
        shown = text
        if not unfinished(counts):
            break
        if time.monotonic() - begun > DEADLINE_S:
            raise Failed(f"still not done after {DEADLINE_S:.0f} s: {counts}")
        time.sleep(POLL_S)
    if on_terminal:
        print()


def job_counts(environ: dict[str, str]) -> dict[str, int]:
    """Ask the program how many jobs are in each state."""
    done = subprocess.run([PROGRAM, "status", "--json"], env=environ, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip())
    jobs: dict[str, int] = json.loads(done.stdout)["jobs"]
    return jobs


def unfinished(counts: dict[str, int]) -> int:
    """Return how many jobs are still to end."""
    return sum(counts[state] for state in ("pending", "scheduled", "blocked", "processing", "failed"))


def progress(counts: dict[str, int]) -> str:
    """Put the counts on one line."""
    total = sum(counts.values())
    ended = total - unfinished(counts)
    bar = "#" * round(BAR_WIDTH * ended / max(total, 1))
    names = ("completed", "dead", "processing", "failed", "blocked", "pending")
    return f"[{bar:.<{BAR_WIDTH}}] {ended}/{total}: " + ", ".join(f"{counts[name]} {name}" for name in names)


def say(text: str) -> None:
    """Begin a part of the demo."""
    print(f"\n== {text}", flush=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals back while workers start, so that there are none or all of them to stop."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def clean_up(environ: dict[str, str], home: str) -> None:
    """Stop the workers and remove the home; a second Ctrl-C must not cut this short."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    stop = [PROGRAM, "worker", "stop", "--now", "--timeout", "20s"]
    stopped = subprocess.run(stop, env=environ, capture_output=True, text=True)
    shutil.rmtree(home, ignore_errors=True)
    words = stopped.stdout.strip() if stopped.returncode == 0 else stopped.stderr.strip()
    print(f"\n{words}; the throw-away home is removed")


if __name__ == "__main__":
    sys.exit(main())
