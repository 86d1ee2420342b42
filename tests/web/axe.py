"""What axe-core, the usual checker of accessibility, finds wrong with a page."""

import json
from importlib.util import find_spec
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

PHONE = ViewportSize(width=390, height=844)
DESK = ViewportSize(width=1280, height=900)


def violations(page: Page) -> list[str]:
    """Return what is wrong with a page as it is shown now: the rule, and where."""
    page.evaluate(_script())
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{each['id']}: {node['target']} {json.dumps(node['html'])[:200]}" for each in found for node in each["nodes"]
    ]


def all_violations(page: Page) -> list[str]:
    """Return what is wrong with a page in light and dark, wide and on a phone."""
    found: list[str] = []
    size = page.viewport_size
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name, wanted in (("wide", DESK), ("phone", PHONE)):
            page.set_viewport_size(wanted)
            found += [f"{scheme}, {name}: {each}" for each in violations(page)]
    page.emulate_media(color_scheme="light")
    if size is not None:
        page.set_viewport_size(size)
    return found


def _script() -> str:
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text()
