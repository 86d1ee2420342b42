"""What operators do in a browser: each act does what its command does, is seen at once, and is on record."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.program import Cli, running_cli, wait_for
from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")
expect.set_options(timeout=30_000)


@pytest.fixture
def program(local_site: Site, tmp_path: Path) -> Iterator[Cli]:
    """The program, pointed at the store that is served."""
    with running_cli(local_site.target, tmp_path) as cli:
        yield cli


def test_a_queue_is_paused_and_set_and_changes_from_elsewhere_show_by_themselves(
    local_site: Site, program: Cli, page: Page
) -> None:
    program.enqueue("--queue", "mail", "true")
    page.goto(f"{local_site.url}/queues")

    page.get_by_role("button", name="Pause queue mail").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()

    expect(page.get_by_role("row", name="mail")).to_contain_text("paused")
    [shown] = [one for one in program.json("queue", "list") if one["queue"] == "mail"]
    assert shown["paused_at"] is not None

    program.ok("queue", "resume", "mail")
    expect(page.get_by_role("button", name="Pause queue mail")).to_be_visible()

    page.get_by_role("link", name="mail").click()
    page.get_by_role("button", name="Set limits of queue mail").click()
    page.get_by_label("Rate").fill("often")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(page.get_by_role("alert")).to_contain_text("bad rate")
    page.get_by_label("Rate").fill("10/m")
    page.get_by_label("Concurrency").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()

    expect(page.locator("#queue")).to_contain_text("10/m: one start every 6.00s")
    expect(page.locator("#queue")).to_contain_text("of at most 3")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#notices")).to_contain_text("queue mail holds 1 job")


def test_a_worker_is_drained_from_its_page(local_site: Site, program: Cli, page: Page) -> None:
    job = program.enqueue("sleep 600")
    program.start("worker", "start")
    program.wait_for_state(job, "processing")
    page.goto(f"{local_site.url}/workers")
    expect(page.locator("#crews")).to_contain_text("sleep 600")
    expect(page.locator("[data-usage]")).to_contain_text("CPU")

    page.get_by_role("button", name="Drain the workers of").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Drain the 1 worker of")
    question.get_by_role("button", name="Drain").click()

    expect(page.locator("#crews")).to_contain_text("draining")
    page.get_by_role("button", name="Stop all now").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop now").click()
    expect(page.locator("#crews")).to_contain_text("No worker is running")
    assert program.job(job)["state"] == "pending"
    page.get_by_role("link", name="show those that ended").click()
    expect(page.locator("#ended")).to_contain_text("ended in order")


def test_a_schedule_is_added_with_a_preview_run_edited_paused_and_removed(
    local_site: Site, program: Cli, page: Page
) -> None:
    page.goto(f"{local_site.url}/schedules")
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("Cron line").fill("30 25 * * *")
    expect(page.locator("#preview-wrong")).to_contain_text("hour")
    page.get_by_label("Cron line").fill("30 2 * * *")
    page.get_by_label("Time zone").fill("Europe/Oslo")
    expect(page.locator("#preview li")).to_have_count(5)
    expect(page.locator("#preview li").first).to_contain_text("02:30:00")
    expect(page.locator(".cmd")).to_be_hidden()  # nothing to copy while no command is given
    page.get_by_role("textbox", name="Command").fill("echo '<b>done</b>'")
    line = page.locator("#schedule-line").inner_text()
    page.get_by_role("button", name="Add schedule").click()

    expect(page.get_by_role("heading", name="nightly")).to_be_visible()
    expect(page.locator("#schedule-facts")).to_contain_text("at 02:30, every day")
    program.ok(*shlex.split(line.replace(" nightly ", " copied "))[1:])
    added, copied = program.json("schedule", "show", "nightly", "copied")
    same = ("cron", "every", "tz", "misfire", "overlap", "jitter", "job")
    assert {name: copied[name] for name in same} == {name: added[name] for name in same}
    program.ok("schedule", "remove", "copied")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#fires")).to_contain_text("by hand")
    expect(page.locator("#fires")).to_contain_text("pending")
    program.drain()
    expect(page.locator("#fires")).to_contain_text("completed")

    page.get_by_role("link", name="Edit").click()
    expect(page.locator(".cmd")).to_be_hidden()
    page.get_by_label("or every").fill("90m")
    page.get_by_label("Priority").fill("3")
    expect(page.locator("#schedule-line")).to_have_text("queuectl schedule edit nightly --every 90m --priority 3")
    expect(page.locator("#preview li")).to_have_count(5)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#schedule-facts")).to_contain_text("every 1h30m")
    [one] = program.json("schedule", "show", "nightly")
    assert (one["cron"], one["every"], one["tz"]) == (None, 5400, "Europe/Oslo")
    coming = [str(line["local"]) for line in program.json("schedule", "preview", "nightly", "5")]
    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#preview li")).to_have_text(coming)  # counted from when it began, not from now
    page.go_back()

    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#schedule-facts")).to_contain_text("paused")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator("#schedules")).to_contain_text("No schedules yet")


def test_what_is_wrong_with_a_schedule_stands_at_its_field_until_that_is_changed(
    local_site: Site, program: Cli, page: Page
) -> None:
    program.ok("schedule", "add", "nightly", "@daily", "true")
    page.goto(f"{local_site.url}/schedules?add=1")
    page.get_by_label("Name").fill("hourly")
    page.get_by_role("textbox", name="Command").fill("true")
    page.get_by_label("Cron line").fill("30 25 * * *")
    page.get_by_role("button", name="Add schedule").click()
    expect(_wrong_at(page, "cron")).to_contain_text("hour")
    expect(page.get_by_label("Cron line")).to_be_focused()
    expect(page.locator("#schedule-form .wrong:visible")).to_have_count(1)

    page.get_by_label("Priority").fill("3")
    expect(_wrong_at(page, "cron")).to_be_visible()
    page.get_by_label("Cron line").fill("30 2 * * *")
    expect(_wrong_at(page, "cron")).to_be_hidden()
    expect(page.get_by_label("Cron line")).not_to_have_attribute("aria-invalid", "true")

    for label, name in (("Time zone", "tz"), ("Timeout", "job.timeout"), ("or every", "every")):
        page.get_by_label(label).fill("Nowhere")
        page.get_by_role("button", name="Add schedule").click()
        expect(_wrong_at(page, name)).to_contain_text("Nowhere")
        page.get_by_label(label).fill("")
    page.get_by_label("or every").fill("Nowhere")
    page.get_by_role("button", name="Add schedule").click()
    expect(_wrong_at(page, "every")).to_be_visible()
    page.get_by_label("Cron line").fill("30 2 * * *")  # which empties the other
    expect(_wrong_at(page, "every")).to_be_hidden()

    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Add schedule").click()
    expect(page.locator("#schedule-form > .wrong")).to_contain_text("nightly")
    page.get_by_label("Name").fill("hourly")
    expect(page.locator("#schedule-form > .wrong")).to_be_hidden()

    page.goto(f"{local_site.url}/schedules/nightly?edit=1")
    page.get_by_label("Jitter").fill("2w")
    page.get_by_role("button", name="Save").click()
    expect(_wrong_at(page, "jitter")).to_be_visible()


def _wrong_at(page: Page, name: str) -> Locator:
    return page.locator(f".field:has([name='{name}']) .wrong")


def test_a_setting_is_set_wrongly_then_rightly_and_the_audit_trail_shows_it(
    local_site: Site, program: Cli, page: Page
) -> None:
    page.goto(f"{local_site.url}/settings")
    row = page.locator("tr#max_retries")

    row.get_by_role("textbox").fill("many")
    row.get_by_role("button", name="Set max_retries").click()
    expect(row.get_by_role("alert")).to_contain_text("bad number 'many'")
    row.get_by_role("textbox").fill("6")
    row.get_by_role("button", name="Set max_retries").click()

    expect(row).to_contain_text("stored")
    assert program.ok("config", "get", "max_retries").strip() == "6"
    program.ok("config", "set", "max_retries", "9")
    expect(row.get_by_role("textbox")).to_have_value("9")
    row.get_by_role("button", name="Unset max_retries").click()
    expect(row).to_contain_text("default")
    page.goto(f"{local_site.url}/audit?action=config")
    expect(page.locator("#acts tr")).to_have_count(3)
    expect(page.locator("#acts")).to_contain_text("max_retries=6")
    page.get_by_role("link", name="max_retries=6").click()
    expect(page).to_have_url(f"{local_site.url}/settings#max_retries")


def test_a_token_is_made_its_secret_shown_once_and_revoked(local_site: Site, program: Cli, page: Page) -> None:
    page.goto(f"{local_site.url}/settings")

    page.locator("#token-form").get_by_label("Name").fill("ci")
    page.locator("#token-form").get_by_label("Role").select_option("submit")
    page.get_by_role("button", name="Add token").click()

    secret = page.locator("#new-token-secret")
    expect(secret).to_contain_text("qctl_")
    told = secret.inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    expect(page.locator("#token-list")).to_contain_text("submit")
    expect(secret).to_be_empty()  # the page hears of the closing after the click
    assert told not in page.content()
    page.reload()
    assert told not in page.content()

    page.get_by_role("button", name="Revoke token ci").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    wait_for(lambda: not program.json("token", "list") or None, "no token")


def test_one_dead_job_of_a_group_is_tried_then_the_others_and_the_rest_is_purged(
    local_site: Site, program: Cli, page: Page, tmp_path: Path
) -> None:
    mended = tmp_path / "mended"
    for number in range(3):
        program.enqueue(
            "--queue", "mail", "--max-retries", "0", f"echo '<b>{number}</b>'; test -e '{mended}' || exit 23"
        )
    program.enqueue("--max-retries", "0", "exit 230")
    program.drain()
    page.goto(f"{local_site.url}/dlq")
    group = page.locator("article", has=page.get_by_role("heading", name="exit code 23", exact=True))
    expect(group).to_contain_text("3")
    expect(group.locator("pre")).to_contain_text("<b>2</b>")
    group.get_by_role("link", name="jobs that died of exit code 23").click()
    expect(page.locator("main table tbody tr")).to_have_count(3)
    page.go_back()

    mended.touch()
    group.get_by_role("button", name="Try one of exit code 23").click()
    canary = page.locator(".canary")
    expect(canary).to_contain_text("It waits, but no worker is running")
    program.drain()
    expect(canary).to_contain_text("It works now. 2 more died of")
    group.get_by_role("button", name="Retry all 2").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Give the 2 jobs that died of “exit code 23” a fresh life?")
    question.get_by_role("button", name="Retry 2").click()

    expect(group).to_have_count(0)
    program.drain()
    assert [job["state"] for job in program.json("list", "--queue", "mail")] == ["completed"] * 3
    page.goto(f"{local_site.url}/dlq?queue=default")
    page.get_by_role("button", name="Purge those that died of exit code 230").click()
    agreed = page.get_by_role("dialog").get_by_role("button", name="Purge 1")
    expect(agreed).to_be_visible()
    program.enqueue("--max-retries", "0", "exit 230")
    program.drain()
    agreed.click()
    asked_again = page.get_by_role("dialog").get_by_role("button", name="Purge 2")
    expect(asked_again).to_be_visible()  # nobody agreed to two
    assert len(program.json("list", "--state", "dead")) == 2
    asked_again.click()
    expect(page.locator("#dlq")).to_contain_text("The dead letter queue is empty")
