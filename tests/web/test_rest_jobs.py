"""Jobs over REST: added once, listed page by page, shown as the command line shows them, and acted on."""

import json
import threading
from urllib.parse import quote

import pytest

from queuectl.actions.connect import connect
from queuectl.actions.upkeep import AUTOMATIC, retention
from queuectl.actions.upkeep import _Pruner as Pruner
from queuectl.settings import resolve
from queuectl.store import audit, requests
from tests.program import Cli
from tests.web.serving import Answer, Site

JOBS = "/api/v1/jobs"
LINES = {"Content-Type": "application/x-ndjson"}


def test_a_job_is_added_shown_and_audited_as_the_command_line_would(site: Site, cli: Cli) -> None:
    fields = {"id": "thumbs", "command": "convert a.png", "queue": "images", "tags": ["red"], "env": {"A": "b <c>"}}

    added = site.post(JOBS, fields)

    assert (added.status, added.json()) == (201, {"id": "thumbs", "result": "added"})
    assert added.headers["location"] == f"{JOBS}/thumbs"
    shown = site.get(added.headers["location"]).json()
    assert shown == cli.job("thumbs")
    assert (shown["queue"], shown["env"]) == ("images", {"A": "b <c>"})
    assert site.get(f"{JOBS}/1/why").json() == cli.json("why", "thumbs")[0]
    assert site.get(f"{JOBS}/last/graph").json() == cli.json("graph", "thumbs")[0]
    assert site.get(f"{JOBS}?state=pending").json() == {"jobs": cli.json("list"), "next": None}
    assert site.get(f"{JOBS}/1/attempts").json() == {"runs": []}
    [act] = cli.json("audit")
    assert (act["action"], act["count"]) == ("enqueue", 1)
    taken = site.post(JOBS, fields)
    assert (taken.status, taken.json()["detail"]) == (409, "job 'thumbs' exists already")
    assert site.get(f"{JOBS}/thumb").json()["detail"] == "no job 'thumb'; did you mean 'thumbs'?"
    assert site.get(f"{JOBS}/3-9").status == 404


def test_many_are_added_all_or_none_and_the_first_bad_one_is_named(site: Site) -> None:
    array = site.post(f"{JOBS}/bulk", [{"id": "a", "command": "true"}, {"command": "true", "after": ["a"]}])
    lines = site.ask("POST", f"{JOBS}/bulk", b'{"command": "one"}\n\n{"command": "two"}\r\n', LINES)

    assert (array.status, lines.status) == (201, 201)
    assert array.json() == {"jobs": [{"id": "a", "result": "added"}, {"id": "2", "result": "added"}]}
    assert [each["id"] for each in lines.json()["jobs"]] == ["3", "4"]
    bad = site.post(f"{JOBS}/bulk", [{"command": "true"}, {"comand": "true"}])
    assert bad.status == 422
    assert bad.json()["detail"] == "job 2: unknown field 'comand'; did you mean 'command'?"
    assert bad.json()["hint"].endswith("nothing was added")
    broken = site.ask("POST", f"{JOBS}/bulk", b'{"command": "one"}\n{"command": \n', LINES)
    assert (broken.status, broken.json()["detail"][:14]) == (400, "line 2: broken")
    assert site.post(f"{JOBS}/bulk", []).status == 422
    assert site.post(f"{JOBS}/bulk", [3]).json()["detail"] == "job 1: a job is a JSON object"
    assert site.post(f"{JOBS}/bulk", {"command": "true"}).status == 422
    assert site.ask("POST", f"{JOBS}/bulk", b"true", {"Content-Type": "text/plain"}).status == 415
    assert site.get(f"{JOBS}?count=true").json()["total"] == 4


def test_a_unique_key_answers_with_the_job_that_has_it(site: Site) -> None:
    first = site.post(JOBS, {"command": "true", "unique": "k"})
    second = site.post(JOBS, {"command": "true", "unique": "k"})

    assert (first.status, second.status) == (201, 200)
    assert second.json() == {"id": "1", "result": "attached"}
    assert second.headers["location"] == f"{JOBS}/1"


