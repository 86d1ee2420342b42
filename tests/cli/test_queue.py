"""queuectl queue and queuectl limit: what is typed, what is said, and the exit codes."""

import pytest

from queuectl.actions.connect import connect
from queuectl.store import queues
from queuectl.store.database import Tx
from tests.program import Cli


def test_a_paused_queue_keeps_its_jobs_and_a_resumed_one_lets_them_run(cli: Cli) -> None:
    cli.enqueue("--id", "kept", "--queue", "mail", "true")
    cli.enqueue("--id", "free", "true")

    assert cli.ok("queue", "pause", "mail") == "mail is paused\n"
    cli.drain()
    assert (cli.job("kept")["state"], cli.job("free")["state"]) == ("pending", "completed")

    assert cli.ok("queue", "resume", "mail") == "mail is open\n"
    cli.drain()
    assert cli.job("kept")["state"] == "completed"


def test_a_worker_that_is_running_already_takes_up_a_resumed_queue(cli: Cli) -> None:
    cli.ok("queue", "pause", "default")
    cli.enqueue("--id", "kept", "true")
    cli.ok("worker", "start", "-d")

    cli.ok("queue", "resume", "default")

    cli.wait_for_state("kept", "completed")


def test_pausing_or_resuming_twice_says_so_and_is_no_error(local: Cli) -> None:
    local.ok("queue", "pause", "mail")

    assert local.ok("queue", "pause", "mail") == "mail was paused already\n"
    local.ok("queue", "resume", "mail")
    assert local.ok("queue", "resume", "mail") == "mail was open already\n"


def test_queues_are_listed_with_their_state_and_what_is_in_them(local: Cli) -> None:
    local.ok("enqueue", "--queue", "mail", "--from", "-", stdin="true\ntrue\n")
    local.enqueue("true")
    local.ok("queue", "pause", "mail")
    local.ok("queue", "set", "mail", "--concurrency", "4", "--rate", "10/m")

    header, *rows = local.ok("queue", "list").splitlines()

    assert header.split() == ["QUEUE", "STATE", "CONCURRENCY", "RATE", "PENDING", "PROCESSING", "DEAD"]
    assert rows[0].split() == ["default", "open", "-", "-", "1", "0", "0"]
    assert rows[1].split()[:2] == ["mail", "paused"]
    assert rows[1].split()[-5:] == ["0/4", "10/m", "2", "0", "0"]


def test_a_queue_may_be_paused_before_its_first_job(local: Cli) -> None:
    local.ok("queue", "pause", "future")

    local.enqueue("--queue", "future", "true")
    local.drain()

    assert local.job("1")["state"] == "pending"


