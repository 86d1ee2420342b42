"""The list of jobs without a browser: it shows what the command line lists, in every order, page after page."""

import html
import re
import shlex

import pytest

from queuectl.actions.connect import connect
from queuectl.model.states import FINAL, State
from queuectl.store.offers import LOOKED_AT
from tests.program import Cli, wait_for
from tests.store.rows import NOW, add_job
from tests.web.serving import Site

ASKED = (
    "",
    "?state=dead,completed",
    "?queue=mail&sort=priority",
    "?sort=started&reverse=1",
    "?sort=finished",
    "?sort=finished&reverse=1&state=cancelled,pending,dead",
    "?text=it%27s+%3Cseven%3E&sort=priority&reverse=1",
    "?error=exit+code&tag=red",
    "?since=2026-01-01&until=2027-12-31",
)


@pytest.fixture
def filled(site: Site) -> Site:
    """A site whose store holds jobs of every kind, more than a page."""
    database = connect(site.target)
    for number in range(70):
        state = list(State)[number % 8]
        add_job(
            database,
            state,
            queue="mail" if number % 3 else "default",
            priority=number * 5 % 4 - 1,
            command="it's <seven>" if number % 7 == 0 else "other",
            tags='["red"]' if number % 4 == 0 else None,
            error="exit code 3" if state is State.DEAD or number % 8 == 0 else None,
            started_at=NOW + number * 11 % 5 if number % 2 else None,
            finished_at=NOW + number * 7 % 6 if state in FINAL else None,
        )
    database.close()
    return site


@pytest.mark.parametrize("query", ASKED)
def test_its_pages_are_what_the_command_in_its_footer_lists(filled: Site, cli: Cli, query: str) -> None:
    first = filled.get(f"/jobs{query}").text
    command = _command(first)

    listed = [int(str(job["number"])) for job in cli.json(*shlex.split(command)[1:], "--limit", "500")]

    forth, last = _walk(filled, f"/jobs{query}", "next")
    back, _ = _walk(filled, last, "prev")
    assert [seq for page in forth for seq in page] == listed
    assert [seq for page in reversed(back) for seq in page][: len(listed)] == listed
    assert _total(filled, f"/jobs{query}") == len(listed)


def test_what_cannot_be_read_is_told_on_the_page_with_the_nearest(local_site: Site) -> None:
    for query, told in (
        ("state=ded", "unknown state &#39;ded&#39;; did you mean &#39;dead&#39;?"),
        ("sort=strted", "did you mean &#39;started&#39;?"),
        ("columns=comand", "did you mean &#39;command&#39;?"),
        ("sate=dead", "unknown filter &#39;sate&#39;; did you mean &#39;state&#39;?"),
        ("limit=0", "bad limit"),
        ("limit=0000000015000", "bad limit"),
        ("since=<b>", "bad time"),
        ("after=x", "bad place"),
        ("queue=%22%3E%3Cscript%3E", "bad queue"),
    ):
        answer = local_site.get(f"/jobs?{query}")
        assert (answer.status, told in answer.text, "<script>" in answer.text) == (422, True, False), query


def test_a_search_for_a_tag_leads_to_the_jobs_that_have_it(filled: Site) -> None:
    found = filled.get("/jobs?text=red&queue=mail").text

    assert 'href="/jobs?queue=mail&amp;tag=red"' in found
    assert "No command of these jobs holds “red”" in found
    assert "No jobs match" not in found
    assert "0 matching" not in found


def test_a_tag_is_offered_where_a_job_has_it_and_looked_for_where_not_all_jobs_were_looked_at(
    filled: Site, cli: Cli
) -> None:
    unknown = filled.get("/jobs?text=nobody").text
    cli.ok("enqueue", "--from", "-", "--tag", "newer", stdin="true\n" * LOOKED_AT)
    begun, older = (filled.get(f"/jobs?text={text}").text for text in ("newe", "red"))

    assert "No jobs match" in unknown
    assert "0 matching" in unknown
    assert "tag=" not in unknown
    assert 'href="/jobs?tag=newer">jobs with the tag newer</a>' in begun
    assert 'href="/jobs?tag=red">Look for the tag red</a>' in older
    assert "jobs with the tag" not in older


