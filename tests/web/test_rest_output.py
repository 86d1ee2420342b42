"""The output of jobs over REST: whole, in parts, from elsewhere, and followed while it comes."""

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queuectl.web.rest import following
from queuectl.web.rest.output import followers
from tests.program import Cli, wait_for
from tests.system.printing import count_bytes_read
from tests.web.serving import Site

JOBS = "/api/v1/jobs"
LONG = "head -c 100000 /dev/zero | tr '\\0' x"


def test_the_output_of_a_run_is_sent_whole_or_in_part(site: Site, cli: Cli) -> None:
    long_id = cli.enqueue("--id", "long", LONG)
    cli.enqueue("--id", "both", "--split-output", "echo out; echo err >&2")
    cli.enqueue("--id", "octets", "printf '\\377\\376\\000'")
    cli.enqueue("--id", "silent", "true")
    cli.enqueue("--id", "later", "--delay", "1h", "true")
    cli.drain()

    whole = site.get(f"{JOBS}/{long_id}/output")
    part = site.get(f"{JOBS}/long/output", Range="bytes=10-19")
    end = site.get(f"{JOBS}/long/output?run=1", Range="bytes=-5")
    head = site.ask("HEAD", f"{JOBS}/long/output")
    beyond = site.get(f"{JOBS}/long/output", Range="bytes=100000-")
    end_of_nothing = site.get(f"{JOBS}/silent/output", Range="bytes=-5")
    several = site.get(f"{JOBS}/long/output", Range="bytes=0-1,4-5")

    assert (whole.status, whole.body, whole.headers["queuectl-output"]) == (200, b"x" * 100_000, "whole")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"x" * 10, "bytes 10-19/100000")
    assert (end.status, end.headers["content-range"]) == (206, "bytes 99995-99999/100000")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "100000")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */100000")
    assert (end_of_nothing.status, end_of_nothing.body) == (200, b"")
    assert (several.status, len(several.body)) == (200, 100_000)
    assert site.get(f"{JOBS}/both/output").body == b"out\nerr\n"
    assert site.get(f"{JOBS}/both/output", Range="bytes=2-5").body == b"t\ner"
    assert site.get(f"{JOBS}/both/output?stream=stderr").body == b"err\n"
    octets = site.get(f"{JOBS}/octets/output?download=true")
    assert (octets.body, octets.headers["content-type"]) == (b"\xff\xfe\0", "application/octet-stream")
    assert octets.headers["content-disposition"] == 'attachment; filename="octets-run1.log"'
    assert site.get(f"{JOBS}/long/output?stream=stdout").status == 409
    assert site.get(f"{JOBS}/later/output").status == 404
    assert site.get(f"{JOBS}/long/output?run=2").status == 404
    for bad in ("run=0", "run=x", "run=1&attempt=1", "stream=both", "lines=3", "follow=maybe"):
        assert site.get(f"{JOBS}/long/output?{bad}").status == 422, bad
    _lose_the_file(cli, "long")
    tail = site.get(f"{JOBS}/long/output")
    assert (tail.status, tail.headers["queuectl-output"]) == (200, "tail")
    assert 0 < len(tail.body) < 100_000


def test_a_part_of_what_a_running_job_prints_is_read_without_the_rest(
    site: Site, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    size = 3_000_000
    cli.enqueue("--id", "loud", f"head -c {size} /dev/zero | tr '\\0' x; until [ -e {go} ]; do sleep 0.02; done")
    cli.ok("worker", "start", "-d")
    wait_for(lambda: site.ask("HEAD", f"{JOBS}/loud/output").headers.get("content-length") == str(size), "all of it")
    taken = count_bytes_read(monkeypatch)

    end = site.get(f"{JOBS}/loud/output", Range="bytes=-5")

    assert (end.status, end.body, end.headers["queuectl-output"]) == (206, b"xxxxx", "so-far")
    assert end.headers["content-range"] == f"bytes {size - 5}-{size - 1}/{size}"
    assert 0 < sum(taken) < size / 4  # what tells text from octets, and what was asked for
    go.touch()


def test_an_output_is_followed_to_its_end_and_resumed_where_it_was_left(site: Site, cli: Cli, tmp_path: Path) -> None:
    go = tmp_path / "go"
    line = f"printf 'one \\303'; until [ -e {go} ]; do sleep 0.02; done; printf '\\251 two\\n'; exit 3"
    cli.enqueue("--id", "slow", "--max-retries", "0", line)
    url = f"{JOBS}/slow/output?follow=true"

    with _stream(site, url) as events:
        waiting = next(events)
        cli.ok("worker", "start", "-d")
        first = next(each for each in events if each["event"] == "output")
        with _stream(site, url, first["id"]) as resumed:
            go.touch()
            rest = list(resumed)
        all_of_it = [first, *events]

    assert (waiting["event"], waiting["data"]["state"]) == ("wait", "pending")
    assert (first["id"], first["data"]["text"]) == ("1-4-0", "one ")
    text = "".join(each["data"]["text"] for each in all_of_it if each["event"] == "output")
    assert text == "one é two\n"
    assert all_of_it[-1]["event"] == "end"
    assert all_of_it[-1]["data"] == {"state": "dead", "error": "exit code 3"}
    assert "".join(each["data"]["text"] for each in rest if each["event"] == "output") == "é two\n"
    assert rest[-1]["event"] == "end"
    with _stream(site, f"{url}&lines=1") as again:
        assert [each["event"] for each in again] == ["output", "end"]
    assert site.get(url, **{"Last-Event-ID": "soon"}).status == 422
    assert site.get(f"{url}&stream=stderr").status == 409
    assert site.ask("HEAD", url).status == 200
    wait_for(lambda: followers.count == 0, "nobody follows any more")


def test_a_follower_who_leaves_is_let_go_and_too_many_are_turned_away(
    local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST", 2)
    local_site.post(JOBS, {"command": "true"})
    url = f"{JOBS}/1/output?follow=true"

    with _stream(local_site, url) as one, _stream(local_site, url) as other:
        assert next(one)["event"] == next(other)["event"] == "wait"
        refused = local_site.get(url)
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    local_site.post(JOBS, {"command": "true"})  # whoever watches looks, and finds its client gone
    wait_for(lambda: followers.count == 0, "the followers left")


def test_a_server_that_stops_ends_what_is_followed(sqlite_target: object, local_site: Site) -> None:
    local_site.post(JOBS, {"command": "true"})

    with _stream(local_site, f"{JOBS}/1/output?follow=true") as events:
        assert next(events)["event"] == "wait"
        # the fixture fails if the server, asked to stop, waits for this stream


def _lose_the_file(cli: Cli, job_id: str) -> None:
    [run] = cli.job(job_id)["runs"]  # type: ignore[misc]
    os.unlink(os.path.join(cli.target.home.logs, run["output_file"]))  # type: ignore[has-type]


@contextmanager
def _stream(site: Site, path: str, last_event_id: str = "") -> "Iterator[Iterator[dict]]":  # type: ignore[type-arg]
    """Open a stream of events; leaving the block hangs up."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", path, headers={"Last-Event-ID": last_event_id} if last_event_id else {})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
    try:
        yield _events(answer)
    finally:
        answer.close()
        connection.close()


def _events(answer: http.client.HTTPResponse) -> "Iterator[dict]":  # type: ignore[type-arg]
    event: dict[str, object] = {}
    for raw in answer:
        name, _, value = raw.decode().rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            event[name] = json.loads(value) if name == "data" else value
        elif not name and event:
            yield event
            event = {}