def test_a_request_with_a_key_takes_effect_once(site: Site) -> None:
    key = {"Idempotency-Key": "order 17"}
    body = b'{"command": "true"}'

    first = site.post(JOBS, body, **key)
    again = site.post(JOBS, body, **key)
    other = site.post(JOBS, b'{"command": "false"}', **key)
    many = site.post(f"{JOBS}/bulk", b"[" + body + b"]", **key)

    assert (first.status, again.status) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status, many.status) == (422, 422)
    assert "was used for another request" in other.json()["detail"]
    bad = site.post(JOBS, b'{"command": ""}', **{"Idempotency-Key": "bad"})
    mended = site.post(JOBS, b'{"command": "x"}', **{"Idempotency-Key": "bad"})
    assert (bad.status, mended.status) == (422, 201)  # what was refused left nothing behind
    assert site.get(f"{JOBS}?count=true").json()["total"] == 2


def test_of_many_at_once_with_one_key_exactly_one_adds_the_job(site: Site) -> None:
    together = threading.Barrier(8)
    answers: list[Answer] = []

    def ask() -> None:
        together.wait()
        answers.append(site.post(JOBS, b'{"command": "true"}', **{"Idempotency-Key": "once"}))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {(answer.status, answer.body) for answer in answers} == {(201, b'{"id":"1","result":"added"}')}
    assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False] + [True] * 7
    assert site.get(f"{JOBS}?count=true").json()["total"] == 1


def test_an_answer_that_was_kept_for_a_day_is_forgotten(site: Site) -> None:
    site.post(JOBS, b'{"command": "true"}', **{"Idempotency-Key": "k"})
    database = connect(site.target)
    tomorrow = 24 * 3_600_000 + 60_000

    database.read_clock = lambda now: now + tomorrow
    Pruner(database, AUTOMATIC).batch(lambda _tx: retention(resolve({}, {})[0]))

    database.read_clock = lambda now: now
    who = database.read(lambda tx: audit.newest(tx, 1))[0].who
    assert database.read(lambda tx: requests.get(tx, f"{who} k")) is None
    database.close()


@pytest.mark.parametrize("sort", ["added", "priority", "started", "finished"])
def test_pages_lead_through_all_jobs_and_a_cursor_is_of_its_order_alone(site: Site, sort: str) -> None:
    site.post(f"{JOBS}/bulk", [{"command": f"echo {n}", "priority": n % 3, "tags": ["t"]} for n in range(7)])
    site.post(f"{JOBS}/cancel", {"ids": ["2", "5"]})

    for reverse in ("false", "true"):
        seen: list[int] = []
        query = f"{JOBS}?sort={sort}&reverse={reverse}&limit=3&tag=t"
        page = site.get(query).json()
        while page["next"]:
            seen += [job["number"] for job in page["jobs"]]
            page = site.get(f"{query}&cursor={page['next']}").json()
        seen += [job["number"] for job in page["jobs"]]
        assert sorted(seen) == [1, 2, 3, 4, 5, 6, 7]

    first = site.get(f"{JOBS}?sort={sort}&limit=3").json()
    wrong = site.get(f"{JOBS}?sort={sort}&reverse=true&cursor={first['next']}")
    assert (wrong.status, "another order" in wrong.json()["detail"]) == (422, True)
    for cursor in ("x", "%F0%9F", "WyJhIl0", "W10", "bnVsbA", "WyJhZGRlZCIsMCwxZTk5LDFd"):
        assert site.get(f"{JOBS}?sort={sort}&cursor={cursor}").status == 422


def test_every_filter_of_the_command_line_finds_the_same_over_rest(site: Site, cli: Cli) -> None:
    site.post(
        f"{JOBS}/bulk",
        [
            {"id": "copy", "command": "rsync a b", "queue": "mail", "group": "g", "tags": ["x", "y"]},
            {"command": "echo ü & % +", "tags": ["x"], "hold": True},
            {"command": "sleep 9", "delay": "1h"},
            {"id": "child", "command": "true", "after": ["copy"]},
        ],
    )
    cli.ok("cancel", "3")

    for words, query in (
        (["--state", "blocked"], "state=blocked"),
        (["--state", "held,cancelled"], "state=held,cancelled"),
        (["--state", "dependent"], "state=dependent"),
        (["--queue", "mail"], "queue=mail"),
        (["--group", "g"], "group=g"),
        (["--tag", "x", "--tag", "y"], "tag=x&tag=y"),
        (["--command", "ü & % +"], f"text={quote('ü & % +')}"),
        (["--error", "cancelled"], "error=cancelled"),
        (["--since", "1h"], "since=1h"),
        (["--until", "1h"], "until=1h"),
        (["1-2", "child"], "id=1-2&id=child"),
        (["--sort", "priority", "-r", "--limit", "2"], "sort=priority&reverse=true&limit=2"),
    ):
        assert site.get(f"{JOBS}?{query}").json()["jobs"] == cli.json("list", *words), query
    for bad in (
        "state=ded",
        "state=,",
        "limit=0",
        "limit=x",
        "limit=1001",
        "sort=name",
        "since=soon",
        "queue=%20",
        "text=",
    ):
        assert site.get(f"{JOBS}?{bad}").status == 422, bad
    assert site.get(f"{JOBS}?id=99").status == 404
    assert site.get(f"{JOBS}?state=ded").json()["detail"] == "unknown state 'ded'; did you mean 'dead'?"


