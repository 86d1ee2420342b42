"""PostgreSQL: what its own errors mean for a person, and what a transaction begins with asking."""

import select
import threading
from contextlib import closing

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.errors import StoreError, StoreUnreachable
from queuectl.store.database import Database, Tx
from queuectl.store.dialect import Question
from queuectl.store.postgres import PostgresDialect
from queuectl.store.postgres_connection import hang_up
from tests.program import DEADLINE_S


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_transaction_that_rested_too_long_is_told_in_words(target: Target) -> None:
    database = connect(target)

    def rest_too_long(tx: Tx) -> None:
        assert isinstance(tx.dialect, PostgresDialect)
        tx.dialect.script("SET LOCAL idle_in_transaction_session_timeout = '500ms'")
        assert select.select([tx.dialect.connection.fileno()], [], [], DEADLINE_S)[0]
        tx.rows("SELECT 1")

    with pytest.raises(StoreError, match="rested") as told:
        database.write(rest_too_long)

    assert not isinstance(told.value, StoreUnreachable)
    assert "nothing was changed" in told.value.hint
    assert database.read(lambda tx: tx.rows("SELECT 1")) == [(1,)]
    database.close()


ABOUT = "o'clock"
ASKED = Question(name="asked", sql="SELECT 7, $1", about=ABOUT)


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_what_a_transaction_begins_with_asking_is_answered_also_after_the_connection_was_lost(target: Target) -> None:
    with closing(connect(target)) as database:
        first = database.write(lambda tx: (tx.now, tx.answer), ASKED)
        database.dialect.rows("SELECT 1", {})
        database.dialect.connection.close()  # type: ignore[attr-defined]
        second = database.write(lambda tx: (tx.now, tx.answer), ASKED)

    assert first == second == (7, [(7, ABOUT)])


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_what_follows_a_question_is_written_with_it_or_not_at_all(target: Target) -> None:
    def add_and_fail(tx: Tx) -> None:
        tx.changed("INSERT INTO config (key, value, updated_at) VALUES ('a', '1', 1)")
        raise ZeroDivisionError

    with closing(connect(target)) as database:
        with pytest.raises(ZeroDivisionError):
            database.write(add_and_fail, ASKED)
        count = database.read(lambda tx: tx.rows("SELECT count(*) FROM config WHERE key = 'a'"))

    assert count == [(0,)]


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_it_is_answered_also_after_a_transaction_was_undone(target: Target) -> None:
    def fail(tx: Tx) -> None:
        for _ in range(10):
            tx.rows("SELECT :number", {"number": 1})  # so often that psycopg prepares it, and lets go of it afterwards
        raise ZeroDivisionError

    with closing(connect(target)) as database:
        first = database.write(lambda tx: tx.answer, ASKED)
        with pytest.raises(ZeroDivisionError):
            database.write(fail)
        second = database.write(lambda tx: tx.answer, ASKED)

    assert first == second == [(7, ABOUT)]


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_whoever_leaves_hangs_up_on_the_servers_his_own_thread_called(target: Target) -> None:
    ours = connect(target)
    theirs: list[Database] = []

    def call_and_leave() -> None:
        theirs.append(connect(target))
        hang_up()

    thread = threading.Thread(target=call_and_leave)
    thread.start()
    thread.join()

    with closing(ours), closing(theirs[0]):
        assert [_is_closed(ours), _is_closed(theirs[0])] == [False, True]


def _is_closed(database: Database) -> bool:
    assert isinstance(database.dialect, PostgresDialect)
    return database.dialect.connection.closed
