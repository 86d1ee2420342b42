"""A connection to PostgreSQL: how it is opened, set up, and given up when no answer comes."""

import threading
from weakref import WeakKeyDictionary

import psycopg

from queuectl.errors import StoreUnreachable
from queuectl.model.urls import without_password
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from psycopg.abc import PQGen

    from queuectl.store.dialect import Row  # noqa: F401 - named in a text

    RV = TypeVar("RV")

SCHEMA = "queuectl"
APPLICATION = "queuectl"
MIN_VERSION = 140000

# A client that fell silent in the middle of a transaction (its host lost power) must not keep its locks, else no rescue
# could free its jobs. The rest makes the server notice a dead peer by itself; it has no effect on a local socket.
_SESSION = f"""
    SET search_path = {SCHEMA};
    SET lock_timeout = '{{lock_s}}s';
    SET idle_in_transaction_session_timeout = '{{silent_s}}s';
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '{{silent_s}}s';
    {{plans}}
"""


class Patience(Value):
    """How long a connection waits for what, and whether its plans are for long."""

    connect_s: int
    lock_s: float
    answer_s: float
    silent_s: int
    """How long the server keeps a transaction of one that fell silent."""
    plans: str = ""


PATIENT = Patience(connect_s=10, lock_s=10.0, answer_s=20.0, silent_s=60)
# For processes that look after commands meanwhile; libpq takes no shorter time to connect. A plan that a worker keeps
# was made when it started, for the few jobs of then, so it may not take a whole table for the quicker way. What cannot
# be had otherwise is dear only in name then, and not worth compiling.
HASTY = Patience(connect_s=2, lock_s=2.0, answer_s=3.0, silent_s=10, plans="SET enable_seqscan = off; SET jit = off")


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time."""


class Connection(psycopg.Connection["Row"]):
    """A connection that does not wait for ever for an answer, which a cut network would make it do."""

    answer_s = PATIENT.answer_s

    def wait(self, gen: "PQGen[RV]", interval: float = 0.1, timeout: float | None = None) -> "RV":
        """Wait for the server for a bounded time, and give the connection up when it does not answer."""
        try:
            return super().wait(gen, interval, timeout or self.answer_s)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
            self.pgconn.finish()  # the answer may still come, and would be taken for that of the next statement
            raise NoAnswer(str(error)) from error


_OPEN: "WeakKeyDictionary[Connection, int]" = WeakKeyDictionary()
"""The connections of this process, each with the thread that opened it."""


def hang_up() -> None:
    """Take leave of every server to which this thread is still connected, as one does before the process ends."""
    for connection, thread in [*_OPEN.items()]:
        if thread == threading.get_ident():
            connection.close()


def open_connection(url: str, patience: Patience, answer_s: float) -> Connection:
    """Connect and set the session up; what goes wrong is psycopg's, but for what only its caller can mend."""
    try:
        connection = Connection.connect(
            url, autocommit=True, connect_timeout=patience.connect_s, application_name=APPLICATION,
            keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
        )  # fmt: skip
    except (psycopg.ProgrammingError, UnicodeError) as error:
        if isinstance(error, psycopg.Error) and error.sqlstate is not None:
            raise
        # The driver's own words are left out: they quote the URL, password and all.
        raise StoreUnreachable(
            f"cannot read the URL {without_password(url)}",
            hint="write postgresql://user@host/name; percent-encode what is special, such as %40 for @",
        ) from None
    _OPEN[connection] = threading.get_ident()
    connection.answer_s = answer_s
    version = connection.info.server_version
    if version < MIN_VERSION:
        raise StoreUnreachable(f"PostgreSQL {version // 10000} is too old", hint="use 14 or newer")
    connection.execute(
        _SESSION.format(lock_s=patience.lock_s, silent_s=patience.silent_s, plans=patience.plans).encode()
    )
    return connection