def test_acts_on_one_job_answer_what_the_command_line_prints(site: Site) -> None:
    site.post(JOBS, {"command": "true"})
    site.post(JOBS, {"command": "true", "after": ["1"]})

    assert site.post(f"{JOBS}/1/hold").json() == {"id": "1", "was": "pending", "result": "held"}
    assert site.post(f"{JOBS}/1/release?dry_run=true").json()["result"] == "would be: released"
    assert site.post(f"{JOBS}/1/release").json()["result"] == "released"
    assert site.post(f"{JOBS}/1/release").status == 409
    assert site.post(f"{JOBS}/1/cancel").json() == {"id": "1", "was": "pending", "result": "cancelled"}
    assert site.post(f"{JOBS}/1/cancel").status == 409
    assert site.post(f"{JOBS}/1/retry?with_dependents=true").json()["result"].endswith("and 1 job after it")
    assert site.post(f"{JOBS}/9/retry").status == 404
    edited = site.ask("PATCH", f"{JOBS}/1", {"priority": 7, "tags": ["new"], "env": {"A": "1"}})
    assert edited.json()["changes"]["priority"] == {"from": 0, "to": 7}
    back = site.ask("PATCH", f"{JOBS}/1", {"untags": ["new"], "unset_env": ["A"]})
    assert back.json()["changes"] == {"tags": {"from": ["new"], "to": []}, "env": {"from": {"A": "1"}, "to": {}}}
    unfit: list[object] = [
        {},
        {"id": "x"},
        {"prio": 1},
        {"untags": "x"},
        {"untags": [1]},
        {"no_tags": 1},
        {"priority": "high"},
    ]
    for bad in unfit:
        assert site.ask("PATCH", f"{JOBS}/1", bad).status == 422, bad
    assert site.ask("DELETE", f"{JOBS}/1").status == 409  # another waits for it
    assert site.ask("DELETE", f"{JOBS}/2").json() == {"id": "2", "was": "blocked", "result": "deleted"}
    assert site.ask("DELETE", f"{JOBS}/2").status == 404


def test_many_are_acted_on_by_a_filter_after_a_preview(site: Site) -> None:
    site.post(f"{JOBS}/bulk", [{"command": f"echo {n}", "queue": "mail" if n < 4 else "other"} for n in range(6)])
    site.post(f"{JOBS}/4/cancel")
    chosen: dict[str, object] = {"filter": {"queue": "mail"}}

    preview = site.post(f"{JOBS}/cancel", {**chosen, "dry_run": True})
    refused = site.post(f"{JOBS}/cancel", {**chosen, "max": 2})
    before = site.get(f"{JOBS}?state=cancelled&count=true").json()["total"]
    done = site.post(f"{JOBS}/cancel", {**chosen, "max": preview.json()["count"]})

    assert preview.json() == {
        "count": 3,
        "passed_by": {"cancelled": 1},
        "dry_run": True,
        "states": {"pending": 3},
        "samples": ["1", "2", "3"],
    }
    assert (refused.status, before) == (409, 1)
    assert done.json() == {"count": 3, "passed_by": {"cancelled": 1}, "dry_run": False}
    named = site.post(f"{JOBS}/retry", {"ids": ["1", "2"]}).json()
    assert [each["result"] for each in named["jobs"]] == ["has a fresh life", "has a fresh life"]
    assert site.post(f"{JOBS}/hold", {"ids": ["1", "99"]}).status == 404
    assert site.get(f"{JOBS}/1").json()["state"] == "pending"  # all or none
    assert site.post(f"{JOBS}/hold", {"ids": ["1-2"]}).json()["count"] == 2
    assert site.post(f"{JOBS}/release", {"all": True}).json()["count"] == 2
    unclear: list[object] = [{}, {"all": False}, {"all": True, **chosen}, {"ids": "1"}, {"ids": ["1"], **chosen}]
    for each in unclear:
        assert site.post(f"{JOBS}/delete", each).status == 422, each
    unusable: list[dict[str, object]] = [{"max": -1}, {"max": True}, {"dry_run": "yes"}, {"filter": []}, {"with": 1}]
    unusable += [{"filter": {"queue": 3}}, {"filter": {"que": 1}}]
    for part in unusable:
        assert site.post(f"{JOBS}/delete", {**chosen, **part}).status == 422, part
    assert site.post(f"{JOBS}/delete", {"all": True}).json()["count"] == 6


