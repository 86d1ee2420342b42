"""Screenshots: takes a picture of every page of the dashboard, light and dark, into docs/images. Run: make screenshots.

A store in a throw-away home is filled by demo.py, served by `queuectl serve` and looked at with Chromium; workers and
server are ended and the home is removed, whatever happens.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from docs import demo

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1280, 800
MOST_BYTES = 150_000
WAIT_MS = 60_000
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
]  # fmt: skip
PAGES = {
    "overview": "/?range=24h",
    "jobs": "/jobs?queue=default",
    "job": "/jobs/thumbnails",
    "new-job": "/jobs/new",
    "dlq": "/dlq",
    "queues": "/queues",
    "queue": "/queues/mail",
    "workers": "/workers",
    "schedules": "/schedules",
    "schedule": "/schedules/check-links",
    "settings": "/settings",
    "audit": "/audit",
    "health": "/health",
}


def main() -> int:
    """Take all pictures, or those whose names are given."""
    wanted = sys.argv[1:] or list(PAGES)
    unknown = [name for name in wanted if name not in PAGES]
    if unknown:
        print(f"no page {unknown[0]!r}; there are: {', '.join(PAGES)}", file=sys.stderr)
        return 2
    chromium = shutil.which("chromium")
    if chromium is None:
        print("needs chromium; on Debian: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with _served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        failed = [name for name in wanted if not _taken(browser, url, name)]
        browser.close()
    return 1 if failed else 0


@contextmanager
def _served() -> "Iterator[str]":
    """Give the address of a server of a filled store."""
    home = tempfile.mkdtemp(prefix="queuectl-pictures-")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUEUECTL_")}
    environ["QUEUECTL_HOME"] = os.path.join(home, "queue")
    server = None
    try:
        print("filling a store")
        demo.fill(environ, Path(home) / "shop")
        server = subprocess.Popen(
            [demo.PROGRAM, "serve", "--port", "0", "--json"], env=environ, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        yield str(json.loads(server.stdout.readline())["url"]).rstrip("/")
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        subprocess.run([demo.PROGRAM, "worker", "stop", "--now"], env=environ, check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


def _taken(browser: Browser, url: str, name: str) -> bool:
    """Take the pictures of a page; False means that there is none, or that they are too large."""
    is_good = True
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page = context.new_page()
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        answer = page.goto(url + PAGES[name])
        status = 0 if answer is None else answer.status
        if status == 200:
            page.wait_for_selector("html[data-live=yes]", timeout=WAIT_MS)
            page.evaluate("document.fonts.ready")
            path = IMAGES / f"{name}-{scheme}.png"
            page.screenshot(path=path)
            size = path.stat().st_size
            is_good = is_good and size <= MOST_BYTES
            print(f"{path.name}: {size // 1000} KB" + ("" if size <= MOST_BYTES else ", too large"))
        else:
            print(f"{name}: {PAGES[name]} answers {status}", file=sys.stderr)
            is_good = False
        context.close()
    return is_good


if __name__ == "__main__":
    sys.exit(main())
