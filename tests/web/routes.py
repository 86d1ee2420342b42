"""Everything the app serves, for tests that hold for each part of it."""

import re
from collections.abc import Iterator

from fastapi.routing import APIRoute

from queuectl.web import app
from queuectl.web.rest import schedules

OPEN = ("/login", "/healthz", "/readyz")
"""What is served to whoever asks."""


def every_route() -> Iterator[tuple[str, str]]:
    """Give the method and the path of everything the app serves, with the names of what varies."""
    yield from (("GET", path) for path in ("/openapi.json", "/metrics"))
    for prefix, modules in ((app.API, app.REST), ("", app.PAGES)):
        for route in (route for module in modules for route in module.router.routes):
            assert isinstance(route, APIRoute)
            yield from ((method, prefix + route.path) for method in route.methods or ())
    for route in schedules.instants.routes:
        assert isinstance(route, APIRoute)
        yield from ((method, app.API + route.path) for method in route.methods or ())


def an_address_of(path: str) -> str:
    """Return an address of a route: whatever varies in it is called x."""
    return re.sub(r"\{[^}]*\}", "x", path)