def test_a_group_is_shown_and_retried_as_a_whole(site: Site, cli: Cli) -> None:
    site.post(f"{JOBS}/bulk", [{"command": "true", "group": "nightly"}, {"command": "true", "group": "nightly"}])
    site.post(f"{JOBS}/cancel", {"filter": {"group": "nightly"}})

    assert site.get("/api/v1/groups").json() == {"groups": cli.json("status", "--groups")}
    assert site.get("/api/v1/groups/nightly").json() == cli.json("status", "--group", "nightly")[0]
    assert site.get("/api/v1/groups/nightli").json()["detail"] == "no group 'nightli'; did you mean 'nightly'?"
    assert site.post(f"{JOBS}/retry", {"filter": {"group": "nightly"}, "dry_run": True}).json()["count"] == 2
    assert site.post(f"{JOBS}/retry", {"filter": {"group": "nightly"}}).json()["count"] == 2
    assert site.post(f"{JOBS}/retry", {"filter": {"group": "none-such"}}).status == 404
    assert site.get(f"{JOBS}?group=nightly&state=pending&count=true").json()["total"] == 2


def test_what_is_huge_or_odd_is_kept_or_refused_but_never_breaks_the_server(site: Site) -> None:
    odd = "é\u2028\U0001f600 <script>alert(1)</script>\x1b[31m"
    kept = site.post(JOBS, {"command": odd, "env": {"X": odd}})

    assert site.get(f"{JOBS}/{kept.json()['id']}").json()["command"] == odd
    unfit: list[dict[str, object]] = [
        {"command": "true", "priority": 10**30},
        {"command": "true", "timeout": 1e308},
        {"command": "true", "timeout": 10**400},
        {"command": "true", "run_at": "99999-01-01"},
        {"command": ["true"]},
        {"command": "true", "env": {"": "x"}},
        {"command": "true", "tags": [[]]},
        {"command": "true", "backoff": {"backoff_base": {}}},
        {"argv": []},
        {"command": "true", "after": [{}]},
        {"command": "true", "use": {"gpu": -1}},
    ]
    for fields in unfit:
        assert site.post(JOBS, json.dumps(fields).encode()).status == 422, fields
    assert site.get(f"{JOBS}/" + "9" * 120).status == 404
    assert site.get(f"{JOBS}?id=" + "9" * 30 + "-" + "9" * 40).status == 404


def test_each_role_may_do_its_part_and_no_more(local_site: Site) -> None:
    bearers = {
        role: {
            "Authorization": f"Bearer {local_site.post('/api/v1/tokens', {'name': role, 'role': role}).json()['token']}"
        }
        for role in ("read", "submit", "operate", "admin")
    }
    asked = [
        ("GET", JOBS, None, "read"),
        ("POST", JOBS, {"command": "true"}, "submit"),
        ("POST", f"{JOBS}/bulk", [{"command": "true"}], "submit"),
        ("PATCH", f"{JOBS}/1", {"priority": 1}, "operate"),
        ("POST", f"{JOBS}/retry", {"ids": ["1"]}, "operate"),
        ("POST", f"{JOBS}/1/hold", None, "operate"),
        ("POST", f"{JOBS}/delete", {"filter": {"queue": "other"}}, "admin"),
        ("DELETE", f"{JOBS}/1", None, "admin"),
    ]
    local_site.post(JOBS, {"command": "true"})

    for method, path, body, needed in asked:
        roles = list(bearers)
        for role in roles:
            answer = local_site.ask(method, path, body, bearers[role])
            may = roles.index(role) >= roles.index(needed)
            assert (answer.status == 403) is not may, (method, path, role)
            assert may is (answer.status < 300), (method, path, role, answer.text)
