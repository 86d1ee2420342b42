"""Errors over HTTP: the right status, a document for programs, a page for people, and nothing told of the inside."""

import http.client
import json
import socket
from typing import Any

import pytest

from queuectl.actions.connect import Target
from queuectl.store import overview
from queuectl.web.reach import Reach
from tests.web.loops import run_apart
from tests.web.serving import Site, serving
from tests.web.tokens import bearer, token_of

PROBLEM = "application/problem+json"


def test_a_path_that_is_not_there_is_a_problem_for_a_program_and_a_page_for_a_person(local_site: Site) -> None:
    told = local_site.get("/api/v1/nothing", Accept="text/html")
    page = local_site.get("/nothing<b>", Accept="text/html,*/*")

    assert (told.status, told.headers["content-type"]) == (404, PROBLEM)
    assert told.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "there is nothing at /api/v1/nothing",
        "hint": "what there is: /openapi.json",
    }
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is nothing at /nothing&lt;b&gt;" in page.text


def test_a_wrong_method_is_told_which_ones_there_are(local_site: Site) -> None:
    answer = local_site.ask("DELETE", "/api/v1/jobs")

    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST, HEAD"
    assert answer.json()["detail"] == "DELETE is not for /api/v1/jobs"


def test_a_parameter_out_of_range_is_refused_with_its_value(local_site: Site) -> None:
    answers = [local_site.get(f"/api/v1/jobs?{query}") for query in ("limit=0", "limit=x", "reverse=maybe")]

    assert [answer.status for answer in answers] == [422, 422, 422]
    assert [answer.json()["detail"] for answer in answers] == [
        'limit must be greater than or equal to 1, not "0"',
        'limit must be a valid integer, not "x"',
        'reverse must be a valid boolean, not "maybe"',
    ]


def test_an_unknown_query_parameter_is_refused_with_the_nearest(local_site: Site) -> None:
    answer = local_site.get("/api/v1/jobs?stat=dead")

    assert (answer.status, answer.headers["content-type"]) == (422, PROBLEM)
    assert answer.json()["detail"] == "unknown query parameter 'stat'; did you mean 'state'?"
    assert local_site.get("/api/v1/queues?a=b").json()["hint"] == "it takes none"


@pytest.mark.parametrize(
    "path, told",
    [
        ("/api/v1/jobs?limit=1&limit=2", "query parameter limit is given 2 times"),
        ("/api/v1/jobs?state=dead&tag=a&state=failed&state=dead", "query parameter state is given 3 times"),
        ("/api/v1/dlq?queue=a&queue=a", "query parameter queue is given 2 times"),
        ("/api/v1/stats?range=1h&range=24h", "query parameter range is given 2 times"),
    ],
)
def test_a_query_parameter_that_takes_one_value_is_given_once(local_site: Site, path: str, told: str) -> None:
    answer = local_site.get(path)

    assert (answer.status, answer.json()["detail"]) == (422, told)


def test_a_query_parameter_that_takes_many_values_is_repeated(local_site: Site) -> None:
    assert local_site.get("/api/v1/jobs?tag=a&tag=b&id=1&id=2").status == 404
    assert local_site.get("/api/v1/dlq?tag=a&tag=b").status == 200


@pytest.mark.parametrize(
    "body, status, told",
    [
        (b"{", 400, "broken JSON at line 1, column 2"),
        (b'{"priority": NaN}', 400, "NaN is not JSON"),
        (b"\xff\xfe", 400, "not valid UTF-8 at byte 0"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"priority": ' + b"9" * 10_000 + b"}", 400, "a number has too many digits"),
        (b'{"command": "a", "id": "x", "command": "b"}', 400, 'an object has the name "command" more than once'),
        (b'{"command": "a", "env": {"A": "1", "A": "1"}}', 400, 'an object has the name "A" more than once'),
        (b"[1]", 422, "the body is to be a JSON object"),
        (b'{"command": "a\\u0000b"}', 422, "a text holds a NUL character"),
        (b'{"command": "a\\ud800b"}', 422, "half a character"),
        (b'{"command": "true", "priority": 1e400}', 422, "priority"),
        (b'{"command": "true", "priority": ' + b"9" * 4000 + b"}", 422, "priority"),
        (b'{"comand": "true"}', 422, "unknown field 'comand'; did you mean 'command'?"),
        (b"{}", 422, "the job has no command"),
        (b"", 422, "the job has no command"),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value[:20]),
)
def test_a_bad_body_is_a_client_error_that_says_what_is_wrong(
    local_site: Site, body: bytes, status: int, told: str
) -> None:
    answer = local_site.post("/api/v1/jobs", body)

    assert (answer.status, answer.headers["content-type"]) == (status, PROBLEM)
    assert told in answer.json()["detail"]
    assert local_site.get("/api/v1/jobs").json()["jobs"] == []


def test_a_body_nested_as_deeply_as_can_be_read_is_refused_before_anybody_has_to_write_it_again(
    local_site: Site,
) -> None:
    for path, body in (
        ("/api/v1/jobs", b'{"command": %s}'),
        ("/api/v1/jobs/bulk", b'[{"command": "true", "env": {"A": %s}}]'),
        ("/api/v1/jobs/cancel", b'{"dry_run": %s}'),
    ):
        answers = {local_site.post(path, body % (b"[" * depth + b"]" * depth)).status for depth in range(960, 1000, 2)}
        assert answers == {400}, path
    fitting = local_site.post("/api/v1/jobs/cancel", b'{"dry_run": %s}' % (b"[" * 60 + b"]" * 60))
    assert "dry_run is to be true or false" in fitting.json()["detail"]


def test_a_body_of_another_kind_is_refused(local_site: Site) -> None:
    form = local_site.ask(
        "POST", "/api/v1/jobs", b"command=true", {"Content-Type": "application/x-www-form-urlencoded"}
    )
    text = local_site.ask("POST", "/api/v1/jobs", b"{}", {"Content-Type": "text/plain"})

    assert (form.status, text.status) == (415, 415)
    assert "application/json" in form.json()["hint"]


def test_a_body_that_is_too_large_is_refused_also_when_nobody_said_how_long_it_is(local_site: Site) -> None:
    body = b'{"command": "' + b"x" * 2_000_000 + b'"}'

    told = local_site.post("/api/v1/jobs", body)
    untold = _chunked(local_site, "/api/v1/jobs", body)
    bulk = local_site.post("/api/v1/jobs/bulk", b"[" + body + b"]")

    assert (told.status, untold) == (413, 413)
    assert told.json()["detail"] == "the body has more than 2,000,000 bytes"
    assert bulk.status == 422  # such a body is taken there, but not such a command


def test_an_address_with_a_nul_is_refused(local_site: Site) -> None:
    assert local_site.get("/api/v1/jobs/a%00b").status == 400
    assert local_site.get("/api/v1/jobs?text=%00").status == 400
    assert local_site.get("/api/v1/jobs/%ff%fe").status == 404


def test_head_answers_as_get_does_without_the_body(local_site: Site) -> None:
    got, head = local_site.get("/api/v1/queues"), local_site.ask("HEAD", "/api/v1/queues")

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(got.body))
    assert local_site.ask("HEAD", "/api/v1/nothing").status == 404


