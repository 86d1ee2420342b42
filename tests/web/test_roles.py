"""What each role may do: every handler is held to the role that docs/adr/0020-who-may-do-what.md gives it."""

import pytest

from queuectl.actions.connect import Target
from tests.web.routes import OPEN, an_address_of, every_route
from tests.web.serving import Answer, Site, serving
from tests.web.tokens import bearer, token_of

ROLES = ("read", "submit", "operate", "admin")
SUBMIT = {("POST", "/api/v1/jobs"), ("POST", "/api/v1/jobs/bulk"), ("GET", "/jobs/new")}
ADMIN = {
    ("POST", "/api/v1/jobs/delete"),
    ("DELETE", "/api/v1/jobs/{id}"),
    ("POST", "/api/v1/dlq/purge"),
    ("PUT", "/api/v1/settings/{key}"),
    ("DELETE", "/api/v1/settings/{key}"),
    ("GET", "/api/v1/tokens"),
    ("POST", "/api/v1/tokens"),
    ("DELETE", "/api/v1/tokens/{name}"),
}
ROUTES = sorted({each for each in every_route() if each[1] not in (*OPEN, "/logout")})


def needed(method: str, path: str) -> str:
    """Return the least role that may ask for something; a write that nobody thought of is for those who operate."""
    if (method, path) in SUBMIT:
        return "submit"
    if (method, path) in ADMIN:
        return "admin"
    return "read" if method == "GET" else "operate"


def asked(site: Site, method: str, path: str, secret: str) -> Answer:
    """Ask for something; what would be read is asked for by HEAD: a stream that is let in would never end."""
    if method == "GET":
        return site.ask("HEAD", an_address_of(path), headers=bearer(secret))
    return site.ask(method, an_address_of(path), {}, bearer(secret))


@pytest.fixture
def secrets(sqlite_target: Target) -> dict[str, str]:
    """A token of each role."""
    return {role: token_of(sqlite_target, role) for role in ROLES}


def test_whoever_has_the_role_that_something_needs_may_ask_for_it(
    sqlite_target: Target, secrets: dict[str, str]
) -> None:
    with serving(sqlite_target) as site:
        statuses = {each: asked(site, *each, secrets[needed(*each)]).status for each in ROUTES}

    assert {each: status for each, status in statuses.items() if status in (401, 403, 405, 500)} == {}
    assert statuses.keys() >= SUBMIT | ADMIN


def test_whoever_has_the_role_below_is_refused_and_told_which_is_needed(
    sqlite_target: Target, secrets: dict[str, str]
) -> None:
    wanted = [each for each in ROUTES if needed(*each) != "read"]
    assert len(wanted) > 30
    with serving(sqlite_target) as site:
        below = {each: ROLES[ROLES.index(needed(*each)) - 1] for each in wanted}
        answers = {each: asked(site, *each, secrets[below[each]]) for each in wanted}

    assert {each: answer.status for each, answer in answers.items() if answer.status != 403} == {}
    for each, answer in answers.items():
        if each[0] != "GET":
            assert answer.json()["detail"] == f"this needs the role {needed(*each)}; yours is {below[each]}", each
