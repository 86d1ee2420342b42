"""Print what a job printed, both streams in the order they came; without an id, what the newest job printed."""

import glob
import os
import sys

from queuectl.cli.list import read_limit
from queuectl.cli.store import connect, find_job, target_of
from queuectl.cli.text import note, print_json
from queuectl.errors import BadInput, NotFound
from queuectl.store import attempts
from queuectl.system.host import host_name
from queuectl.system.output import NOT_WRITTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.system.home import Home

CHUNK = 1 << 20
EXAMPLES = """\
  queuectl logs 12
  queuectl logs last -n 20
  queuectl logs job1 --attempt 2
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="?", default="last", metavar="ID", help="the job (default: the newest)")
    parser.add_argument("-n", "--lines", metavar="N", help="only the last N lines")
    parser.add_argument("--attempt", metavar="N", help="the output of attempt N (default: the newest run)")
    parser.add_argument("--run", dest="number", metavar="N", help="the output of run N, as `queuectl show` counts them")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the output of one run."""
    lines = None if args.lines is None else read_limit(args.lines, "--lines")
    target = target_of(args)

    def look(tx: "Tx") -> "tuple[Job, list[Attempt]]":
        job = find_job(tx, args.id)
        return job, attempts.runs_of(tx, job)

    job, runs = connect(target).read(look)
    chosen = _choose(job, runs, args.attempt, args.number)
    if chosen is None:
        note(f"job {job.id} is {job.state} and has not run yet")
        chunks: Iterator[bytes] = iter(())
    else:
        chunks = _output(chosen, job, target.home)
    if lines is not None:
        chunks = iter((_last_lines(b"".join(chunks), lines),))
    if args.json:
        output = b"".join(chunks).decode(errors="replace")
        print_json(
            {
                "id": job.id,
                "run": chosen and chosen.run,
                "attempt": chosen and chosen.attempt,
                "output": output,
            }
        )
        return 0
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    return 0


def _choose(job: "Job", runs: "list[Attempt]", attempt: str | None, number: str | None) -> "Attempt | None":
    """Return the run a person means: by its number, the newest with an attempt number, or the newest."""
    if attempt is not None and number is not None:
        raise BadInput("give either --attempt or --run")
    if number is not None:
        wanted = read_limit(number, "--run")
        chosen = [run for run in runs if run.run == wanted]
    elif attempt is not None:
        wanted = read_limit(attempt, "--attempt")
        chosen = [run for run in runs if run.attempt == wanted]
    else:
        return runs[-1] if runs else None
    if not chosen:
        what = f"attempt {attempt}" if number is None else f"run {number}"
        raise NotFound(f"job {job.id} has no {what}", hint=f"see its runs with: queuectl show {job.id}")
    return chosen[-1]


def _output(attempt: "Attempt", job: "Job", home: "Home") -> "Iterator[bytes]":
    """Yield the output: from the file where it is on this host, else the end that the database keeps."""
    if attempt.finished_at is None:
        yield from _live_output(attempt, job, home)
        return
    if attempt.output_file is not None:
        path = os.path.join(home.logs, attempt.output_file)
        if os.path.exists(path):
            yield from _file(path)
            if attempt.output_tail.startswith(NOT_WRITTEN):
                yield b"\n" + attempt.output_tail  # the disk was full: what came after is in the database alone
            return
        note(f"the whole output ({attempt.output_bytes} bytes) is not in this home; it ran on {attempt.host}. Its end:")
    yield attempt.output_tail


def _live_output(attempt: "Attempt", job: "Job", home: "Home") -> "Iterator[bytes]":
    from queuectl.system.home import log_path

    path = log_path(home, job.seq, job.run)
    if not os.path.exists(path):
        where = "" if attempt.host == host_name() else f" on {attempt.host}"
        note(f"job {job.id} is running{where} and has no output here yet")
        return
    for name in (path, *sorted(glob.glob(f"{glob.escape(path)}.part*"), key=os.path.getmtime)):
        yield from _file(name)


def _file(path: str) -> "Iterator[bytes]":
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except FileNotFoundError:
        return  # a segment that was just replaced


def _last_lines(data: bytes, count: int) -> bytes:
    return b"".join(data.splitlines(keepends=True)[-count:])
