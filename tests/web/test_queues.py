"""Queues in the web face."""

import pytest
from playwright.sync_api import Page

from tests.web.serving import Site


def test_a_queue_is_paused_over_rest(site: Site) -> None:
    assert site.get("/api/v1/queues").json() == {"queues": []}


@pytest.mark.needs("chromium")
def test_the_page_of_the_queues_is_drawn(local_site: Site, page: Page) -> None:
    page.goto(f"{local_site.url}/queues")

    assert page.title() == "Queues · queuectl"
