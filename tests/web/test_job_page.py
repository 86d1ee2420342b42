"""The page of a job in a browser: added from the form, watched while it runs, and everything a person does to it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.program import Cli, running_cli
from tests.web.axe import PHONE, all_violations
from tests.web.serving import Site
from tests.web.test_live_pages import WATCH_SHIFTS, set_hidden

pytestmark = pytest.mark.needs("chromium")
expect.set_options(timeout=30_000)
COUNT_READERS = """
    window.readers = [];
    const plain = window.fetch;
    window.fetch = (url, options) => {
        const signal = options?.signal;
        if (String(url).includes("follow=true") && !window.readers.includes(signal)) window.readers.push(signal);
        return plain(url, options);
    };
"""
"""Notes who reads a log, by what would stop them."""


@pytest.fixture
def cli(local_site: Site, tmp_path: Path) -> Iterator[Cli]:
    """The program itself on the store that is served."""
    with running_cli(local_site.target, tmp_path) as cli:
        yield cli


def _state(page: Page, state: str) -> None:
    expect(page.locator("#job-head .badge").first).to_have_text(state)


def _say_yes(page: Page, question: str) -> None:
    dialog = page.locator("dialog.question")
    expect(dialog.locator("h2")).to_have_text(question)
    dialog.locator(".btn.primary").click()


def test_a_job_is_added_from_the_form_watched_while_it_runs_and_its_log_read_live(
    local_site: Site, page: Page, cli: Cli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    command = f"printf '\\033[32mfirst\\033[0m line\\n'; while [ ! -e '{gate}' ]; do sleep 0.05; done; echo second"
    page.goto(f"{local_site.url}/jobs/new")
    expect(page.locator(".cmd")).to_have_count(1)
    page.get_by_role("textbox", name="Command").fill(command)
    page.locator("#new-queue").fill("mail")
    page.locator("#new-priority").fill("high")
    page.locator("#new-tags").fill("night, slow")
    page.get_by_label("Variables").fill("COLOUR=it's blue")
    page.get_by_role("button", name="Add job").click()

    expect(page.locator("#wrong-priority")).to_contain_text("priority")
    expect(page.locator("#new-priority")).to_be_focused()
    page.locator("#new-priority").fill("7")
    line = page.locator("#new-line").inner_text()
    assert line.startswith("queuectl enqueue --queue mail --priority 7 --cwd / --tag night --tag slow --env ")
    page.get_by_role("button", name="Add job").click()

    page.wait_for_url(re.compile(r"/jobs/1$"))
    _state(page, "pending")
    expect(page.locator("#why")).to_contain_text("worker")
    page.evaluate("window.isSamePage = true")
    cli.start("worker", "start")
    _state(page, "processing")
    expect(page.locator("#log-lines .log-line").first).to_have_text("first line")
    expect(page.locator("#log-lines .t-f2")).to_have_text("first")
    expect(page.locator("#timeline .span-run")).to_have_count(1)
    gate.touch()
    expect(page.locator("#log-lines")).to_contain_text("second")
    _state(page, "completed")
    expect(page.locator("#log-state")).to_contain_text("completed")
    expect(page.locator("#timeline .span-good")).to_have_count(1)
    expect(page.locator("#log-download")).to_be_visible()
    assert page.evaluate("window.isSamePage")

    [job] = cli.json("show", "1")
    assert (job["command"], job["queue"], job["priority"]) == (command, "mail", 7)
    assert (job["tags"], job["env"]) == (["night", "slow"], {"COLOUR": "it's blue"})
    page.get_by_label("Search in the log").fill("LINE")
    expect(page.locator("#log-count")).to_have_text("1 of 1")
    expect(page.locator("#log-lines mark")).to_have_text("line")
    copied = cli.ok("enqueue", *_words(line)).strip()  # what the form said is what a shell reads
    [again] = cli.json("show", copied)
    assert {name: again[name] for name in ("command", "env", "tags", "queue")} == {
        name: job[name] for name in ("command", "env", "tags", "queue")
    }
    assert again["cwd"] == (job["cwd"] or "/")
    assert all_violations(page) == []


def test_a_search_in_a_log_shows_its_first_match_at_once(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("seq -f 'line %g' 400")
    cli.drain()
    page.goto(f"{local_site.url}/jobs/1")
    expect(page.locator("#log-lines")).to_contain_text("line 400")

    page.get_by_label("Search in the log").fill("line 10")

    expect(page.locator("#log-count")).to_have_text("1 of 11")
    expect(page.locator("#log-lines mark.current")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#log-count")).to_have_text("2 of 11")
    page.get_by_label("Search in the log").fill("line 39")
    page.keyboard.press("Enter")
    expect(page.locator("#log-count")).to_have_text("1 of 11")
    expect(page.locator("#log-lines mark.current")).to_be_in_viewport()


def test_a_search_in_a_running_log_says_that_it_is_followed_no_more(
    local_site: Site, page: Page, cli: Cli, tmp_path: Path
) -> None:
    gates = [tmp_path / name for name in ("one", "two")]
    waits = [f"while [ ! -e '{gate}' ]; do sleep 0.05; done; echo {gate.name}" for gate in gates]
    cli.enqueue(f"seq -f 'line %g' 400; {'; '.join(waits)}; sleep 600")
    cli.start("worker", "start")
    page.goto(f"{local_site.url}/jobs/1")
    expect(page.locator("#log-lines")).to_contain_text("line 400")
    gates[0].touch()
    expect(page.locator("#log-lines")).to_contain_text("one")
    expect(page.locator("#log-state")).to_have_text("following")

    page.get_by_label("Search in the log").fill("line 10")

    expect(page.get_by_label("Follow")).not_to_be_checked()
    expect(page.locator("#log-state")).to_have_text("Follow is off; more is added at the end")
    gates[1].touch()
    expect(page.locator("#log-lines")).to_contain_text("two")
    expect(page.locator("#log-state")).to_have_text("Follow is off; more is added at the end")
    page.get_by_label("Follow").check()
    expect(page.locator("#log-state")).to_have_text("following")


def _words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)[2:]


def test_a_running_job_is_cancelled_retried_edited_and_cloned_from_its_page(
    local_site: Site, page: Page, cli: Cli
) -> None:
    cli.enqueue("--env", "API_TOKEN=geheim", "--env", "PLAIN=x", "--memory", "1G", "--tag", "old", "sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state("1", "processing")
    page.goto(f"{local_site.url}/jobs/1")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("dialog.question button")).to_have_text(["Back", "Cancel"])
    expect(page.locator("dialog.question .btn.danger")).to_have_text("Cancel")
    _say_yes(page, "Cancel job 1? It is running.")
    _state(page, "cancelled")

    page.get_by_role("button", name="Edit").click()
    expect(page.locator("#edit .acts button")).to_have_text(["Back", "Save"])
    page.locator("#edit-command").fill("exit 3")
    page.locator("#edit-max_retries").fill("0")
    page.locator("#edit-tags").fill("new")
    expect(page.locator("#edit-line")).to_have_text(
        "queuectl edit 1 --command 'exit 3' --max-retries 0 --tag new --untag old"
    )
    page.locator("#edit-queue").fill("no queue")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#edit-wrong-queue")).to_contain_text("bad queue")
    page.locator("#edit-queue").fill("mail")
    expect(page.locator("#edit-wrong-queue")).to_be_hidden()
    page.locator("#edit-timeout").fill("soon")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#edit-wrong-timeout")).to_contain_text("bad duration 'soon'")
    expect(page.locator("#edit-timeout")).to_be_focused()
    expect(page.locator("#edit-wrong-queue")).to_be_hidden()
    expect(page.locator("#edit-wrong")).to_be_hidden()
    page.locator("#edit-timeout").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#edit")).to_be_hidden()
    expect(page.locator("#command")).to_have_text("exit 3")

    page.locator("body").press("r")
    _state(page, "dead")
    expect(page.locator("#verdict")).to_contain_text("Cause of death: exit code 3")
    expect(page.locator("#log-tabs a")).to_contain_text(["Attempt 1", "Attempt 1 (run 2)"])
    expect(page.locator("#variables")).to_contain_text("•••")
    assert "geheim" not in page.content()
    page.get_by_role("link", name="Clone").click()
    expect(page.locator("#page .notice")).to_contain_text("the value of API_TOKEN is not shown")
    expect(page.get_by_label("Variables")).to_have_value("API_TOKEN=\nPLAIN=x")
    expect(page.get_by_label("Other fields, as JSON")).to_have_value(re.compile(r'"memory": 1073741824'))
    page.locator("#new-cwd").fill("")
    expect(page.locator("#new-line")).to_contain_text('"cwd":"/"')
    assert all_violations(page) == []
    page.get_by_role("textbox", name="Command").fill("true")
    page.get_by_role("button", name="Add job").click()
    page.wait_for_url(re.compile(r"/jobs/2$"))
    _state(page, "completed")
    page.get_by_role("button", name="Delete").click()
    _say_yes(page, "Delete job 2 with its history and log?")
    page.wait_for_url(re.compile(r"/jobs$"))
    assert cli.run("show", "2").returncode == 3


def test_a_waiting_job_is_held_and_released_and_its_dependencies_are_drawn(
    local_site: Site, page: Page, cli: Cli
) -> None:
    cli.enqueue("--id", "first", "echo one")
    cli.enqueue("--id", "second", "--after", "first", "echo two")
    cli.enqueue("--id", "third", "--after", "second,any:first", "echo three")
    page.goto(f"{local_site.url}/jobs/second")
    _state(page, "blocked")
    expect(page.locator("#graph a.node")).to_have_count(3)
    expect(page.locator("#why tr[data-key=after]")).to_contain_text("shut")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator("#job-head")).to_contain_text("held")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("button", name="Hold")).to_be_visible()
    cli.drain("--concurrency", "1")
    expect(page.locator("#graph .state-completed")).to_have_count(3)
    assert all_violations(page) == []

    page.locator("#graph a.node").last.click()
    page.wait_for_url(re.compile(r"/jobs/third$"))


def test_on_a_phone_the_caption_of_the_gates_is_as_wide_as_their_table(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("true")
    page.set_viewport_size(PHONE)
    page.goto(f"{local_site.url}/jobs/1")
    caption = page.locator("#why caption")
    expect(caption).to_contain_text("Every gate it must pass")

    widths = caption.evaluate("(each) => [each.offsetWidth, each.closest('table').offsetWidth]")

    assert widths[0] == widths[1]


def test_an_unknown_job_is_a_page_with_the_nearest(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("--id", "nightly", "true")

    answer = page.goto(f"{local_site.url}/jobs/nigthly")

    assert answer is not None
    assert answer.status == 404
    expect(page.locator("main")).to_contain_text("no job 'nigthly'; did you mean 'nightly'?")
    assert all_violations(page) == []
    cli.enqueue("true")
    expect(page.locator("#pages")).to_contain_text("Jobs 2")
    assert page.locator("#notices").inner_text() == ""  # it never was there, so it is not gone


def test_of_a_long_log_the_end_is_shown_first_and_the_rest_on_demand(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("--max-retries", "0", "--split-output", "seq 60000; head -c 20000 /dev/zero | tr '\\0' x >&2; exit 1")
    cli.drain("--concurrency", "1")
    page.goto(f"{local_site.url}/jobs/1?stream=stdout")
    lines = page.locator("#log-lines .log-line")
    expect(page.locator("#log-lines")).to_contain_text("60000")

    button = page.get_by_role("button", name="Load more above")
    while button.count():
        before = lines.count()
        button.click()
        expect(lines).not_to_have_count(before)
    expect(lines.first).to_have_text("1")
    texts = page.evaluate("[...document.querySelectorAll('.log-line')].map((line) => line.textContent.trim())")
    assert [text for text in texts if text] == [str(number) for number in range(1, 60_001)]

    page.get_by_role("link", name="stderr").click()
    fold = page.get_by_role("button", name="16,000 more characters")
    fold.click()
    expect(fold).to_have_count(0)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "1-run1.log"
    assert Path(saved.value.path()).read_bytes() == b"x" * 20_000


def test_what_goes_on_ticks_and_moves_nothing_else(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state("1", "processing")
    for path, where in (("/jobs/1", "#runs td[data-label=Took] time"), ("/jobs", "#rows td[data-label=Took] time")):
        page.goto(local_site.url + path)
        page.wait_for_selector("html[data-ready]")
        page.evaluate(WATCH_SHIFTS)
        shown = page.locator(where)
        before = shown.inner_text()

        expect(shown).not_to_have_text(before)

        assert re.fullmatch(r"\d+s|\d+m\d\ds", shown.inner_text())
        moved = page.evaluate("window.shifts")
        assert [each for each in moved if 'class="ticking"' not in each] == []  # its own text grows to the left


def test_a_log_without_output_is_no_error(local_site: Site, page: Page, cli: Cli) -> None:
    cli.enqueue("true")
    cli.drain()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{local_site.url}/jobs/1")

    expect(page.locator("#log-state")).to_have_text("nothing was printed")
    assert said == []


def test_a_tab_that_was_hidden_while_its_log_rested_has_one_reader_again(
    local_site: Site, page: Page, cli: Cli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    cli.enqueue(f"echo first; while [ ! -e '{gate}' ]; do sleep 0.05; done; echo second; sleep 600")
    cli.start("worker", "start")
    cli.wait_for_state("1", "processing")
    page.add_init_script(COUNT_READERS)
    page.route("**/output?*follow=true*", lambda route: route.fulfill(status=503))
    page.goto(f"{local_site.url}/jobs/1")
    expect(page.locator("#log-state")).to_have_text("not following: too many follow logs just now")
    page.route("**/jobs/1", lambda _route: None)  # so that no news of the page begins it anew

    for _ in range(3):
        set_hidden(page, is_hidden=True)
        set_hidden(page, is_hidden=False)
    page.unroute("**/output?*follow=true*")
    gate.touch()

    expect(page.locator("#log-lines")).to_contain_text("second")
    assert page.locator("#log-lines .log-line", has_text="second").count() == 1
    assert page.evaluate("window.readers.filter((signal) => !signal.aborted).length") == 1