@pytest.mark.parametrize(
    "words, name, value",
    [
        (("--concurrency", "4"), "concurrency", 4),
        (("--rate", "3/10s"), "rate", "3/10s"),
        (("--timeout", "5m"), "timeout", 300.0),
        (("--max-retries", "0"), "max_retries", 0),
        (("--retries", "5"), "max_retries", 5),
        (("--priority", "-3"), "priority", -3),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_every_flag_of_set_sets_and_none_takes_back(
    local: Cli, words: tuple[str, str], name: str, value: object
) -> None:
    [made] = local.json("queue", "set", "mail", *words)
    [back] = local.json("queue", "set", "mail", words[0], "none")

    assert (made["created"], made[name], made["changes"]) == (True, value, {name: {"from": None, "to": value}})
    assert (back["created"], back[name], back["changes"]) == (False, None, {name: {"from": value, "to": None}})


def test_set_says_what_it_changed_and_that_a_queue_is_new(local: Cli) -> None:
    first = local.run("queue", "set", "mail", "--concurrency", "4", "--timeout", "90")
    again = local.run("queue", "set", "mail", "--concurrency", "4")

    assert first.stdout == "mail: concurrency none -> 4, timeout none -> 1m30s\n"
    assert first.stderr == "queue mail is new: nothing was ever put into it\n"
    assert (again.stdout, again.stderr) == ("mail: is so already\n", "")
    assert local.ok("queue", "set", "mail", "--timeout", "0") == "mail: timeout 1m30s -> 0 (never stopped)\n"
    local.enqueue("--queue", "mail", "true")
    assert "\nTimeout:      none\n" in local.ok("show", "1")


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("queue", "set", "mail"), 2, "nothing to set"),
        (("queue", "set", "mail", "--concurrency", "0"), 2, "queuectl queue pause"),
        (("queue", "set", "a/b", "--concurrency", "1"), 2, "bad queue"),
        (("queue", "show", "nosuch"), 3, "no queue 'nosuch'"),
        (("queue", "delete", "nosuch"), 3, "no queue 'nosuch'"),
        (("queue", "delete", "default"), 6, "queue default holds 1 job: 1 pending"),
        (("queue", "set", "mail", "--retires", "3"), 2, "'--retries'?\n  see: queuectl queue set --help"),
        (("limit", "set", "api", "many"), 2, 'slots must be a whole number, not "many"\n  give 0 to 1000000'),
        (("limit", "set", "api"), 2, "SLOTS missing"),
        (("limit", "set", "none", "1"), 2, "limit 'none' would be no name"),
        (("limit", "show", "nosuch"), 3, "no limit 'nosuch'"),
        (("limit", "delete", "nosuch"), 3, "no limit 'nosuch'\n  list them with: queuectl limit list"),
        (("limit", "delete", "api"), 6, "limit api is named by jobs that are not over: 1"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    limited: Cli, words: tuple[str, ...], code: int, said: str
) -> None:
    done = limited.run(*words)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.fixture
def limited(local: Cli) -> Cli:
    """A store with one job that names a limit."""
    local.ok("limit", "set", "api", "2")
    local.enqueue("--limit", "api", "true")
    return local


def test_a_queue_is_shown_with_all_that_is_known_of_it(local: Cli) -> None:
    local.ok("queue", "set", "mail", "--concurrency", "4", "--rate", "10/m", "--timeout", "90", "--priority", "2")
    local.enqueue("--queue", "mail", "true")
    local.enqueue("--queue", "mail", "--needs", "gpu", "true")
    _let_no_job_start_before(local, 4_102_444_800_000)

    shown = dict(line.split(":", 1) for line in local.ok("queue", "show", "mail").splitlines())

    assert {name: value.strip() for name, value in shown.items() if name not in ("Created", "Oldest ready")} == {
        "Queue": "mail", "State": "open", "Running": "0 of 4", "Rate": "10/m, one start every 6s",
        "Next start": shown["Next start"].strip(), "Timeout": "1m30s", "Retries": "as setting max_retries says",
        "Priority": "2", "Jobs": "2 pending",
        "Workers": "none serves it; start one: queuectl worker start -d --queue mail",
        "Needs": "gpu: 1 ready, 0 workers can run them",
    }  # fmt: skip
    assert shown["Next start"].strip().startswith(("2099-", "2100-"))
    assert shown["Oldest ready"].strip().startswith("1, ready ")
    [shape] = local.json("queue", "show", "mail")
    assert [lane["needs"] for lane in shape["lanes"]] == [[], ["gpu"]]  # type: ignore[attr-defined]
    assert shape["oldest_ready"]["id"] == "1"  # type: ignore[index]


def _let_no_job_start_before(cli: Cli, at: int) -> None:
    def work(tx: Tx) -> None:
        queues.set_next_start(tx, "mail", at)

    database = connect(cli.target)
    database.write(work)
    database.close()


def test_the_workers_that_serve_a_queue_are_counted_for_what_its_jobs_need(cli: Cli) -> None:
    cli.enqueue("--id", "special", "--needs", "gpu", "--queue", "mail", "true")
    cli.ok("worker", "start", "-d", "--queue", "mail")

    [shape] = cli.json("queue", "show", "mail")

    assert len(shape["workers"]) == 1  # type: ignore[arg-type]
    assert [lane["workers"] for lane in shape["lanes"]] == [1, 0]  # type: ignore[attr-defined]


def test_an_empty_queue_is_deleted(local: Cli) -> None:
    local.ok("queue", "pause", "mail")

    assert local.ok("queue", "delete", "mail") == "mail is deleted\n"
    assert local.json("queue", "list") == []


def test_a_limit_says_who_holds_it_and_a_raised_one_lets_the_next_go(cli: Cli) -> None:
    assert cli.ok("limit", "set", "api", "1") == "api: new, 1\n"
    for name in ("first", "second", "third"):
        cli.enqueue("--id", name, "--limit", "api", "--mutex", name, "sleep 60")
    cli.ok("worker", "start", "-d", "-j", "3")
    cli.wait_for_state("first", "processing")

    [held] = cli.json("limit", "show", "api")
    assert ([job["id"] for job in held["holders"]], held["next"]) == (["first"], ["second", "third"])  # type: ignore[attr-defined]
    assert cli.ok("limit", "set", "api", "2") == "api: 1 -> 2; 1 job back in the line\n"
    cli.wait_for_state("second", "processing")
    assert cli.job("third")["state"] == "blocked"
    kinds = {(each["kind"], each["name"], each["held"], each["waiting"]) for each in cli.json("limit", "list")}
    assert kinds == {("limit", "api", 2, 1), ("mutex", "first", 1, 0), ("mutex", "second", 1, 0)}


def test_a_mutex_is_shown_by_its_own_flag(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin='{"command": "true", "mutex": "deploy"}\n' * 2)

    shown = local.ok("limit", "show", "--mutex", "deploy").splitlines()

    assert [" ".join(line.split()) for line in shown] == ["Mutex: deploy", "Held: 0 of 1", "Waiting: 2", "Next: 1, 2"]
    other = local.run("limit", "show", "deploy")
    assert (other.returncode, "see it with: queuectl limit show --mutex deploy" in other.stderr) == (3, True)


def test_a_limit_that_nobody_needs_is_deleted(local: Cli) -> None:
    local.ok("limit", "set", "api", "0")

    assert local.ok("limit", "delete", "api") == "api is deleted\n"
    assert local.json("limit", "list") == []


@pytest.mark.parametrize(
    "words, job",
    [
        (("enqueue", "true"), "1"),
        (("enqueue", '{"command": "true", "timeout": null, "priority": null, "max_retries": null}'), "1"),
    ],
    ids=["plain", "null"],
)
def test_a_job_that_says_nothing_gets_what_its_queue_says(local: Cli, words: tuple[str, ...], job: str) -> None:
    local.ok("queue", "set", "default", "--timeout", "5m", "--priority", "3", "--max-retries", "7")

    local.ok(*words)

    got = local.job(job)
    assert (got["timeout"], got["priority"], got["max_retries"]) == (300.0, 3, 7)


def test_a_job_of_run_gets_what_its_queue_says_but_for_retries(local: Cli) -> None:
    local.ok("queue", "set", "default", "--timeout", "5m", "--priority", "3", "--max-retries", "7")

    local.ok("run", "true")

    got = local.job("last")
    assert (got["timeout"], got["priority"], got["max_retries"]) == (300.0, 3, 0)
