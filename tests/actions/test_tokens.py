"""Making, using and revoking tokens."""

import re

import pytest

from queuectl.actions import tokens
from queuectl.errors import BadInput, NotFound, Refused, UnknownName
from queuectl.model.token import Role, hash_of
from queuectl.store import audit
from queuectl.store import tokens as kept
from queuectl.store.database import Database


def test_the_secret_is_random_and_only_its_hash_is_kept(db: Database) -> None:
    token, secret = tokens.add_token(db, "ci", "submit", who="me@here")
    _, other = tokens.add_token(db, "ci2", "submit", who="me@here")

    assert re.fullmatch(r"qctl_[A-Za-z0-9_-]{43,}", secret)
    assert secret != other
    assert db.read(lambda tx: kept.with_hash(tx, hash_of(secret))) == token
    rows = db.read(lambda tx: tx.rows("SELECT * FROM tokens"))
    assert secret.removeprefix("qctl_") not in repr(rows)


def test_what_is_done_to_tokens_is_on_record(db: Database) -> None:
    tokens.add_token(db, "ci", "submit", lasts_ms=86_400_000, who="me@here")
    tokens.revoke_token(db, "ci", who="you@there")

    found = db.read(lambda tx: audit.newest(tx, 10, action="token"))

    assert [(act.who, act.action, act.target) for act in found] == [
        ("you@there", "token revoke", "ci"),
        ("me@here", "token add", "ci submit for 1d"),
    ]


def test_a_token_ends_when_it_was_said_to(db: Database) -> None:
    token, _ = tokens.add_token(db, "ci", "admin", lasts_ms=1000, who="me")

    assert token.expires_at == token.created_at + 1000
    assert not token.is_over(token.created_at + 999)
    assert token.is_over(token.created_at + 1000)


@pytest.mark.parametrize(
    "name, role, lasts_ms, error",
    [
        ("", "read", None, BadInput),
        ("a b", "read", None, BadInput),
        ("x", "reed", None, UnknownName),
        ("x", "read", 0, BadInput),
    ],
)
def test_a_bad_token_is_refused(
    db: Database, name: str, role: str, lasts_ms: int | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        tokens.add_token(db, name, role, lasts_ms=lasts_ms, who="me")


def test_a_name_is_given_once_and_is_free_again_when_revoked(db: Database) -> None:
    first, _ = tokens.add_token(db, "ci", "read", who="me")
    with pytest.raises(Refused, match="already"):
        tokens.add_token(db, "ci", "admin", who="me")

    tokens.revoke_token(db, "ci", who="me")
    second, _ = tokens.add_token(db, "ci", "admin", who="me")

    assert first.id != second.id


def test_revoking_what_is_not_there_names_the_nearest(db: Database) -> None:
    tokens.add_token(db, "deploy", "read", who="me")

    with pytest.raises(NotFound, match="did you mean 'deploy'"):
        tokens.revoke_token(db, "deploi", who="me")


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_what_those_before_it_may(role: Role) -> None:
    ranks = [Role.READ, Role.SUBMIT, Role.OPERATE, Role.ADMIN]

    assert [role.covers(other) for other in ranks] == [ranks.index(role) >= place for place in range(4)]
