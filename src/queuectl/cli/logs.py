"""Print what a job printed; without an id, what the newest job printed. With -f, as it comes, until the job has ended.

Both streams come in the order they were printed; those of a job with --split-output go to stdout and stderr. In a pipe
every byte passes unchanged. On a terminal colours pass, and what else would steer it is shown instead of obeyed.
"""

import os
import stat
import sys

from queuectl.actions.explain import why_waiting
from queuectl.cli.list import read_limit
from queuectl.cli.store import connect, find_job, target_of
from queuectl.cli.text import note, print_json, safe
from queuectl.errors import BadInput
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import OutcomeKind
from queuectl.runtime.follow import follow
from queuectl.runtime.outputs import OUTPUT, STDERR, STDOUT, output_of, pick_run
from queuectl.store import attempts, jobs
from queuectl.system.host import host_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codecs import IncrementalDecoder
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.runtime.outputs import Chunk
    from queuectl.store.database import Database, Tx

EXAMPLES = """\
  queuectl logs 12
  queuectl logs last -n 20
  queuectl logs -f job1
  queuectl logs -f job1 -n 10
  queuectl logs job1 --attempt 2
  queuectl logs job1 --stderr
  queuectl logs job1 --raw | less -R
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="?", default="last", metavar="ID", help="the job (default: the newest)")
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="all that it prints, in every run, as it comes, until the job has ended",
    )
    parser.add_argument(
        "-n", "--lines", metavar="N", help="only the last N lines; with -f, those of the newest run, then what follows"
    )
    parser.add_argument("--attempt", metavar="N", help="the output of attempt N (default: the newest run)")
    parser.add_argument("--run", dest="number", metavar="N", help="the output of run N, as `queuectl show` counts them")
    parser.add_argument("--stdout", action="store_true", help="only stdout, of a job with --split-output")
    parser.add_argument("--stderr", action="store_true", help="only stderr, of a job with --split-output; to stdout")
    parser.add_argument("--raw", action="store_true", help="pass every byte unchanged, also on a terminal")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the output of one run, or follow that of a job."""
    lines = None if args.lines is None else read_limit(args.lines, "--lines")
    streams = _read_streams(args)
    target = target_of(args)
    database = connect(target)

    def look(tx: "Tx") -> "tuple[Job, list[Attempt]]":
        job = find_job(tx, args.id)
        return job, attempts.runs_of(tx, job)

    job, runs = database.read(look)
    chosen = _choose(job, runs, args)
    if args.follow:
        chunks = _follow(args, target, database, job, chosen, lines, streams)
    elif chosen is None:
        note(f"job {job.id} is {job.state} and has not run yet")
        chunks = iter(())
    else:
        chunks = output_of(target, database, job, chosen, lines=lines, streams=streams, on_cut=_say_cut)
        if chosen.finished_at is None:
            chunks = _or_say_nothing_yet(job, chosen, chunks)
        elif chosen.outcome is OutcomeKind.NOT_STARTED:
            note(f"job {job.id} could not be started: {safe(chosen.error or 'no reason is on record')}")
    if args.json:
        return _print_lines(job, chunks) if args.follow else _print_object(job, chosen, chunks, streams)
    Printer(is_raw=args.raw, is_merged=streams is not None, is_followed=args.follow).print_all(chunks)
    if args.follow:
        _say_end(database, job)
    return 0


def _say_end(database: "Database", job: "Job") -> None:
    """Say how a job ended that did not end well; one that goes on was not followed to its end."""
    after = database.read(lambda tx: jobs.get(tx, job.seq))
    if after is None:
        note(f"-- job {job.id} was deleted --")
    elif after.state in FINAL and after.state is not State.COMPLETED:
        note(f"-- job {job.id} is {after.state}: {safe(after.error or 'no reason is on record')} --")


def _read_streams(args: "Args") -> "frozenset[str] | None":
    if args.stdout and args.stderr:
        raise BadInput("give either --stdout or --stderr", hint="without them both are shown")
    return frozenset({STDOUT}) if args.stdout else frozenset({STDERR}) if args.stderr else None


def _choose(job: "Job", runs: "list[Attempt]", args: "Args") -> "Attempt | None":
    """Return the run a person means: by its number, the newest with an attempt number, or the newest."""
    if args.attempt is not None and args.number is not None:
        raise BadInput("give either --attempt or --run")
    if args.number is not None:
        return pick_run(job, runs, run=read_limit(args.number, "--run"))
    if args.attempt is not None:
        return pick_run(job, runs, attempt=read_limit(args.attempt, "--attempt"))
    return runs[-1] if runs else None


def _follow(
    args: "Args",
    target: "Target",
    database: "Database",
    job: "Job",
    chosen: "Attempt | None",
    lines: int | None,
    streams: "frozenset[str] | None",
) -> "Iterator[Chunk]":
    def say_wait(job: "Job") -> None:
        why = database.read(lambda tx: why_waiting(tx, job))
        state = "running" if job.state is State.PROCESSING else job.state.value
        note(f"-- job {job.id} is {state}, waiting for {why.reason if why else 'its turn'} --")

    def say_elsewhere(attempt: "Attempt") -> None:
        note(f"-- job {job.id} runs on {attempt.host}; what it prints is shown when the run ends --")

    is_one = args.attempt is not None or args.number is not None
    begins_with_chosen = is_one or lines is not None
    return follow(
        target,
        database,
        job.seq,
        from_run=chosen.run if chosen is not None and begins_with_chosen else 1,
        until_run=chosen.run if chosen is not None and is_one else None,
        lines=lines,
        streams=streams,
        on_wait=say_wait,
        on_elsewhere=say_elsewhere,
        on_cut=_say_cut,
        reader_fd=1 if stat.S_ISFIFO(os.fstat(1).st_mode) else None,
    )


