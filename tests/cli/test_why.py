"""queuectl why, and what show, status, worker list, enqueue and run say of jobs that wait for what is not there."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from queuectl.actions.connect import connect
from queuectl.model.needs import needs_text
from queuectl.model.states import State
from queuectl.store import workers
from queuectl.store.database import Database
from tests.cli.terminal import on_terminal
from tests.program import PROGRAM, Cli
from tests.store.rows import add_job, add_worker

GPU = needs_text(["gpu"], None)
BIG = needs_text(["gpu"], {"mem": 64 << 30})
START = "queuectl worker start -d --queue default --label gpu --resource mem=64GiB"


@pytest.fixture
def store(cli: Cli) -> Iterator[Database]:
    """The store of the program under test, to write rows into it."""
    with closing(connect(cli.target)) as database:
        yield database
        database.write(workers.give_up_all)  # nobody waits for those that were never there


@pytest.fixture
def near(local: Cli) -> Iterator[Database]:
    """The same on SQLite alone."""
    with closing(connect(local.target)) as database:
        yield database
        database.write(workers.give_up_all)


def test_why_tells_every_gate_with_a_mark_who_holds_it_and_the_place_in_line(cli: Cli, store: Database) -> None:
    add_worker(store, "0123456789abcdef", slots=2)
    add_job(store, State.PROCESSING, given_id="holder", worker_id="0123456789abcdef", limits='["mutex:db"]')
    add_job(store, State.BLOCKED, given_id="waiting", limits='["mutex:db"]', parked_for="mutex:db")

    text = cli.ok("why", "waiting")

    assert (
        text
        == """\
Job waiting is blocked: it waits for mutex db: 1 of 1 taken by job holder
  ok    after        it runs after no other job
  ok    time         its time has come
  ok    hold         nobody holds it
  ok    deadline     it has none
  ok    queue        default is not paused
  ok    concurrency  default lets any number run at once
  ok    rate         default lets jobs start at any time
  WAIT  mutex db     1 of 1 taken by job holder
                     ends when job holder ends
  ok    worker       worker 012345 serves queue default
  ok    labels       it needs none
  ok    resources    it uses none
  ok    slot         1 free: worker 012345
  ok    alone        it may run beside others
