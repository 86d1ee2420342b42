"""What tests of the web face may ask for: a running server on each kind of store, and a real browser."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from queuectl.actions.connect import Target
from tests.web.serving import Site, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@pytest.fixture
def site(target: Target) -> Iterator[Site]:
    """The web face of an empty store of each kind."""
    with serving(target) as site:
        yield site


@pytest.fixture
def local_site(sqlite_target: Target) -> Iterator[Site]:
    """The web face of an empty SQLite store, for what does not depend on the store."""
    with serving(sqlite_target) as site:
        yield site


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Debian's Chromium, one for all tests of a process."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """A fresh tab that fails its test when a script of ours does."""
    context = browser.new_context()
    context.set_default_timeout(30_000)
    tab = context.new_page()
    broken: list[str] = []
    tab.on("pageerror", lambda error: broken.append(str(error)))
    yield tab
    tab.unroute_all(behavior="ignoreErrors")  # an answer under way would fail whichever test comes next
    context.close()
    assert broken == []
