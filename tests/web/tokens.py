"""Tokens and logins for tests of who may do what."""

from contextlib import closing
from urllib.parse import urlencode

from queuectl.actions.connect import Target, connect
from queuectl.actions.tokens import add_token, revoke_token
from queuectl.store import audit
from queuectl.store.audit import Act
from tests.web.serving import Answer, Site

FORM = "application/x-www-form-urlencoded"


def token_of(target: Target, role: str, name: str = "", **options: int) -> str:
    """Make a token and return its secret."""
    with closing(connect(target)) as database:
        return add_token(database, name or role, role, who="test", **options)[1]


def revoke(target: Target, name: str) -> None:
    with closing(connect(target)) as database:
        revoke_token(database, name, who="test")


def acts_of(target: Target, action: str) -> list[Act]:
    """Return what is on record, newest first."""
    with closing(connect(target)) as database:
        return database.read(lambda tx: audit.newest(tx, 1000, action=action))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def send_login(site: Site, secret: str, wanted: str = "/queues", **headers: str) -> Answer:
    """Send the form of the login."""
    body = urlencode({"token": secret, "next": wanted}).encode()
    return site.ask("POST", "/login", body, {"Content-Type": FORM, **headers})


def cookie_in(answer: Answer) -> dict[str, str]:
    """Return the session of an answer as a browser sends it back."""
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
