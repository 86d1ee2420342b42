"""The pages of the operators in a browser: nobody is shut out by their looks, and nothing people wrote is run."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from queuectl.actions.connect import locate
from tests.program import running_cli
from tests.web.axe import PHONE, all_violations
from tests.web.serving import Site, serving

pytestmark = pytest.mark.needs("chromium")
SIDEWAYS = """
    [...document.querySelectorAll("#page, #page *")]
        .filter((each) => ["auto", "scroll"].includes(getComputedStyle(each).overflowX) && each.checkVisibility())
        .filter((each) => !each.matches("pre, code") && each.scrollWidth > each.clientWidth)
        .map((each) => each.outerHTML.slice(0, 120))
"""
"""What can be scrolled sideways, but for text as it was printed."""
TITLES = """
    [...document.querySelectorAll("table.cards tbody tr:has(> th[scope=row])")]
        .filter((row) => {
            const top = row.querySelector("th[scope=row]").getBoundingClientRect().top;
            return [...row.querySelectorAll("td")].some((cell) => cell.getBoundingClientRect().top < top);
        })
        .map((row) => row.outerHTML.slice(0, 120))
"""
"""Cards in which something stands above the title."""
GAPS = """
    [...document.querySelectorAll("p time")]
        .filter((each) => {
            const text = document.createRange();
            text.selectNodeContents(each);
            return each.getBoundingClientRect().width > text.getBoundingClientRect().width + 1;
        })
        .map((each) => each.parentNode.outerHTML.slice(0, 120))
"""
"""Times within sentences that take more room than their words."""
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
PATHS = (
    "/queues", "/queues/mail", "/workers?ended=1", "/schedules", "/schedules/beat", "/schedules/beat?edit=1",
    "/settings", "/audit", "/health", "/dlq?canary=1&error=exit+code+3", "/runs", "/workers?queue=mail",
)  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A served store in which there is something for every page."""
    folder = tmp_path_factory.mktemp("filled")
    target = locate(None, {"QUEUECTL_HOME": str(folder / "home")})
    with serving(target) as site, running_cli(target, folder) as program:
        program.ok("queue", "set", "mail", "--concurrency", "2")
        program.ok("queue", "pause", "media")
        program.ok("limit", "set", "api", "3")
        program.enqueue("--max-retries", "0", f"echo '{HOSTILE}'; exit 3")
        program.enqueue("--max-retries", "0", "--cwd", f"/{HOSTILE}", "true")
        program.drain()
        program.ok("schedule", "add", "beat", "*/5 * * * *", f"echo {HOSTILE}")
        program.ok("schedule", "add", "rest", "--every", "10s", "true")
        program.ok("schedule", "run", "beat")
        program.ok("schedule", "pause", "rest")
        long = program.enqueue("--queue", "mail", f"echo '{HOSTILE}'; sleep 600")
        program.start("worker", "start", "--queue", "mail")
        program.wait_for_state(long, "processing")
        yield site


@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_wrong(path: str, filled: Site, page: Page) -> None:
    page.goto(filled.url + path)
    page.wait_for_selector("html[data-ready]")

    assert all_violations(page) == []
    assert page.title() != "owned"


@pytest.mark.parametrize("path", ["/queues/media", "/workers"])
def test_a_time_within_a_sentence_leaves_no_gap(path: str, filled: Site, page: Page) -> None:
    page.goto(filled.url + path)
    page.wait_for_selector("p time")

    assert page.evaluate(GAPS) == []


@pytest.mark.parametrize("path", ["/schedules", "/audit", "/dlq", "/runs"])
def test_on_a_phone_nothing_scrolls_sideways_and_a_card_begins_with_its_title(
    path: str, filled: Site, page: Page
) -> None:
    page.set_viewport_size(PHONE)
    page.goto(filled.url + path)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector("tbody th[scope=row]")

    assert page.evaluate(SIDEWAYS) == []
    assert page.evaluate(TITLES) == []
