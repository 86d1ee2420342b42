"""The pages of queues, workers, schedules, settings, audit and health, as they are answered on both databases."""

import re
from contextlib import closing
from pathlib import Path

from queuectl.actions.connect import connect
from queuectl.actions.control import pause_queue
from queuectl.model.states import State
from tests.program import Cli, running_cli, wait_for
from tests.store.rows import add_job
from tests.web.serving import Site

HOSTILE = "<script>document.title='owned'</script>"
PAGES = ("/queues", "/workers", "/schedules", "/settings", "/audit", "/health", "/dlq", "/schedules?add=1")


def page(site: Site, path: str) -> str:
    """Return a page that must be there."""
    answer = site.get(path)
    assert answer.status == 200, f"{path}: {answer.status} {answer.text[-300:]}"
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def counted_dlq(site: Site) -> str:
    """Return the page of the DLQ once its groups are counted; before that it shows the newest deaths alone."""
    return wait_for(lambda: text if "card group" in (text := page(site, "/dlq")) else None, "the groups are counted")


def workers_with_usage(site: Site) -> str:
    """Return the page of workers once what a command takes is known; a claim is on record before its process is."""
    return wait_for(lambda: text if "CPU" in (text := page(site, "/workers")) else None, "what the command takes")


def test_every_page_of_an_empty_store_says_what_to_do(site: Site) -> None:
    pages = {path: page(site, path) for path in PAGES}

    assert "queuectl worker start" in pages["/workers"]
    assert "queuectl schedule add" in pages["/schedules"]
    assert "queuectl enqueue" in pages["/queues"]
    assert "Nothing is on record yet" in pages["/audit"]
    assert "max_retries" in pages["/settings"]
    assert ("SQLite" if site.target.sqlite_path else "PostgreSQL") in pages["/health"]


def test_pages_show_what_is_there_and_never_run_what_people_wrote(site: Site, cli: Cli) -> None:
    cli.ok("queue", "set", "mail", "--concurrency", "2", "--rate", "10/m")
    cli.ok("queue", "pause", "media")
    cli.ok("limit", "set", "api", "3")
    cli.ok("schedule", "add", "beat", "*/5 * * * mon-fri", "--env", "KEY=hunter2", f"echo {HOSTILE}")
    cli.ok("config", "set", "max_retries", "7")
    long = cli.enqueue("--queue", "mail", "--mutex", "db", f"echo '{HOSTILE}'; sleep 60")
    cli.start("worker", "start", "--queue", "mail", "--label", "gpu")
    cli.wait_for_state(long, "processing")

    queues, queue = page(site, "/queues"), page(site, "/queues/mail")
    workers, schedules = workers_with_usage(site), page(site, "/schedules")
    schedule, edit = page(site, "/schedules/beat"), page(site, "/schedules/beat?edit=1")

    assert "/jobs?state=processing&amp;queue=mail" in queues
    assert "paused" in queues
    assert "api" in queues
    assert "one start every 6.00s" in queue
    assert "gpu" in workers
    assert "every 5 minutes, Monday to Friday" in schedules
    assert 'class="time-line"' in schedules
    assert "KEY=•••" in schedule
    assert "queue pause" in page(site, "/audit")
    assert "7" in page(site, "/settings")
    for text in (queues, queue, workers, schedules, schedule, edit):
        assert HOSTILE not in text
        assert "hunter2" not in text


def test_nothing_that_people_wrote_turns_the_text_around_it(local_site: Site, tmp_path: Path) -> None:
    turned = "\u202eevil\u2066"
    with running_cli(local_site.target, tmp_path) as cli:
        cli.ok("schedule", "add", "beat", "@yearly", "--cwd", f"/nowhere/{turned}", f"echo {turned}")
        cli.enqueue("--max-retries", "0", "--cwd", f"/nowhere/{turned}", f"echo {turned}")
        cli.drain()
        cli.ok("dlq", "retry", "--all", "--error", turned)
        cli.drain()
        long = cli.enqueue("--queue", "mail", f"sleep 60 # {turned}")
        cli.start("worker", "start", "--queue", "mail")
        cli.wait_for_state(long, "processing")
        counted_dlq(local_site)

        for path in ("/dlq", "/workers", "/schedules", "/schedules/beat", "/audit", "/settings"):
            text = re.sub(r"data-[a-z]+=(\"[^\"]*\"|'[^']*')|title=\"\\$[^\"]*\"", "", page(local_site, path))
            assert not re.search("[\u202e\u2066]", text), path  # but in commands that are there to be copied
            assert "\\u202eevil" in text or path == "/settings", path


def test_a_limit_names_some_of_the_jobs_that_hold_it_the_first_to_start_first(site: Site) -> None:
    with closing(connect(site.target)) as database:
        for number in range(7):
            limits = '["limit:api", "mutex:db"]' if number == 6 else '["limit:api"]'
            add_job(database, State.PROCESSING, given_id=f"job{number}", limits=limits, started_at=100 - number)

    text = page(site, "/queues")

    api, db = (re.search(rf'data-key="{key}".*?Held by">(.*?)</td>', text) for key in ("limit:api", "mutex:db"))
    assert api is not None
    assert re.findall(r'href="/jobs/(\w+)"', api[1]) == ["job6", "job5", "job4", "job3", "job2"]
    assert "and 2 more" in api[1]
    assert db is not None
    assert re.findall(r'href="/jobs/(\w+)"', db[1]) == ["job6"]


