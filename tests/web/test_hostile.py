"""Commands, errors, variables and output made to break out of a page: nothing executes and the layout holds."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.program import Cli, running_cli
from tests.web.axe import DESK, PHONE
from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")
expect.set_options(timeout=30_000)

MARKUP = (
    '<script>window.pwned=1;alert(1)</script><img src=x onerror="window.pwned=2;alert(2)"><svg onload=alert(3)>'
    "</textarea></pre></code></table></svg>'\"><iframe srcdoc='<script>parent.pwned=4</script>'></iframe>"
    '<b id=injected>{{7*7}}${7*7}</b><a href="javascript:alert(5)">x</a><!--'
)
TURNED = "\u202e\u2067evil\u200f"
STEERING = (
    b"\x1b]0;title\x07\x1b]8;;javascript:window.pwned=6\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[31mred\x1b[0m\x00\xff\xfe\x07"
    b"\x1b]52;c;aGk=\x07\xef\xbb\xbf\x9b31m\r\noverwritten\rshown\n\x1b]0;never ended\nvisible after it\n"
)


@pytest.fixture
def cli(local_site: Site, tmp_path: Path) -> Iterator[Cli]:
    """The program itself on the store that is served."""
    with running_cli(local_site.target, tmp_path) as cli:
        yield cli


def _watch(page: Page) -> list[str]:
    """Return a list that fills with what must not happen."""
    wrong: list[str] = []

    def close(dialog: object) -> None:
        wrong.append(f"dialog: {dialog}")
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", close)
    page.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    page.on(
        "request", lambda request: None if request.url.startswith("http://127.0.0.1") else wrong.append(request.url)
    )
    return wrong


def _check(page: Page, site: Site, path: str, wrong: list[str]) -> None:
    assert wrong == [], path
    found = page.evaluate(
        """() => ({
          pwned: window.pwned,
          nodes: document.querySelectorAll("#injected, iframe, img, a[href^='javascript:'], script:not([src])").length,
          handlers: [...document.querySelectorAll("*")].filter((node) =>
            [...node.attributes].some((each) => each.name.startsWith("on"))).length,
        })"""
    )
    assert found == {"pwned": None, "nodes": 0, "handlers": 0}, path
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), (path, size)
    assert page.url.startswith(site.url)


def test_nothing_that_others_wrote_executes_or_breaks_the_page(
    local_site: Site, page: Page, cli: Cli, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    output.write_bytes(
        b"x" * (1 << 20) + b"\n" + MARKUP.encode() + b"\n" + STEERING + TURNED.encode() + b"\nlast line\n"
    )
    command = f"cat '{output}'; exit 3 # {MARKUP.replace(chr(39), '')}{TURNED}\x1b[31m {'y' * 3000}"
    folder = f"/nowhere/{MARKUP.replace('/', '')}{TURNED}"
    cli.enqueue(
        "--max-retries", "0", "--unique", MARKUP[:200], "--env", f"HOSTILE={MARKUP}{TURNED}", "--command", command
    )
    cli.enqueue("--max-retries", "0", "--cwd", folder, "--command", "true")
    cli.enqueue("--after", "1", "--on-dead-dependency", "keep", "--command", command)
    cli.drain("--concurrency", "1")
    wrong = _watch(page)

    page.goto(f"{local_site.url}/jobs/1")
    log = page.locator("#log-lines")
    expect(log).to_contain_text("last line")
    expect(page.locator("#log-lines .t-f1").first).to_have_text("red")
    expect(log).to_contain_text(MARKUP)
    expect(log).to_contain_text("visible after it")
    page.get_by_role("button", name="Load more above").click()
    expect(page.get_by_role("button", name="more characters")).to_have_count(1)
    lines = page.evaluate("() => [...document.querySelectorAll('.log-line')].map((line) => line.textContent)")
    assert "shownritten" in lines
    assert page.title() == "Job 1 · queuectl"
    assert not any(char in line for line in lines for char in "\x00\x07\x1b\u202e\u2067")
    expect(page.locator("#variables")).to_contain_text("\\u202e")
    _check(page, local_site, "the log", wrong)
    page.get_by_label("Search in the log").fill("<img src")
    expect(page.locator("#log-lines mark")).to_have_text("<img src")
    page.get_by_role("button", name="Edit").click()
    expect(page.locator("#edit-command")).to_have_value(command)
    _check(page, local_site, "the edit form", wrong)

    for path, seen in (
        ("/jobs/2", "cannot enter"),
        ("/jobs/3", "Why it waits"),
        ("/jobs", "3 jobs"),
        ("/jobs?columns=id,error,folder,unique,command", "3 jobs"),
        (f"/jobs?text={quote(MARKUP)}", "No jobs match"),
        (f"/jobs?queue={quote(MARKUP)}", "bad queue"),
        (f"/jobs?state={quote(TURNED)}&sort={quote(MARKUP)}", "unknown state"),
        (f"/jobs/{quote(MARKUP.replace('/', ''))}", "No such job"),
        ("/jobs/new?clone=1", "Clone of job 1"),
        (f"/jobs/new?clone={quote(MARKUP)}", "no job"),
    ):
        page.set_viewport_size(DESK)
        page.goto(f"{local_site.url}{path}")
        expect(page.locator("main")).to_contain_text(seen)
        _check(page, local_site, path, wrong)
