"""The frame of every page: theme, keyboard, acts that take turns, clicks that come early, and what axe finds."""

import json

import pytest
from playwright.sync_api import Page, Route, expect

from queuectl.actions import control
from queuectl.actions.connect import connect
from queuectl.store import queues
from tests.web.axe import all_violations
from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")


def add_queues(site: Site, *names: str) -> None:
    """Make queues."""
    database = connect(site.target)
    for name in names:
        control.pause_queue(database, name, who="test")
        control.resume_queue(database, name, who="test")
    database.close()


def is_paused(site: Site, name: str) -> bool:
    """Whether a queue is paused, as the store has it."""
    database = connect(site.target)
    found = database.read(lambda tx: queues.get(tx, name))
    database.close()
    assert found is not None
    return found.paused_at is not None


def test_the_frame_is_accessible_in_both_themes_and_at_phone_width(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/queues")
    assert all_violations(page) == []

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
    assert all_violations(page) == []


def test_at_phone_width_no_page_is_wider_than_the_screen_and_where_one_is_can_be_seen(
    local_site: Site, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/jobs/new", "/workers", "/health"):
        page.goto(f"{local_site.url}{path}")
        page.wait_for_selector("html[data-ready]")

        assert page.evaluate("document.documentElement.scrollWidth") == 390
        expect(page.locator(".side [aria-current]")).to_be_in_viewport(ratio=1)


def test_a_button_can_be_read_under_the_pointer(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/jobs/new")
    button = page.get_by_role("button", name="Add job")
    at_rest = button.evaluate("(each) => getComputedStyle(each).backgroundColor")

    button.hover()

    assert button.evaluate("(each) => getComputedStyle(each).backgroundColor") == at_rest


def test_the_theme_is_kept_and_nothing_breaks_where_storage_is_blocked(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/queues")
    button = page.locator("[data-theme-switch]")
    button.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"

    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('blocked'); } })")
    page.reload()
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")
    button.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_everything_is_within_reach_of_the_keyboard(local_site: Site, page: Page) -> None:
    add_queues(local_site, "alpha", "beta")
    page.goto(f"{local_site.url}/queues")
    page.wait_for_selector("html[data-ready]")

    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("g w j ?")  # is typed, not obeyed
    assert page.locator("#find").input_value() == "g w j ?"
    page.keyboard.press("Escape")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.current")).to_have_attribute("data-key", "beta")
    page.keyboard.press("k")
    expect(page.locator("tr.current")).to_have_attribute("data-key", "alpha")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/alpha")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/workers")


def test_questions_take_turns_so_that_no_yes_answers_another(local_site: Site, page: Page) -> None:
    add_queues(local_site, "alpha", "beta")
    page.goto(f"{local_site.url}/queues")
    page.wait_for_selector("html[data-ready]")

    page.evaluate("() => document.querySelectorAll('[data-act][data-confirm]').forEach((button) => button.click())")
    expect(page.get_by_role("dialog")).to_have_count(1)
    expect(page.get_by_role("dialog")).to_contain_text("alpha")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_contain_text("beta")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    expect(page.locator("#queues")).to_contain_text("paused")
    assert is_paused(local_site, "alpha")
    assert not is_paused(local_site, "beta")


def test_a_click_that_comes_before_the_scripts_is_not_lost(local_site: Site, page: Page) -> None:
    add_queues(local_site, "alpha")
    held: list[Route] = []
    page.route("**/js/acts.js", lambda route: held.append(route))  # noqa: PLW0108 - it must be a function
    page.goto(f"{local_site.url}/queues", wait_until="commit")
    page.wait_for_selector("[data-act]")
    page.locator("[data-act]").first.click(no_wait_after=True)
    expect(page.get_by_role("dialog")).to_have_count(0)

    held[0].continue_()

    expect(page.get_by_role("dialog")).to_contain_text("alpha")


def test_what_the_server_refuses_is_shown_with_what_to_do(local_site: Site, page: Page) -> None:
    add_queues(local_site, "alpha")
    told = json.dumps({"status": 409, "detail": "queue alpha is busy", "hint": "come back later"})
    page.route("**/pause", lambda route: route.fulfill(status=409, content_type="application/problem+json", body=told))
    page.goto(f"{local_site.url}/queues")

    page.locator("[data-act]").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()

    notice = page.locator("#notices .notice.bad")
    expect(notice).to_contain_text("queue alpha is busy")
    expect(notice).to_contain_text("come back later")
    expect(page.locator("[data-act]").first).not_to_have_attribute("aria-busy", "true")


def test_a_command_is_copied(local_site: Site, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=local_site.url)
    page.goto(f"{local_site.url}/queues")

    page.locator("footer .copy").click()

    expect(page.locator("footer .copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "queuectl queue list"