def _say_cut(attempt: "Attempt", stream: str) -> None:
    is_stderr = stream == STDERR
    size = attempt.stderr_bytes if is_stderr else attempt.output_bytes
    what = "output" if stream == OUTPUT else stream
    if attempt.host == host_name():
        name = attempt.stderr_file if is_stderr else attempt.output_file
        note(f"the file with the whole {what} ({size} bytes) is gone: logs/{safe(name or '')}. Its end:")
    else:
        note(f"the whole {what} ({size} bytes) is not in this home; it ran on {attempt.host}. Its end:")


def _or_say_nothing_yet(job: "Job", run: "Attempt", chunks: "Iterator[Chunk]") -> "Iterator[Chunk]":
    is_empty = True
    for chunk in chunks:
        is_empty = False
        yield chunk
    if is_empty:
        where = "" if run.host == host_name() else f" on {run.host}"
        note(f"job {job.id} is running{where} and has no output here yet; wait for it with: queuectl logs -f {job.id}")


class Printer:
    """Prints chunks: stderr of a job that keeps it apart to stderr, unless it alone was asked for."""

    def __init__(self, *, is_raw: bool, is_merged: bool, is_followed: bool) -> None:
        from queuectl.cli.terminal import TerminalFilter

        self._is_merged = is_merged
        self._is_followed = is_followed
        self._files: dict[bool, BinaryIO] = {False: sys.stdout.buffer, True: sys.stderr.buffer}
        self._filters = {
            is_stderr: TerminalFilter()
            for is_stderr, stream in ((False, sys.stdout), (True, sys.stderr))
            if stream.isatty() and not is_raw
        }
        self._run: int | None = None
        self._is_at_line_start = True

    def print_all(self, chunks: "Iterator[Chunk]") -> None:
        """Print chunks as they come, and leave the terminal's colours as they were."""
        try:
            for chunk in chunks:
                self._begin_run(chunk)
                self._print(chunk.stream == STDERR and not self._is_merged, chunk.data)
        finally:
            self._end_run()

    def _end_run(self) -> None:
        for is_stderr, cleaner in self._filters.items():
            self._write(is_stderr, cleaner.end())

    def _begin_run(self, chunk: "Chunk") -> None:
        if chunk.run == self._run:
            return
        self._end_run()
        if self._is_followed and chunk.run > 1:
            sys.stdout.buffer.flush()
            if not self._is_at_line_start and sys.stdout.isatty() and sys.stderr.isatty():
                note("")
            note(f"-- attempt {chunk.attempt} (run {chunk.run}) --")
        self._run = chunk.run

    def _print(self, is_stderr: bool, data: bytes) -> None:
        self._is_at_line_start = data.endswith(b"\n")
        cleaner = self._filters.get(is_stderr)
        self._write(is_stderr, data if cleaner is None else cleaner.feed(data))

    def _write(self, is_stderr: bool, data: bytes) -> None:
        if data:
            self._files[is_stderr].write(data)
            self._files[is_stderr].flush()


def _print_object(
    job: "Job", chosen: "Attempt | None", chunks: "Iterator[Chunk]", streams: "frozenset[str] | None"
) -> int:
    """Print one object; where stdout and stderr are kept apart, each is a field, null if it was not asked for."""
    shape: dict[str, object] = {
        "id": job.id,
        "run": chosen and chosen.run,
        "attempt": chosen and chosen.attempt,
    }
    pieces: dict[str, list[bytes]] = {STDOUT: [], STDERR: []} if chosen and chosen.is_split else {OUTPUT: []}
    for chunk in chunks:
        pieces[chunk.stream].append(chunk.data)
    for name, parts in pieces.items():
        is_wanted = streams is None or name in streams
        shape[name] = b"".join(parts).decode(errors="replace") if is_wanted else None
    print_json(shape)
    return 0


def _print_lines(job: "Job", chunks: "Iterator[Chunk]") -> int:
    """Print one object per chunk; a character that two chunks share goes with the second."""
    from codecs import getincrementaldecoder

    decoders: dict[str, IncrementalDecoder] = {}
    last: dict[str, Chunk] = {}

    def print_text(chunk: "Chunk", text: str) -> None:
        if text:
            print_json({"id": job.id, "run": chunk.run, "attempt": chunk.attempt, "stream": chunk.stream, "text": text})
            sys.stdout.flush()

    def end_run() -> None:
        for stream, chunk in last.items():
            print_text(chunk, decoders[stream].decode(b"", final=True))
        last.clear()

    for chunk in chunks:
        if any(before.run != chunk.run for before in last.values()):
            end_run()
        if chunk.stream not in last:
            decoders[chunk.stream] = getincrementaldecoder("utf-8")(errors="replace")
        last[chunk.stream] = chunk
        print_text(chunk, decoders[chunk.stream].decode(chunk.data))
    end_run()
    return 0