def test_a_search_leads_to_the_job_of_that_id_to_those_whose_ids_begin_so_and_to_the_group(
    filled: Site, cli: Cli
) -> None:
    cli.ok("enqueue", "--id", "nightly", "--group", "night", "true")
    cli.ok("enqueue", "--id", "nightly-2", "true")

    by_number, by_id, by_group = (filled.get(f"/jobs?text={text}").text for text in ("7", "nightly", "nigh"))

    assert re.search(r'Job <a href="/jobs/7">7</a> has this name: .*<code>other<', by_number)
    assert _begun(by_number) == ["70"]
    assert re.search(r'Job <a href="/jobs/nightly">nightly</a> has this name', by_id)
    assert _begun(by_id) == ["nightly-2"]
    assert "No command holds “nightly”" in by_id
    assert "has this name: " not in by_group
    assert _begun(by_group) == ["nightly-2", "nightly"]
    assert 'href="/jobs?group=night">jobs of night</a>' in by_group
    many = filled.get("/jobs?text=1").text
    assert _begun(many) == ["19", "18", "17", "16", "15"]
    assert 'href="/jobs/15">15</a> and more</p>' in many
    assert " and more</p>" not in by_group
    assert 'id="meant"' not in filled.get("/jobs?text=it%27s").text


def test_a_filter_that_finds_no_dead_job_does_not_call_the_queue_of_the_dead_empty(filled: Site) -> None:
    assert "is empty" not in filled.get("/jobs?state=dead&tag=nobody").text


def test_what_a_list_is_sorted_by_has_a_column(filled: Site) -> None:
    assert "Finished" in _heads(filled.get("/jobs?sort=finished").text)
    assert "Finished" not in _heads(filled.get("/jobs?sort=finished&columns=id,state").text)
    assert "Finished" not in _heads(filled.get("/jobs?sort=priority").text)


def test_columns_are_those_of_the_address_and_come_back_in_its_command(filled: Site) -> None:
    page = filled.get("/jobs?columns=command&columns=id,exit&limit=25").text

    assert _heads(page) == ["Id", "Exit", "Command"]
    assert _command(page) == "queuectl list --columns id,exit,command --limit 25"


def test_attempts_are_written_on_the_page_of_a_job_as_in_the_list(filled: Site) -> None:
    seq, attempts = re.findall(r'<tr data-key="(\d+)".*?data-label="Attempts" class="num">([^<]+)<', _flat(filled))[0]

    assert f"<dt>Attempts</dt><dd>{attempts}</dd>" in filled.get(f"/jobs/{seq}").text


def _flat(site: Site) -> str:
    return site.get("/jobs").text.replace("\n", "")


def test_each_state_is_counted_and_its_number_leads_to_just_these(filled: Site) -> None:
    page = filled.get("/jobs?queue=mail").text

    for link, state, count in re.findall(
        r'<a class="chip state-\w+" data-key="\w+" href="([^"]+)">.*?(\w+) <span class="count">(\d+)</span>', page
    ):
        chosen = filled.get(html.unescape(link)).text
        assert f'data-total="{count}"' in chosen
        assert set(re.findall(r'data-state="(\w+)"', chosen)) == {state}


def _walk(site: Site, path: str, rel: str) -> tuple[list[list[int]], str]:
    """Follow the links from page to page; return the numbers of the jobs on each, and the address of the last."""
    found: list[list[int]] = []
    while True:
        page = site.get(path).text
        found.append([int(key) for key in re.findall(r'<tr data-key="(\d+)" data-id', page)])
        link = re.search(rf'rel="{rel}" href="([^"]+)"', page)
        if link is None:
            return found, path
        path = html.unescape(link[1])


def _begun(page: str) -> list[str]:
    line = re.search(r"Ids that begin so: (.*)</p>", page)
    return re.findall(r'<a href="/jobs/([^"]+)">', line[1]) if line else []


def _total(site: Site, path: str) -> int:
    """Return how many match, as soon as they have been counted."""
    found = wait_for(lambda: re.search(r'data-total="(\d+)"', site.get(path).text), "the jobs counted")
    return int(found[1])


def _heads(page: str) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?([A-Z]\w+)', page)


def _command(page: str) -> str:
    found = re.findall(r'<code tabindex="0" role="group" aria-label="Command">(.*?)</code>', page)
    return html.unescape(found[-1])
