"""Tokens in the store."""

import pytest

from queuectl.model.token import Role, Token
from queuectl.store import tokens
from queuectl.store.database import Database

NOW = 1_800_000_000_000


@pytest.fixture
def at(db: Database) -> list[int]:
    """The clock of the store, for the test to turn."""
    clock = [NOW]
    db.read_clock = lambda _: clock[0]
    return clock


def token(name: str, **fields: object) -> Token:
    made = Token(
        id=f"id-{name}",
        name=name,
        role=Role.READ,
        created_at=NOW,
        created_by="me@here",
        expires_at=None,
        last_used_at=None,
        last_used_from=None,
    )
    return made.replace(**fields)


def test_a_token_is_found_by_its_hash_and_by_its_id_alone(db: Database) -> None:
    db.write(lambda tx: tokens.add(tx, token("ci"), "h1"))

    assert db.read(lambda tx: tokens.with_hash(tx, "h1")) == token("ci")
    assert db.read(lambda tx: tokens.with_id(tx, "id-ci")) == token("ci")
    assert db.read(lambda tx: tokens.with_hash(tx, "ci")) is None
    assert db.read(lambda tx: tokens.with_id(tx, "ci")) is None


def test_a_name_is_given_once(db: Database) -> None:
    assert db.write(lambda tx: tokens.add(tx, token("ci"), "h1"))

    assert not db.write(lambda tx: tokens.add(tx, token("ci", id="other"), "h2"))

    assert [each.id for each in db.read(tokens.all_tokens)] == ["id-ci"]


def test_a_token_whose_time_has_passed_lets_nobody_in(db: Database, at: list[int]) -> None:
    assert not db.read(tokens.has_usable)
    db.write(lambda tx: tokens.add(tx, token("ci", expires_at=NOW + 10), "h1"))
    assert db.read(tokens.has_usable)

    at[0] += 10

    assert not db.read(tokens.has_usable)


def test_a_use_is_noted_once_in_a_while(db: Database, at: list[int]) -> None:
    db.write(lambda tx: tokens.add(tx, token("ci"), "h1"))

    def use(address: str) -> bool:
        return db.write(lambda tx: tokens.note_use(tx, "id-ci", address, 60_000))

    assert use("10.0.0.1")
    at[0] += 59_999
    assert not use("10.0.0.2")
    at[0] += 1
    assert use("10.0.0.3")

    found = db.read(lambda tx: tokens.with_id(tx, "id-ci"))
    assert found is not None
    assert (found.last_used_at, found.last_used_from) == (NOW + 60_000, "10.0.0.3")


def test_a_clock_that_was_set_back_does_not_stop_uses_from_being_noted(db: Database, at: list[int]) -> None:
    db.write(lambda tx: tokens.add(tx, token("ci", last_used_at=NOW + 10**9, last_used_from="x"), "h1"))

    assert db.write(lambda tx: tokens.note_use(tx, "id-ci", "10.0.0.1", 60_000))