def test_an_error_nobody_foresaw_is_logged_and_tells_nothing_of_the_inside(
    local_site: Site, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(_tx: object) -> None:
        raise RuntimeError("the secret of the inside")

    monkeypatch.setattr(overview, "all_queues", broken)

    told = local_site.get("/api/v1/queues")
    page = local_site.get("/queues", Accept="text/html")

    assert (told.status, told.headers["content-type"], page.status) == (500, PROBLEM, 500)
    assert "inside queuectl" in page.text
    assert "secret" not in told.text + page.text
    assert "RuntimeError: the secret of the inside" in capfd.readouterr().err


def test_an_answer_that_broke_off_is_not_followed_by_another() -> None:
    from starlette.responses import Response

    from queuectl.errors import StoreUnreachable
    from queuectl.web.edge import Edge

    sent: list[str] = []

    async def send(message: Any) -> None:  # noqa: ANN401 - whatever the server is told
        sent.append(message["type"])

    async def receive() -> Any:  # noqa: ANN401
        return {"type": "http.request", "body": b"", "more_body": False}

    async def breaks(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await Response("half")(scope, receive, send)
        raise StoreUnreachable("gone")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")], "query_string": b""}
    with pytest.raises(StoreUnreachable):
        run_apart(Edge(breaks)(scope, receive, send))
    assert sent == ["http.response.start", "http.response.body"]


def test_a_store_that_cannot_be_used_is_unavailable_and_says_when_to_ask_again(
    local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queuectl.errors import StoreBusy

    def locked(_tx: object) -> None:
        raise StoreBusy("the file was locked", hint="try again in a moment")

    monkeypatch.setattr(overview, "all_queues", locked)
    answer = local_site.get("/api/v1/queues")

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["hint"] == "try again in a moment"


BOUNDS = [("/api/v1/jobs", 2_000_000), ("/api/v1/jobs/bulk", 32_000_000)]


@pytest.mark.parametrize("path, most", BOUNDS)
def test_a_body_that_says_it_is_too_long_is_refused_before_it_comes(local_site: Site, path: str, most: int) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {most + 1}"
    with socket.create_connection(("127.0.0.1", local_site.port), timeout=10) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode())

        assert connection.makefile("rb").readline().split()[1] == b"413"


@pytest.mark.parametrize("path, most", BOUNDS)
def test_a_body_is_taken_up_to_its_bound_whether_its_length_was_told_or_not(
    local_site: Site, path: str, most: int
) -> None:
    job = b'{"command": "true"}' if path.endswith("/jobs") else b'[{"command": "true"}]'
    fitting, longer = job.ljust(most), job.ljust(most + 1)

    assert local_site.post(path, fitting).status == 201
    assert _chunked(local_site, path, fitting) == 201
    assert _chunked(local_site, path, longer) == 413
    assert len(local_site.get("/api/v1/jobs").json()["jobs"]) == 2


def test_below_a_root_path_the_bounds_are_the_same(sqlite_target: Target) -> None:
    bearing = bearer(token_of(sqlite_target, "submit"))
    longer = b'{"command": "true"}'.ljust(2_000_001)
    with serving(sqlite_target, Reach(root_path="/q", is_proxied=True)) as site:
        for prefix in ("", "/q"):
            assert site.post(f"{prefix}/api/v1/jobs/bulk", b"[" + longer + b"]", **bearing).status == 201
            assert site.post(f"{prefix}/api/v1/jobs", longer, **bearing).status == 413


def _chunked(site: Site, path: str, body: bytes) -> int:
    """Send a body in pieces without its length; return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))
    try:
        try:
            connection.request("POST", path, pieces, {"Content-Type": "application/json"}, encode_chunked=True)
        except BrokenPipeError:
            pass  # it has heard enough
        answer = connection.getresponse()
        assert json.loads(answer.read()).get("status", answer.status) == answer.status
        return answer.status
    finally:
        connection.close()
