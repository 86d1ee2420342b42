"""The list of jobs in a browser: filters and the way back, the keyboard, and acts on what is selected or matches."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from queuectl.actions.connect import connect
from queuectl.model.states import State
from tests.program import Cli, running_cli
from tests.store.rows import add_job
from tests.web.axe import PHONE, all_violations
from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")
expect.set_options(timeout=30_000)


COVERED = """() => {
    const pill = document.querySelector(".new-pill").getBoundingClientRect();
    const isApart = (box) =>
        box.right <= pill.left || box.left >= pill.right || box.bottom <= pill.top || box.top >= pill.bottom;
    const others = document.querySelectorAll("#page h1, #page .btn, #total, .chip, #filters, .list-wrap, th, td");
    return [...others].filter((each) => each.checkVisibility() && !isApart(each.getBoundingClientRect()))
        .map((each) => each.outerHTML.slice(0, 80));
}"""
"""What the button that shows new rows lies over."""


@pytest.fixture
def cli(local_site: Site, tmp_path: Path) -> Iterator[Cli]:
    """The program itself on the store that is served."""
    with running_cli(local_site.target, tmp_path) as cli:
        yield cli


def _states(cli: Cli, *words: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for job in cli.json("list", "--limit", "1000", *words):
        counts[str(job["state"])] = counts.get(str(job["state"]), 0) + 1
    return counts


def _question(page: Page) -> str:
    dialog = page.locator("dialog.question h2")
    expect(dialog).to_be_visible()
    return dialog.inner_text()


def test_an_empty_list_teaches_and_a_first_job_appears_by_itself(local_site: Site, page: Page, cli: Cli) -> None:
    page.goto(f"{local_site.url}/jobs")
    expect(page.locator("#list")).to_contain_text("queuectl enqueue 'echo hello'")
    expect(page.get_by_text("Columns").first).to_be_hidden()
    assert all_violations(page) == []

    cli.enqueue("echo hello")

    expect(page.locator("#rows tr")).to_have_count(1)
    expect(page.get_by_text("Columns").first).to_be_visible()
    expect(page.locator("#total")).to_have_text("1 job")


def test_filters_are_in_the_address_and_the_way_back_takes_them_away(local_site: Site, page: Page, cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", "--queue", "mail", stdin="".join(f"echo {number}\n" for number in range(60)))
    cli.ok("enqueue", "--from", "-", stdin='{"command": "echo other", "tags": ["red"]}\n{"command": "echo 5 other"}\n')
    cli.ok("cancel", "3-4")
    page.goto(f"{local_site.url}/jobs")
    expect(page.locator("#total")).to_have_text("62 jobs")
    expect(page.locator("#rows tr")).to_have_count(50)

    page.locator("#states a", has_text="cancelled").click()
    expect(page.locator("#rows tr")).to_have_count(2)
    page.locator("#states a", has_text="pending").click()
    page.locator("#times a", has_text="mail").click()
    page.wait_for_url(re.compile(r"state=cancelled%2Cpending&queue=mail$"))
    expect(page.locator("footer.same code")).to_have_text("queuectl list --state cancelled,pending --queue mail")
    page.locator("#find").fill("echo 5")
    page.locator("#find").press("Enter")
    expect(page.locator("#total")).to_have_text("11 matching")
    page.get_by_role("link", name="Take away the filter queue mail").click()
    expect(page.locator("#total")).to_have_text("12 matching")
    page.go_back()
    expect(page.locator("#total")).to_have_text("11 matching")
    page.go_back()
    expect(page.locator("#total")).to_have_text("60 matching")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("#rows tr")).to_have_count(10)
    page.get_by_role("link", name="Newer").click()
    expect(page.locator("#rows tr").first).to_have_attribute("data-key", "60")
    page.get_by_role("link", name="Added", exact=True).click()
    expect(page.locator("#rows tr").first).to_have_attribute("data-key", "1")
    page.locator(".chooser summary").click()
    page.get_by_label("Tags").check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="Tags")).to_be_visible()
    assert all_violations(page) == []


def test_all_that_match_are_cancelled_after_a_question_that_names_them(local_site: Site, page: Page, cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", "--queue", "mail", stdin="true\n" * 60)
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 3)
    page.goto(f"{local_site.url}/jobs?queue=mail")
    page.get_by_label("Select all on this page").check()
    expect(page.locator("#picked")).to_have_text("50 selected")
    page.get_by_role("button", name="Select all 60 matching").click()
    expect(page.locator("#picked")).to_have_text("all 60 matching")
    assert all_violations(page) == []

    page.get_by_role("button", name="Cancel", exact=True).click()

    assert _question(page) == "Cancel 60 jobs?"
    expect(page.locator("dialog.question code")).to_have_text("$ queuectl cancel --queue mail --yes")
    cli.enqueue("--queue", "mail", "true")  # more than was agreed to: it is asked again
    page.get_by_role("button", name="Cancel 60 jobs").click()
    expect(page.locator("dialog.question h2")).to_have_text("Cancel 61 jobs?")
    page.get_by_role("button", name="Cancel 61 jobs").click()
    expect(page.locator("#bar")).to_be_hidden()
    expect(page.locator("#rows .state-cancelled")).not_to_have_count(0)
    assert _states(cli) == {"cancelled": 61, "pending": 3}


def test_a_retry_of_many_says_how_many_completed_and_would_run_again(local_site: Site, page: Page, cli: Cli) -> None:
    with closing(connect(local_site.target)) as database:
        for state, many in ((State.COMPLETED, 60), (State.DEAD, 2), (State.PROCESSING, 1)):
            for _ in range(many):
                add_job(database, state)
    words = page.locator("dialog.question > p").first
    page.goto(f"{local_site.url}/jobs")
    for key in (63, 62, 60, 59):
        page.locator(f"tr[data-key='{key}'] .pick input").check()

    _press_retry(page)
    assert _question(page) == "Retry 3 jobs?"
    expect(words).to_have_text("2 of them completed and would run again. Passed by: 1 processing")
    _go_back(page)

    for key in (63, 62, 60):
        page.locator(f"tr[data-key='{key}'] .pick input").uncheck()
    _press_retry(page)
    assert _question(page) == "Retry 1 job?"
    expect(words).to_have_text("It completed and would run again")
    _go_back(page)

    page.goto(f"{local_site.url}/jobs?state=completed,dead")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Select all 62 matching").click()
    _press_retry(page)
    assert _question(page) == "Retry 62 jobs?"
    expect(words).to_have_text("60 of them completed and would run again")
    _go_back(page)

    page.goto(f"{local_site.url}/jobs?state=dead")
    page.get_by_label("Select all on this page").check()
    _press_retry(page)
    assert _question(page) == "Retry 2 jobs?"
    expect(words).to_have_text("$ queuectl retry 62 61")
    assert _states(cli) == {"completed": 60, "dead": 2, "processing": 1}


def _press_retry(page: Page) -> None:
    page.locator("#bar").get_by_role("button", name="Retry", exact=True).click()


def _go_back(page: Page) -> None:
    page.get_by_role("button", name="Back", exact=True).click()
    expect(page.locator("dialog.question")).to_have_count(0)


def test_a_key_that_acts_on_one_row_asks_as_the_same_for_many_does(local_site: Site, page: Page) -> None:
    with closing(connect(local_site.target)) as database:
        add_job(database, State.PENDING)
        add_job(database, State.COMPLETED)
    page.goto(f"{local_site.url}/jobs")
    expect(page.locator("html")).to_have_attribute("data-ready", "yes")

    for key in ("j", "r"):
        page.keyboard.press(key)
    assert _question(page) == "Run job 2 again? It completed."
    _go_back(page)

    for key in ("j", "c"):
        page.keyboard.press(key)
    assert _question(page) == "Cancel job 1?"
    expect(page.locator("dialog.question .btn.danger")).to_have_text("Cancel it")
    expect(page.get_by_role("button", name="Back", exact=True)).to_be_focused()


def test_rows_are_walked_selected_and_acted_on_by_keys(local_site: Site, page: Page, cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 6)
    cli.ok("cancel", "6")
    page.goto(f"{local_site.url}/jobs")
    expect(page.locator("html")).to_have_attribute("data-ready", "yes")
    for key in ("j", "j", "x", "j", "x", "k"):
        page.keyboard.press(key)
    expect(page.locator("#rows tr.current")).to_have_attribute("data-key", "5")
    expect(page.locator("#picked")).to_have_text("2 selected")
    page.keyboard.press("c")
    assert _question(page) == "Cancel 2 jobs?"
    page.get_by_role("button", name="Cancel 2 jobs").click()
    expect(page.locator("#rows .state-cancelled")).to_have_count(3)
    page.keyboard.press("r")
    assert _question(page) == "Retry job 5?"
    page.get_by_role("button", name="Retry", exact=True).last.click()
    expect(page.locator("tr[data-key='5'] .state-pending")).to_have_count(1)

    boxes = page.locator("#rows .pick input")
    boxes.nth(0).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(page.locator("#picked")).to_have_text("5 selected")
    page.get_by_role("button", name="Hold").click()
    assert _question(page) == "Hold 3 jobs?"
    expect(page.locator("dialog.question")).to_contain_text("Passed by: 2 cancelled")
    page.get_by_role("button", name="Hold 3 jobs").click()
    expect(page.locator("#rows .badge", has_text="held")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/4$"))


def test_rows_change_in_place_new_ones_wait_behind_their_number_and_the_selection_stays(
    local_site: Site, page: Page, cli: Cli
) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 3)
    page.goto(f"{local_site.url}/jobs")
    page.locator("tr[data-key='2'] .pick input").check()
    expect(page.locator("#picked")).to_have_text("1 selected")

    cli.ok("enqueue", "--from", "-", stdin="true\n" * 12)
    cli.ok("cancel", "1")

    expect(page.locator(".new-pill")).to_have_text("12 new")
    assert page.evaluate(COVERED) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate(COVERED) == []
    expect(page.locator("tr[data-key='1'] .state-cancelled")).to_have_count(1)
    expect(page.locator("#total")).to_have_text("15 jobs")
    expect(page.locator("#rows tr")).to_have_count(3)
    expect(page.locator("tr[data-key='2'] .pick input")).to_be_checked()
    page.locator(".new-pill").click()
    expect(page.locator("#rows tr")).to_have_count(15)
    expect(page.locator("tr[data-key='2'] .pick input")).to_be_checked()
    page.set_viewport_size(PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_on_a_phone_cards_are_sorted_by_a_row_of_their_own(local_site: Site, page: Page, cli: Cli) -> None:
    for priority in ("1", "3", "2"):
        cli.ok("enqueue", "--priority", priority, "true")
    page.goto(f"{local_site.url}/jobs")
    sorts = page.get_by_role("navigation", name="Sort by")
    expect(sorts).to_be_hidden()
    page.set_viewport_size(PHONE)

    sorts.get_by_role("link", name="priority").click()

    page.wait_for_url("**/jobs?sort=priority")
    assert _order(page) == ["2", "3", "1"]
    expect(sorts.locator("[aria-current]")).to_contain_text("priority ↓")
    sorts.get_by_role("link", name="priority").click()
    page.wait_for_url("**/jobs?sort=priority&reverse=1")
    assert _order(page) == ["1", "3", "2"]


def _order(page: Page) -> list[str]:
    return [str(row.get_attribute("data-key")) for row in page.locator("#rows tr").all()]
