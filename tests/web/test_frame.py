"""The frame of every page: theme, keyboard, acts, and what a screen reader finds."""

import pytest
from playwright.sync_api import Page

from tests.web.axe import all_violations
from tests.web.serving import Site

pytestmark = pytest.mark.needs("chromium")


def test_the_frame_is_accessible_in_both_themes_and_at_phone_width(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/queues")

    assert all_violations(page) == []
