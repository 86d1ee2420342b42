"""Loops: running what is asynchronous from a test that is not."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor


def run_apart(work: Coroutine[object, object, None]) -> None:
    """Run it to its end in a thread of its own: that of the tests has a loop once a browser was driven in it."""
    with ThreadPoolExecutor() as pool:
        pool.submit(asyncio.run, work).result()