def test_what_is_not_there_is_said_to_be_missing(site: Site) -> None:
    for path in ("/queues/none", "/schedules/none"):
        assert site.get(path).status == 404


def test_what_the_address_of_the_dlq_asks_for_in_vain_is_refused(local_site: Site) -> None:
    answer = local_site.get("/dlq?range=9h")

    assert answer.status == 422
    assert answer.json()["detail"] == "unknown filter 'range'"
    assert answer.json()["hint"] == "known: queue, canary, error"


def test_the_audit_trail_is_filtered_and_paged(site: Site, cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="".join(f"true {number}\n" for number in range(3)))
    with closing(connect(site.target)) as database:
        for number in range(102):
            pause_queue(database, f"q{number}", who="somebody@elsewhere")

    first = page(site, "/audit?action=queue")
    assert "/queues/q101" in first
    assert "/queues/q1<" not in first
    older = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    second = page(site, older)

    assert ">q1</a>" in second
    assert ">q101</a>" not in second
    assert "enqueue" not in second.split("<tbody")[1]
    assert "No such act is on record" in page(site, "/audit?who=nobody-at-all")
    assert "bad time" in page(site, "/audit?since=whenever")


def test_a_read_only_visitor_sees_acts_that_cannot_be_pressed_and_is_refused(site: Site, cli: Cli) -> None:
    cli.ok("queue", "pause", "mail")
    cli.ok("schedule", "add", "beat", "--every", "1h", "true")
    cli.ok("config", "set", "max_retries", "7")
    dead = cli.enqueue("--max-retries", "0", "exit 3")
    cli.start("worker", "start")
    cli.wait_for_state(dead, "dead")
    bearer = f"Bearer {cli.json('token', 'add', 'looker', '--role', 'read')[0]['token']}"

    for path in (
        "/dlq", "/queues", "/queues/mail", "/workers", "/schedules", "/schedules/beat", "/settings", "/audit",
        "/jobs", f"/jobs/{dead}",
    ):  # fmt: skip
        text = site.get(path, Authorization=bearer).text
        acts = re.findall(r"<button[^>]*(?:data-act|data-dialog|data-try)[^>]*>", text)
        assert [act for act in acts if "disabled" not in act] == [], path
        assert "Tokens" not in text
    text = site.get(f"/jobs/{dead}", Authorization=bearer).text
    for name, role in (("Retry", "operate"), ("Edit", "operate"), ("Clone", "submit"), ("Delete", "admin")):
        assert re.search(
            rf'<button[^>]*disabled\s+title="needs the role {role}; yours is read"\s*>{name}</button>', text
        ), name
    for path in ("/queues/mail/resume", "/schedules/beat/run", "/workers/stop", "/dlq/retry", "/dlq/purge"):
        assert site.post(f"/api/v1{path}", {}, Authorization=bearer).status == 403


def test_the_count_of_a_group_leads_to_exactly_the_jobs_it_counts(site: Site, cli: Cli) -> None:
    for code in (1, 1, 12, 120):
        cli.enqueue("--queue", "mail", "--max-retries", "0", f"echo '{HOSTILE}'; exit {code}")
    cli.enqueue("--max-retries", "0", "--cwd", "/no/<i>such</i>/folder", "true")
    cli.drain()

    shown = counted_dlq(site)
    [path] = re.findall(r'class="count" href="(/jobs[^"]*error=exit\+code\+1)"', shown)
    listed = page(site, path.replace("&amp;", "&"))

    assert HOSTILE not in shown
    assert "<i>such" not in shown
    assert "&lt;script&gt;" in shown  # the end of its output
    assert sorted(set(re.findall(r'href="/jobs/(\d+)"', listed))) == ["1", "2"]
    found = site.get("/api/v1/jobs?state=dead&error=exit+code+1&count=true").json()
    assert found["total"] == 2
    assert "The dead letter queue is empty" not in shown
    assert "No dead job in queue other" in page(site, "/dlq?queue=other")


def test_a_well_known_exit_code_is_explained_beside_its_group(site: Site, cli: Cli) -> None:
    dead = cli.enqueue("--max-retries", "0", "no-such-program-anywhere")
    cli.enqueue("--max-retries", "0", "exit 3")
    cli.drain()

    shown = counted_dlq(site)

    assert shown.count('class="means"') == 1
    assert "the command was not found" in shown
    assert "no-such-program-anywhere: not found" in shown  # how the output of the sample ended
    job = page(site, f"/jobs/{dead}")
    assert "exit code 127 (as a shell says: no such command)" in job
    assert "the command was not found" not in job  # it is said once
    assert re.search(r"exit code 127 +the command was not found", cli.ok("dlq", "groups"))
    assert [each["means"] for each in cli.json("dlq", "groups")] == ["the command was not found", None]
    assert "MEANS" not in cli.ok("dlq", "groups", "--error", "exit code 3")
