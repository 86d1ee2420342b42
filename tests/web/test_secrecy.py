"""What no answer tells: the values of variables that sound secret, and tokens."""

import json
import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from queuectl.web import app
from tests.program import Cli
from tests.web.serving import Answer, Site
from tests.web.tokens import bearer, token_of

SECRET = "hunter2-abc"
PLAIN = "not-a-secret-at-all"
ENV = {"API_TOKEN": SECRET, "DB_PASSWORD": SECRET, "DATABASE_URL": f"postgresql://me:{SECRET}@db/x", "PLAIN": PLAIN}
STREAMS = ("/events", "/follow", "/output")


def readable() -> Iterator[str]:
    """Give an address of everything that can be read, of a job and a schedule that are there."""
    for prefix, modules in ((app.API, app.REST), ("", app.PAGES)):
        for route in (route for module in modules for route in module.router.routes):
            if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not route.path.endswith(STREAMS):
                named = "s1" if "schedules" in route.path else "default" if "queues" in route.path else "j1"
                yield re.sub(r"\{[^}]*\}", named, prefix + route.path)


@pytest.mark.parametrize("role", ["read", "submit", "operate", "admin"])
def test_whoever_may_operate_is_told_of_variables_what_the_command_line_prints(site: Site, cli: Cli, role: str) -> None:
    cli.ok("enqueue", json.dumps({"id": "j1", "command": "true", "env": ENV}))
    printed = cli.json("show", "j1")[0]["env"]
    headers = bearer(token_of(site.target, role))

    shown = site.get("/api/v1/jobs/j1", **headers).json()["env"]
    listed = site.get("/api/v1/jobs", **headers).json()["jobs"][0]["env"]

    assert printed == ENV
    assert shown == listed
    if role in ("operate", "admin"):
        assert shown == ENV
    else:
        assert shown == {
            "API_TOKEN": "•••", "DB_PASSWORD": "•••", "DATABASE_URL": "postgresql://me:•••@db/x", "PLAIN": PLAIN
        }  # fmt: skip


def test_the_value_of_a_secret_variable_is_in_no_answer_to_readers_and_on_no_page(site: Site) -> None:
    job = {"command": "true", "env": ENV}
    assert site.post("/api/v1/jobs", {"id": "j1", **job}).status == 201
    assert site.post("/api/v1/schedules", {"name": "s1", "every": "1h", "job": job}).status == 201
    answers: list[Answer] = []
    for role in ("read", "submit", "operate", "admin"):
        secret = token_of(site.target, role)
        found = [
            (path, site.ask("GET", path, headers={**bearer(secret), "Accept": "text/html"})) for path in readable()
        ]
        # Whoever may operate could read them anyway, by a job that prints its environment (rest/masking.py).
        is_hidden = role in ("read", "submit")
        answers += [answer for path, answer in found if is_hidden or not path.startswith("/api/")]
        assert [path for path, answer in found if secret in answer.text] == []

    assert [answer.text for answer in answers if SECRET in answer.text] == []
    assert sum(answer.status == 200 for answer in answers) > 40
    told = site.get("/api/v1/jobs/j1", **bearer(token_of(site.target, "read", "again"))).json()["env"]
    assert told["PLAIN"] == PLAIN  # what does not sound secret is told, else this test would show nothing
    assert told.keys() == ENV.keys()
