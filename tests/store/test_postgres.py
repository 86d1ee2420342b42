"""PostgreSQL: what its own errors mean for a person."""

import select

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.errors import StoreError, StoreUnreachable
from queuectl.store.database import Tx
from queuectl.store.postgres import PostgresDialect
from tests.program import DEADLINE_S


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_transaction_that_rested_too_long_is_told_in_words(target: Target) -> None:
    database = connect(target)

    def rest_too_long(tx: Tx) -> None:
        assert isinstance(tx.dialect, PostgresDialect)
        tx.dialect.script("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
        assert select.select([tx.dialect.connection.fileno()], [], [], DEADLINE_S)[0]
        tx.rows("SELECT 1")

    with pytest.raises(StoreError, match="rested") as told:
        database.write(rest_too_long)

    assert not isinstance(told.value, StoreUnreachable)
    assert "nothing was changed" in told.value.hint
    assert database.read(lambda tx: tx.rows("SELECT 1")) == [(1,)]
    database.close()
