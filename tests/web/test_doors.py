"""Doors: every figure on a page that is a link leads to a list that holds exactly what it counts."""

import re
from contextlib import closing
from html.parser import HTMLParser

import pytest

from queuectl.actions import control
from queuectl.actions.connect import connect
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store.database import Database
from tests.program import wait_for
from tests.store.rows import add_job, add_worker, claim_one, settle_run
from tests.web.serving import Site
from tests.web.test_live import add_jobs

PAGES = (
    "/",
    "/?range=24h",
    "/?range=7d",
    "/dlq",
    "/dlq?queue=mail",
    "/queues",
    "/queues/mail",
    "/workers",
    "/schedules",
)
LISTS = ("/jobs", "/runs", "/dlq", "/workers", "/queues", "/schedules")
MANY = 55
"""More than a page of jobs holds."""


class Figures(HTMLParser):
    """Collects the links with a number in their text, with the last of them; what names an error or a job is none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, int]] = []
        self._href: str | None = None
        self._text = ""
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and "clip" not in (given.get("class") or "").split():
            self._href, self._text = given.get("href") or "", ""
        self._hidden = "visually-hidden" in (given.get("class") or "")

    def handle_data(self, data: str) -> None:
        self._text += "" if self._hidden else data

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        if tag != "a" or self._href is None:
            return
        numbers = re.findall(r"\d[\d,]*", self._text)
        if self._href.partition("?")[0] in LISTS and numbers:
            self.found.append((self._href, int(numbers[-1].replace(",", ""))))
        self._href = None


def figures_of(text: str) -> list[tuple[str, int]]:
    parser = Figures()
    parser.feed(text)
    return parser.found


def whole_page(site: Site, path: str) -> str:
    """Return a page once everything on it is counted."""

    def look() -> str | None:
        answer = site.get(path)
        assert answer.status == 200, f"{path}: {answer.text[-500:]}"
        is_open = any(words in answer.text for words in ("Being counted", "counting…", "Counting "))
        return None if is_open or ("<dt>Waited" not in answer.text and path.startswith("/queues/")) else answer.text

    return wait_for(look, f"{path} is counted")


def size_of(site: Site, path: str) -> int:
    """Return how many things the list at a path says, or shows, that it holds."""
    text, page = whole_page(site, path), path.partition("?")[0]
    if page in ("/jobs", "/runs"):
        return int(re.findall(r'data-total="(\d+)"', text)[0])
    if page == "/dlq":
        return int((re.findall(r"Retry all ([\d,]+)</button>", text) or ["0"])[0].replace(",", ""))
    rows = {
        "/workers": r'<tr data-key="w\d',
        "/queues": r'<tr data-key="(?!limit|mutex)',
        "/schedules": r"<tr data-key=",
    }
    return len(re.findall(rows[page], text))


def settled(database: Database, outcome: Outcome, *, queue: str = "mail", max_retries: int = 0) -> int:
    job = add_job(database, queue=queue, max_retries=max_retries)
    settle_run(database, claim_one(database), outcome)
    return job.seq


@pytest.fixture
def filled(site: Site) -> Site:
    """A store in which runs and jobs, and errors and groups of them, differ in number."""
    with closing(connect(site.target)) as database:
        add_worker(database, "w1", slots=100)
        add_worker(database, "w2", queues='["night"]')
        done = settled(database, Outcome.exited(0))
        for _ in range(2):  # one job that completes three times
            control.retry(database, [str(done)], who="test")
            settle_run(database, claim_one(database), Outcome.exited(0))
        again = settled(database, Outcome.exited(3), max_retries=1)  # one that fails twice, and dies
        control.retry(database, [str(again)], who="test")
        settle_run(database, claim_one(database), Outcome.exited(3))
        settled(database, Outcome.exited(1), queue="night")
        for _ in range(MANY):
            settled(database, Outcome.exited(1))
            settled(database, Outcome.exited(12))
        for number in range(3):
            settled(database, Outcome.not_started(126, f"cannot enter /folder/{number}: No such file or directory"))
        settled(database, Outcome.timed_out(5000), max_retries=3)
        for _ in range(25):
            add_job(database, State.PROCESSING, queue="mail", command="sleep 1000")
        for state in (State.PENDING, State.SCHEDULED, State.BLOCKED, State.CANCELLED):
            add_job(database, state, queue="night")
        day_ago = database.read(lambda tx: tx.now) - 30 * 3_600_000
        for state in (State.COMPLETED, State.DEAD):
            add_job(database, state, queue="mail", finished_at=day_ago, error="exit code 1")
    add_jobs(site.target, 60, queue="mail")
    return site


def test_every_figure_leads_to_a_list_that_holds_exactly_what_it_counts(filled: Site) -> None:
    seen: dict[str, int] = {}
    wrong = []
    for page in PAGES:
        for path, count in figures_of(whole_page(filled, page)):
            seen[path] = count
            if (size := size_of(filled, path)) != count:
                wrong.append(f"{page}: {path} counts {count}, its list holds {size}")

    assert wrong == []
    pages = [path.partition("?")[0] for path in seen]
    assert pages.count("/jobs") >= 15
    assert pages.count("/runs") >= 15
    assert max(seen.values()) > 2 * MANY


def test_what_is_done_today_is_counted_in_jobs_as_the_list_of_them_has_it(filled: Site) -> None:
    text = whole_page(filled, "/")

    [(path, count)] = [each for each in figures_of(text) if "state=completed" in each[0] and "ended_since" in each[0]]

    assert count == 1  # it ran three times, and the other one completed yesterday
    assert filled.get("/api/v1/stats").json()["today"]["completed"] == 1
    assert re.findall(r'<tr data-key="(\d+)"', whole_page(filled, path)) == ["1"]


def test_states_are_counted_only_where_the_numbers_are_those_of_their_lists(filled: Site) -> None:
    for path, is_counted in (("/jobs?queue=mail", True), ("/jobs?queue=mail&error=exit+code+3", False)):
        states = whole_page(filled, path).split('id="states"')[1].split("</nav>")[0]

        assert ('class="count"' in states) is is_counted
        for href, count in figures_of(states):
            assert size_of(filled, href) == count


def test_runs_are_paged_without_a_gap_and_wrong_addresses_are_refused(filled: Site) -> None:
    path, keys = "/runs?result=failed", []
    while path:
        text = whole_page(filled, path)
        keys += re.findall(r'<tr data-key="([\d.]+)"', text)
        later = re.findall(r'href="(/runs[^"]*)" rel="next"', text)
        path = later[0].replace("&amp;", "&") if later else ""

    assert len(keys) == len(set(keys)) == 2 * MANY + 2 + 1 + 3 + 1
    assert "queuectl stats" not in whole_page(filled, "/runs")  # which counts runs, and lists none
    assert "No such run is on record" in whole_page(filled, "/runs?queue=none")
    for wrong in ("result=what", "since=whenever", "after=x", "queue=a%20b", "reslt=failed"):
        assert filled.get(f"/runs?{wrong}").status == 422
