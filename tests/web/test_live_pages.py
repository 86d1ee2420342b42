"""Live pages in a browser: rows change in place, nothing moves, what a person did stays, and a loss is marked."""

from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from queuectl.actions import gatekeeping
from queuectl.actions.connect import Target, connect
from tests.web.serving import Site, serving
from tests.web.streams import streaming
from tests.web.test_frame import add_queues
from tests.web.test_live import add_jobs

pytestmark = pytest.mark.needs("chromium")

LONG_MS = 30_000
WATCH_SHIFTS = """
    window.shifts = [];
    const where = (node) => (node?.nodeType === 3 ? node.parentElement : node)?.outerHTML.slice(0, 120);
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shifts.push(...entry.sources.map(({ node }) => where(node)));
    }).observe({ type: "layout-shift", buffered: false });
"""
"""What moved by itself, from now on."""


def open_live(page: Page, url: str) -> None:
    """Open a page and wait until it is live."""
    page.goto(url)
    page.wait_for_selector('html[data-live="yes"]', timeout=LONG_MS)


def test_rows_change_in_place_and_keep_what_a_person_did(local_site: Site, page: Page) -> None:
    add_jobs(local_site.target)
    open_live(page, f"{local_site.url}/queues")
    row = page.locator("#queues tr[data-key=default]")
    row.evaluate("(row) => (row.mine = 'the same row')")
    page.keyboard.press("j")
    page.evaluate(WATCH_SHIFTS)

    add_jobs(local_site.target, 2)

    expect(row.locator('td[data-label="Pending"]')).to_have_text("3", timeout=LONG_MS)
    expect(page.locator("#pages li[data-key='/jobs'] .count")).to_have_text("3")
    assert row.evaluate("(row) => row.mine") == "the same row"
    expect(row).to_be_focused()
    expect(row).to_have_class("current")
    assert page.evaluate("window.shifts") == []


def test_the_focus_stays_on_its_row_when_rows_above_it_come_and_go(local_site: Site, page: Page) -> None:
    add_queues(local_site, "b", "d", "f")
    open_live(page, f"{local_site.url}/queues")
    row = page.locator("#queues tr[data-key=f]")
    for _ in range(3):
        page.keyboard.press("j")
    expect(row).to_be_focused()

    database = connect(local_site.target)
    gatekeeping.delete_queue(database, "b", who="test")
    database.close()
    add_queues(local_site, "a", "e")

    expect(page.locator("#queues tr[data-key]")).to_have_count(4, timeout=LONG_MS)
    assert page.locator("#queues tr[data-key]").evaluate_all("(rows) => rows.map((row) => row.dataset.key)") == [
        "a", "d", "e", "f",
    ]  # fmt: skip
    expect(row).to_be_focused()
    expect(row).to_have_class("current")


def test_a_lost_connection_is_marked_at_once_with_the_age_of_what_is_shown_and_mends_itself(
    sqlite_target: Target, page: Page
) -> None:
    add_jobs(sqlite_target)
    mark = page.locator("#live-mark")
    with ExitStack() as stack:
        site = stack.enter_context(serving(sqlite_target))
        open_live(page, f"{site.url}/queues")
        expect(mark).to_have_text("live")
        stack.close()

        expect(mark).to_contain_text("connection lost, shown:", timeout=LONG_MS)
        expect(mark).to_contain_text("ago", timeout=LONG_MS)
        expect(page.locator("#queues tr[data-key=default]")).to_be_visible()

        add_jobs(sqlite_target)
        stack.enter_context(serving(sqlite_target, port=site.port))
        expect(mark).to_have_text("live", timeout=LONG_MS)
        expect(page.locator("#queues tr[data-key=default] td[data-label=Pending]")).to_have_text("2", timeout=LONG_MS)
        page.goto("about:blank")


def test_a_look_that_hangs_is_marked_and_tried_again(local_site: Site, page: Page) -> None:
    mark = page.locator("#live-mark")
    open_live(page, f"{local_site.url}/queues")
    page.route("**/queues", lambda _route: None)  # never answered
    add_queues(local_site, "alpha")

    expect(mark).to_contain_text("connection lost, shown:", timeout=LONG_MS)

    page.unroute("**/queues")
    expect(page.locator("#queues tr[data-key=alpha]")).to_be_visible(timeout=LONG_MS)
    expect(mark).to_have_text("live", timeout=LONG_MS)


def test_a_tab_in_the_background_closes_its_stream_and_catches_up(local_site: Site, page: Page) -> None:
    open_live(page, f"{local_site.url}/queues")
    asked: list[str] = []
    set_hidden(page, is_hidden=True)
    expect(page.locator("#live-mark")).to_have_text("still")
    page.on("request", lambda request: asked.append(request.url))

    add_queues(local_site, "alpha")
    add_jobs(local_site.target)
    assert asked == []

    set_hidden(page, is_hidden=False)
    expect(page.locator("#queues tr[data-key=alpha]")).to_be_visible(timeout=LONG_MS)
    expect(page.locator("#live-mark")).to_have_text("live", timeout=LONG_MS)


def test_new_rows_collect_behind_a_button(local_site: Site, page: Page) -> None:
    add_queues(local_site, "m")
    page.route("**/queues", lambda route: route.fulfill(response=(got := route.fetch()), body=held_rows(got.text())))
    open_live(page, f"{local_site.url}/queues")
    page.evaluate(WATCH_SHIFTS)

    add_queues(local_site, "a", "z")
    add_jobs(local_site.target)
    pill = page.locator(".new-pill")
    expect(pill).to_have_text("3 new", timeout=LONG_MS)
    expect(page.locator("#held tr")).to_have_count(1)
    assert page.evaluate("window.shifts") == []

    pill.click()
    expect(page.locator("#held tr")).to_have_count(4)
    expect(pill).to_have_count(0)


def test_a_page_is_fetched_again_for_a_change_and_not_because_it_was_opened(
    local_site: Site, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queuectl.web.snapshot.SLIDES_S", float("inf"))
    add_jobs(local_site.target)
    looks: list[int] = []
    page.on("request", lambda request: looks.extend(map(int, filter(None, [request.headers.get("x-live")]))))
    open_live(page, f"{local_site.url}/settings")
    with streaming(local_site) as stream:
        before = stream.next_event().data["version"]

    add_jobs(local_site.target)
    expect(page.get_by_role("link", name="Jobs 2")).to_be_visible(timeout=LONG_MS)

    assert min(looks) > before


def held_rows(html: str) -> str:
    """Mark the rows of the first table as a list that must not move."""
    return html.replace("<tbody>", '<tbody id="held" data-hold-new>', 1)


def set_hidden(page: Page, *, is_hidden: bool) -> None:
    """Have the page believe that it is in the background, or no longer."""
    state = "hidden" if is_hidden else "visible"
    page.evaluate(
        """(state) => {
            Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )
