"""The overview: whether things are fine is seen at once, every number is a door, and nothing moves while it is live."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from queuectl.actions import control
from queuectl.actions.connect import Target, connect
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.web.stores import Stores
from tests.store.rows import add_job, add_worker, claim_one, settle_run
from tests.web.axe import PHONE, all_violations
from tests.web.serving import Site
from tests.web.test_live import add_jobs, counted
from tests.web.test_live_pages import LONG_MS, WATCH_SHIFTS, open_live


def fill(target: Target) -> None:
    """Have a store in which something of everything happened."""
    database = connect(target)
    add_worker(database)
    for exit_code in (0, 0, 3):
        add_job(database, queue="mail", max_retries=0, command=f"exit {exit_code}")
        settle_run(database, claim_one(database), Outcome.exited(exit_code))
    add_job(database, State.PROCESSING, queue="mail", command="sleep 1000")
    for state in (State.PENDING, State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED, State.CANCELLED):
        add_job(database, state, queue="night")
    control.pause_queue(database, "night", who="test")
    database.close()


def number_at(text: str, path: str) -> str:
    """Return the number that is a door to a path."""
    found = re.search(rf'href="{re.escape(path)}".*?class="count[^"]*"[^>]*>([^<]+)<', text, re.DOTALL)
    assert found, path
    return found[1]


def test_every_count_is_a_door_to_the_list_it_counts(site: Site) -> None:
    fill(site.target)

    text = page_with(site, "/", "exit code 3")

    assert number_at(text, "/jobs?state=pending") == "2"
    assert number_at(text, "/jobs?state=processing") == "1"
    assert number_at(text, "/dlq") == "1"
    for state in ("scheduled", "blocked", "failed", "dead", "cancelled"):
        assert number_at(text, f"/jobs?state={state}") == "1"
    assert number_at(text, "/jobs?state=completed") == "2"
    assert "sleep 1000" in text
    assert re.search(r"<strong>Warning:</strong> <a [^>]*>[^<]*1 job died within the last hour", text)
    assert "paused" in text


def test_an_empty_store_teaches_its_first_commands(site: Site) -> None:
    text = site.get("/").text

    assert "queuectl worker start --until-idle" in text
    assert "All is well" in text


def test_what_keeps_jobs_from_running_is_an_error(local_site: Site) -> None:
    add_jobs(local_site.target)

    assert re.search(r"<strong>Error:</strong> <a [^>]*>No worker is running", local_site.get("/").text)


def test_a_range_that_is_none_is_refused_with_those_there_are(local_site: Site) -> None:
    answer = local_site.get("/?range=1y")

    assert answer.status == 422
    assert "1h, 24h, 7d" in answer.json()["hint"]


def test_the_overview_asks_the_store_nothing_of_its_own(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(site.target)
    reads = counted(monkeypatch, Stores)

    for each in ("1h", "24h", "7d"):
        assert site.get(f"/?range={each}").status == 200

    assert reads == []


@pytest.mark.needs("chromium")
def test_the_overview_is_accessible_and_its_chart_is_read_by_keyboard(local_site: Site, page: Page) -> None:
    fill(local_site.target)
    page_with(local_site, "/?range=24h", "exit code 3")
    open_live(page, f"{local_site.url}/?range=24h")
    expect(page.locator("#throughput .canvas svg")).to_be_visible()
    assert all_violations(page) == []

    page.locator("#throughput .canvas").focus()
    page.keyboard.press("End")
    tip = page.locator("#throughput .tip")
    expect(tip).to_contain_text("completed")
    if "completed 0" in tip.inner_text():
        page.keyboard.press("ArrowLeft")  # the next half hour has begun meanwhile
    expect(tip).to_contain_text("completed 2")
    expect(tip).to_contain_text("failed 1")
    page.keyboard.press("ArrowLeft")
    expect(tip).to_contain_text("completed 0")

    legend = page.locator("#throughput .legend button", has_text="failed")
    legend.click()
    expect(legend).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#throughput .canvas g.state-failed")).to_have_count(0)
    page.get_by_role("link", name="7d").click()
    page.wait_for_url("**/?range=7d")
    expect(page.locator("#throughput .unit")).to_have_text("runs / 4 h")


@pytest.mark.needs("chromium")
def test_times_below_a_chart_do_not_run_into_each_other_on_a_phone(local_site: Site, page: Page) -> None:
    fill(local_site.target)
    page.set_viewport_size(PHONE)
    for each in ("1h", "24h", "7d"):
        page_with(local_site, f"/?range={each}", "exit code 3")
        page.goto(f"{local_site.url}/?range={each}")
        expect(page.locator("#throughput .time").nth(2)).to_be_visible()

        boxes = sorted((box["x"], box["width"]) for box in map(box_of, page.locator("#throughput .time").all()))

        assert all(x + width < next_x for (x, width), (next_x, _) in pairwise(boxes)), each


def box_of(found: Locator) -> FloatRect:
    """Return where something is that is there."""
    box = found.bounding_box()
    assert box is not None
    return box


@pytest.mark.needs("chromium")
def test_nothing_moves_on_the_overview_while_it_is_live(local_site: Site, page: Page) -> None:
    fill(local_site.target)
    page_with(local_site, "/", "exit code 3")
    open_live(page, f"{local_site.url}/")
    page.evaluate(WATCH_SHIFTS)

    add_jobs(local_site.target, 1200, queue="mail")

    expect(page.locator('.door[href="/jobs?state=pending"] .count')).to_have_text("1,202", timeout=LONG_MS)
    expect(page.locator("#queues tr[data-key=mail] td[data-label=Waiting]")).to_have_text("1,200", timeout=LONG_MS)
    expect(page.locator("#alert-list")).to_contain_text("Queue mail grows", timeout=LONG_MS)
    assert page.evaluate("window.shifts") == []


def page_with(site: Site, path: str, words: str) -> str:
    """Return a page once its figures are counted: with some words in it."""
    for _ in range(600):
        text = site.get(path).text
        if words in text and "Being counted" not in text:
            return text
    raise AssertionError(f"{words!r} never came")
