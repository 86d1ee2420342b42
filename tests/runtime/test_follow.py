"""Following the output of a job: as it comes, exactly, from run to run, until the job has ended."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.errors import NotFound, Refused
from queuectl.model.attempt import Attempt, Report
from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.runtime.follow import follow
from queuectl.runtime.outputs import Chunk, measured, output_of, pick_run
from queuectl.store import attempts, jobs
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from queuectl.system import wake
from queuectl.system.home import log_path
from tests.program import Cli, wait_for
from tests.store.rows import add_dead_worker, add_job, add_worker, claim_one
from tests.system.printing import NOTICE, assert_exact

on_sqlite = pytest.mark.parametrize("target", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)

UNTIL_GO = "until [ -e go ]; do sleep 0.02; done"


@pytest.fixture
def worker(cli: Cli) -> Cli:
    """The program, with a worker that runs four commands at once."""
    cli.ok("worker", "start", "-d", "-j", "4")
    return cli


@pytest.fixture
def sparing(cli: Cli) -> Cli:
    """The program, with such a worker that keeps 64 KiB of an output; it was told so before it began."""
    cli.ok("config", "set", "max_output_bytes", "64KiB")
    cli.ok("worker", "start", "-d", "-j", "4")
    return cli


def go(cli: Cli) -> None:
    """Let a command that waits go on."""
    (cli.folder / "go").touch()


def find(db: Database, job_id: str) -> Job:
    job = db.read(lambda tx: jobs.find(tx, job_id))
    assert job is not None
    return job


def chunks_of(cli: Cli, db: Database, job_id: str, **options: object) -> Iterator[Chunk]:
    return follow(cli.target, db, find(db, job_id).seq, **options)  # type: ignore[arg-type]


def text_of(chunks: Iterator[Chunk]) -> dict[tuple[int, str], bytes]:
    """Return what each stream of each run printed, in the order they came."""
    seen: dict[tuple[int, str], bytes] = {}
    for chunk in chunks:
        key = chunk.run, chunk.stream
        assert key == max([*seen, key]) or chunk.stream != "output", "a run came back after a later one"
        seen[key] = seen.get(key, b"") + chunk.data
    return seen


def test_a_job_that_is_over_at_once_is_shown_from_the_database(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue("echo short; echo and both >&2")

    assert text_of(chunks_of(worker, db, job_id)) == {(1, "output"): b"short\nand both\n"}


def test_output_is_shown_while_the_command_runs(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue(f"echo first; {UNTIL_GO}; echo second; rm go; {UNTIL_GO}; printf third")
    seen = b""

    for chunk in chunks_of(worker, db, job_id):
        seen += chunk.data
        if seen.endswith((b"first\n", b"second\n")):
            assert worker.job(job_id)["state"] == "processing"
            go(worker)

    assert seen == b"first\nsecond\nthird"
    assert worker.job(job_id)["state"] == "completed"


def test_a_long_output_is_followed_through_all_its_segments(sparing: Cli, db: Database) -> None:
    lines = 60_000
    job_id = sparing.enqueue(
        f"i=0; while [ $i -lt 12 ]; do seq -f %07g $((i * 5000)) $((i * 5000 + 4999)); i=$((i + 1)); sleep 0.15; done; "
        f"{UNTIL_GO}; echo end"
    )
    seen, at_end = b"", b"%07d\n" % (lines - 1)

    for chunk in chunks_of(sparing, db, job_id):
        seen += chunk.data
        if seen.endswith(at_end):
            go(sparing)

    assert_exact(seen, b"".join(b"%07d\n" % number for number in range(lines)) + b"end\n")
    assert len(seen) > 128 << 10  # more than is kept: it was seen while it was there


def test_output_that_comes_faster_than_it_is_read_is_left_out_and_counted(sparing: Cli, db: Database) -> None:
    job_id = sparing.enqueue(f"echo begin; {UNTIL_GO}; seq -f %07g 0 99999")
    seen = b""

    for chunk in chunks_of(sparing, db, job_id):
        seen += chunk.data
        if seen == b"begin\n":
            go(sparing)
            sparing.wait_for_state(job_id, "completed")

    assert NOTICE.search(seen)
    assert_exact(seen, b"begin\n" + b"".join(b"%07d\n" % number for number in range(100_000)))


def test_a_job_is_followed_from_run_to_run_until_it_is_dead(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue(
        "--max-retries",
        "2",
        "--backoff-base",
        "0",
        "echo run $QUEUECTL_RUN; [ $QUEUECTL_RUN = 2 ] && sleep 0.4; exit 1",
    )

    seen = text_of(chunks_of(worker, db, job_id))

    assert seen == {(number, "output"): b"run %d\n" % number for number in (1, 2, 3)}
    assert worker.job(job_id)["state"] == "dead"


def test_a_job_that_is_cancelled_while_followed_is_shown_to_its_last_byte(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue("trap 'echo bye; exit' TERM; echo hello; while :; do sleep 0.05; done")
    seen = b""

    for chunk in chunks_of(worker, db, job_id):
        seen += chunk.data
        if seen == b"hello\n":
            worker.ok("cancel", job_id)

    assert seen.startswith(b"hello\n")
    assert seen.endswith(b"bye\n")
    assert worker.job(job_id)["state"] == "cancelled"


def test_a_job_that_waits_is_told_of_once_and_left_when_it_is_deleted(cli: Cli, db: Database) -> None:
    job_id = cli.enqueue("--delay", "1h", "true")
    told: list[State] = []

    def delete(job: Job) -> None:
        told.append(job.state)
        cli.ok("delete", job_id)

    assert list(chunks_of(cli, db, job_id, on_wait=delete)) == []
    assert told == [State.SCHEDULED]


@on_sqlite
def test_a_wait_is_told_of_also_while_other_jobs_change_all_the_time(cli: Cli, db: Database) -> None:
    job_id = cli.enqueue("--delay", "1h", "true")
    is_told = threading.Event()

    def change() -> None:
        while not is_told.wait(0.001):
            wake.touch(cli.target.home.changed)

    def delete(_job: Job) -> None:
        is_told.set()
        cli.ok("delete", job_id)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        assert list(chunks_of(cli, db, job_id, on_wait=delete)) == []
    finally:
        is_told.set()
        changing.join()


def test_a_job_that_is_cancelled_before_it_ran_has_nothing_to_show(cli: Cli, db: Database) -> None:
    job_id = cli.enqueue("true")
    cli.ok("cancel", job_id)

    assert list(chunks_of(cli, db, job_id)) == []


def test_a_worker_that_is_killed_while_followed_is_followed_into_the_next_run(sparing: Cli, db: Database) -> None:
    job_id = sparing.enqueue(
        "echo run $QUEUECTL_RUN; [ $QUEUECTL_RUN = 2 ] || { seq -f %07g 0 9999; echo here; sleep 60; }"
    )
    printed = b"run 1\n" + b"".join(b"%07d\n" % number for number in range(10_000)) + b"here\n"
    seen = {1: b"", 2: b""}

    for chunk in chunks_of(sparing, db, job_id):
        seen[chunk.run] += chunk.data
        if chunk.run == 1 and seen[1].endswith(b"here\n"):
            os.kill(int(str(sparing.json("worker", "list")[0]["pid"])), signal.SIGKILL)

    assert_exact(seen[1], printed)
    assert seen[2] == b"run 2\n"


def test_a_run_whose_worker_is_dead_is_told_of_and_followed_once_it_is_rescued(cli: Cli, db: Database) -> None:
    job_id = cli.enqueue("echo again")
    add_dead_worker(db, cli.target.home.run)
    claim_one(db, "w1")
    told: list[State] = []

    def rescue(job: Job) -> None:
        told.append(job.state)
        if job.state is State.PROCESSING:
            cli.ok("worker", "start", "-d")

    seen = text_of(chunks_of(cli, db, job_id, on_wait=rescue))

    assert told[0] is State.PROCESSING
    assert seen == {(2, "output"): b"again\n"}


def test_a_job_that_has_ended_is_shown_from_the_run_asked_for_to_the_run_asked_for(cli: Cli, db: Database) -> None:
    job_id = cli.enqueue("--max-retries", "2", "--backoff-base", "0", "echo a; echo run $QUEUECTL_RUN; exit 1")
    cli.drain()

    runs = {number: b"a\nrun %d\n" % number for number in (1, 2, 3)}
    assert text_of(chunks_of(cli, db, job_id)) == {(number, "output"): text for number, text in runs.items()}
    assert text_of(chunks_of(cli, db, job_id, from_run=3)) == {(3, "output"): runs[3]}
    assert text_of(chunks_of(cli, db, job_id, from_run=2, until_run=2)) == {(2, "output"): runs[2]}
    assert text_of(chunks_of(cli, db, job_id, from_run=2, lines=1)) == {
        (2, "output"): b"run 2\n", (3, "output"): runs[3],
    }  # fmt: skip


def test_a_run_is_followed_alone_though_the_job_goes_on(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue("--backoff-base", "100", "--max-retries", "1", f"echo one; {UNTIL_GO}; echo two; exit 1")
    seen = b""

    for chunk in chunks_of(worker, db, job_id, from_run=1, until_run=1):
        seen += chunk.data
        go(worker)

    assert seen == b"one\ntwo\n"
    assert worker.job(job_id)["state"] == "failed"


def test_following_begins_with_the_last_lines_of_what_is_there(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue(f"seq 5000; {UNTIL_GO}; echo more")
    wait_for(lambda: size_of(worker, db, job_id) == 23_893, "all lines in the file")
    seen = b""

    for chunk in chunks_of(worker, db, job_id, lines=2):
        seen += chunk.data
        go(worker)

    assert seen == b"4999\n5000\nmore\n"


def test_the_streams_of_a_split_job_are_followed_apart(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue("--split-output", f"echo out; echo err >&2; {UNTIL_GO}; echo err2 >&2; echo out2")
    seen: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    for chunk in chunks_of(worker, db, job_id):
        seen[chunk.stream] += chunk.data
        if seen == {"stdout": b"out\n", "stderr": b"err\n"}:
            go(worker)

    assert seen == {"stdout": b"out\nout2\n", "stderr": b"err\nerr2\n"}
    for stream, text in seen.items():
        assert text_of(chunks_of(worker, db, job_id, streams=frozenset({stream}))) == {(1, stream): text}


def test_a_stream_of_a_job_that_keeps_both_together_is_refused(cli: Cli, db: Database) -> None:
    waiting = cli.enqueue("--delay", "1h", "true")
    done = cli.enqueue("true")
    cli.drain()

    for job_id in (waiting, done):
        with pytest.raises(Refused, match="keeps stdout and stderr together"):
            list(chunks_of(cli, db, job_id, streams=frozenset({"stderr"})))


@on_postgres
def test_a_run_on_another_host_is_told_of_and_its_end_is_shown_when_it_ends(target: Target, db: Database) -> None:
    job = add_job(db)
    add_worker(db, "w1", host="far")
    claim = claim_one(db, "w1")
    said: list[object] = []
    other = connect(target)

    def end(attempt: Attempt) -> None:
        said.append(attempt.host)
        report = Report(outcome=Outcome.exited(0), output_bytes=1000, output_file="0/1.1.log", output_tail=b"the end\n")
        settle_and_claim(other, Holder(taker=Taker(worker_id="w1"), host="far"), [(claim, report)], 0, {})

    seen = text_of(
        follow(target, db, job.seq, on_elsewhere=end, on_cut=lambda attempt, stream: said.append((attempt.run, stream)))
    )
    other.close()

    assert seen == {(1, "output"): b"the end\n"}
    assert said == ["far", (1, "output")]


@on_postgres
def test_a_run_of_a_worker_with_another_home_on_this_host_is_shown_as_it_comes(
    worker: Cli, db: Database, tmp_path: Path
) -> None:
    home = worker.target.home.replace(root=str(tmp_path / "second"))
    job_id = worker.enqueue(f"echo one; {UNTIL_GO}; seq 5000")
    seen = b""

    for chunk in follow(worker.target.replace(home=home), db, find(db, job_id).seq):
        seen += chunk.data
        if seen == b"one\n":
            go(worker)

    assert seen == b"one\n" + b"".join(b"%d\n" % number for number in range(1, 5001))


def test_output_as_it_is_now_is_not_waited_for(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue(f"seq 5000; {UNTIL_GO}")
    wait_for(lambda: size_of(worker, db, job_id) == 23_893, "all lines in the file")
    job = find(db, job_id)
    (run,) = db.read(lambda tx: attempts.runs_of(tx, job))

    whole = b"".join(chunk.data for chunk in output_of(worker.target, db, job, run))
    last = b"".join(chunk.data for chunk in output_of(worker.target, db, job, run, lines=1))

    assert whole == b"".join(b"%d\n" % number for number in range(1, 5001))
    assert last == b"5000\n"


def test_output_of_a_command_that_never_rests_has_an_end(sparing: Cli, db: Database) -> None:
    job_id = sparing.enqueue("yes")
    wait_for(lambda: size_of(sparing, db, job_id) > 1 << 20, "much output")
    job = find(db, job_id)
    (run,) = db.read(lambda tx: attempts.runs_of(tx, job))

    assert sum(len(chunk.data) for chunk in output_of(sparing.target, db, job, run)) > 0


def test_a_run_is_picked_by_its_number_or_the_newest_with_an_attempt_number(db: Database) -> None:
    job = add_job(db)
    add_worker(db, "w1")
    for outcome in (Outcome.handed_back(), Outcome.exited(1)):
        claim = claim_one(db, "w1")
        settle_and_claim(
            db, Holder(taker=Taker(worker_id="w1"), host="here"), [(claim, Report(outcome=outcome))], 0, {}
        )
    runs = db.read(lambda tx: attempts.runs_of(tx, job))

    assert pick_run(job, runs, run=1).run == 1
    assert pick_run(job, runs, attempt=1).run == 2
    with pytest.raises(NotFound, match="has no attempt 2"):
        pick_run(job, runs, attempt=2)


def test_nothing_is_left_open_when_the_follower_is_left(worker: Cli, db: Database) -> None:
    job_id = worker.enqueue(f"seq 5000; {UNTIL_GO}")
    path = Path(log_path(worker.target.home, find(db, job_id).seq, 1))
    chunks = chunks_of(worker, db, job_id)

    next(chunks)
    held = [fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, path)]
    chunks.close()  # type: ignore[attr-defined]

    assert held
    assert [fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, path)] == []
    assert db.read(lambda tx: tx.rows("SELECT id FROM watchers")) == []


def _leads_to(fd: str, path: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == str(path)
    except OSError:
        return False


def size_of(cli: Cli, db: Database, job_id: str) -> int:
    """Return how much a run under way has printed into its file."""
    job = find(db, job_id)
    runs = db.read(lambda tx: measured(cli.target, tx, attempts.runs_of(tx, job)))
    return runs[-1].output_bytes if runs else 0