Position: first in line of mutex db
"""
    )


def test_several_jobs_are_told_in_the_order_named_and_one_that_is_not_there_is_3(local: Cli, near: Database) -> None:
    add_job(near, State.COMPLETED, given_id="done", exit_code=0)
    add_job(near, State.SCHEDULED, given_id="later")

    text = local.ok("why", "last", "done")

    assert re.findall(r"^Job (.*?):", text, re.MULTILINE) == ["later is scheduled", "done is completed"]
    assert "Position: none yet; it is in no line" in text
    done = local.run("why", "later", "dnoe")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no job 'dnoe'; did you mean 'done'" in done.stderr


def test_json_names_the_holders_and_the_remedy_of_each_gate(cli: Cli, store: Database) -> None:
    add_worker(store, "0123456789abcdef", labels='["ssd"]')
    job = add_job(store, needs=BIG)

    [told] = cli.json("why", job.id)

    assert told["waits_for"] == "what no running worker has: gpu, mem=64GiB"
    assert told["remedy"] == START
    assert told["position"] == {"place": 1, "ahead": 0, "line": "queue default for gpu, mem=64GiB"}
    gates = {gate["gate"]: gate for gate in told["gates"]}  # type: ignore[attr-defined]
    assert gates["labels"] == {
        "gate": "labels",
        "open": False,
        "what": "no running worker has gpu; worker 012345 lacks gpu",
        "jobs": [],
        "workers": ["0123456789abcdef"],
        "ends": None,
        "remedy": START,
    }


def test_a_job_that_no_worker_could_ever_take_is_told_by_show_and_status(cli: Cli, store: Database) -> None:
    add_worker(store, "0123456789abcdef")
    job = add_job(store, needs=BIG)
    add_job(store, needs=GPU)
    add_job(store, needs=GPU)

    shown, text, [status] = cli.ok("show", job.id), cli.ok("status"), cli.json("status")

    assert "Waits for:    what no running worker has: gpu, mem=64GiB\n" in shown
    assert f"To change it: {START}\n" in shown
    assert "\n2 jobs of queue default wait for what no worker has: gpu; start one: " in text
    assert status["unservable"] == [
        {"queue": "default", "needs": ["gpu"], "use": {}, "jobs": 2},
        {"queue": "default", "needs": ["gpu"], "use": {"mem": 64 << 30}, "jobs": 1},
    ]


def test_status_tells_of_a_queue_that_no_worker_serves(local: Cli, near: Database) -> None:
    add_worker(near, queues='["default"]')
    add_job(near, queue="mail")
    add_job(near)

    said = local.ok("status")

    assert said.endswith(
        "\nno running worker serves queue mail, where 1 job waits; start one: queuectl worker start -d --queue mail\n"
    )


def test_show_says_what_a_job_asks_for_and_has_and_secrets_by_their_names(local: Cli, near: Database) -> None:
    add_worker(near)
    add_job(
        near, State.PROCESSING, given_id="job1", needs=BIG, limits='["limit:api", "mutex:db"]',
        units='{"mem": 68719476736, "gpu": [0, 3]}',
        launch='{"memory_bytes": 1048576, "cpu_seconds": 5, "nofile": 64, "file_size_bytes": 2048, "nice": 5,'
        ' "umask": 23, "shell": "/bin/bash", "stdin_file": "/etc/hosts", "secrets": ["TOKEN", "KEY"]}',
    )  # fmt: skip

    facts = dict(re.findall(r"^([A-Z][a-z ]+): +(.*)$", local.ok("show", "job1"), re.MULTILINE))

    assert {
        name: facts[name] for name in ("Needs", "Uses", "Mutex", "Limits", "Has", "Process", "Reads", "Secrets")
    } == {
        "Needs": "gpu",
        "Uses": "mem=64GiB",
        "Mutex": "db",
        "Limits": "api",
        "Has": "mem 64GiB; gpu 0,3",
        "Process": "memory 1MiB, cpu-seconds 5s, nofile 64, file-size 2KiB, nice 5, umask 027, shell /bin/bash",
        "Reads": "/etc/hosts",
        "Secrets": "TOKEN, KEY",
    }


def test_worker_list_shows_weights_labels_and_what_is_used_of_resources(cli: Cli, store: Database) -> None:
    add_worker(
        store, "0123456789abcdef", queues='["a", "b"]', weights='{"a": 3, "b": 1}', labels='["gpu", "ssd"]',
        resources='{"gpu": 2, "mem": 4294967296}',
    )  # fmt: skip
    add_job(store, State.PROCESSING, worker_id="0123456789abcdef", units='{"gpu": [1], "mem": 1073741824}')

    header, row = cli.ok("worker", "list").splitlines()
    [told] = cli.json("worker", "list")

    assert header.split()[3:6] == ["QUEUES", "LABELS", "RESOURCES"]
    assert row.split()[3:6] == ["a:3,b:1", "gpu,ssd", "gpu=1/2,mem=1GiB/4GiB"]
    assert (told["queues"], told["weights"], told["labels"]) == (["a", "b"], {"a": 3, "b": 1}, ["gpu", "ssd"])
    assert told["resources"] == {"gpu": {"total": 2, "used": 1}, "mem": {"total": 4 << 30, "used": 1 << 30}}


def test_workers_without_labels_and_resources_have_no_columns_for_them(local: Cli, near: Database) -> None:
    add_worker(near)

    header = local.ok("worker", "list").splitlines()[0]

    assert header.split() == ["WORKER", "PID", "HOST", "QUEUES", "SLOTS", "JOBS", "HEARTBEAT"]


def test_on_a_terminal_enqueue_warns_of_what_no_worker_has(local: Cli, near: Database) -> None:
    alone = on_terminal(local, "enqueue", "--needs", "gpu", "--use", "mem=64G", "true", columns=200)
    add_worker(near)

    seen = on_terminal(local, "enqueue", "--needs", "gpu", "--use", "mem=64G", "true", columns=200)
    plain = on_terminal(local, "enqueue", "true", columns=200)

    for each in (alone, seen):
        assert f"warning: no running worker has gpu, mem=64GiB; start one with: {START}" in each.screen
        assert each.screen.count("warning") == 1
    assert "warning" not in plain.screen


def test_a_run_that_needs_what_nobody_has_says_so_and_leaves_its_job_to_one_that_has(local: Cli) -> None:
    with subprocess.Popen(
        [PROGRAM, "run", "--needs", "gpu", "echo ran"], env=local.environ, cwd=local.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        said = process.stderr.readline()
        local.ok("worker", "start", "-d", "--label", "gpu")
        output, _ = process.communicate(timeout=60)

    assert said == (
        "job 1 waits for a worker: none is running for queue default; "
        "to change it: queuectl worker start -d --queue default --label gpu\n"
    )
    assert (process.returncode, output) == (0, "ran\n")
