"""Sessions of PostgreSQL: who else is connected, and whether one hears what another notifies."""

import secrets
import select
import time

from queuectl.store.postgres import CHANNEL, PostgresDialect
from queuectl.store.postgres_connection import APPLICATION


def other_sessions(dialect: PostgresDialect) -> list[tuple[int, str]]:
    """Return who else of queuectl is connected to this database: the server's process, and from where."""
    dialect.rows("SELECT pg_stat_clear_snapshot()", {})  # or all looks of a transaction would see what the first saw
    rows = dialect.rows(
        """
        SELECT pid, coalesce(client_hostname, host(client_addr), 'this host')
          FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = :name AND pid <> pg_backend_pid()
         ORDER BY pid
        """,
        {"name": APPLICATION},
    )
    return [(int(pid or 0), str(place)) for pid, place in rows]


def hears_notifications(url: str, within_s: float) -> bool:
    """Whether what one connection notifies reaches another that listens; a pooler between may lose it."""
    channel = f"{CHANNEL}_{secrets.token_hex(8)}"
    listener, speaker = PostgresDialect(url, is_patient=False), PostgresDialect(url, is_patient=False)
    try:
        listener.listen(channel)
        speaker.rows("SELECT pg_notify(:channel, '')", {"channel": channel})
        until = time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            if select.select([listener.connection.fileno()], [], [], left_s)[0]:
                listener.rows("SELECT 1", {})
            if listener.take_notified():
                return True
        return False
    except Exception as error:
        raise listener.translate(error) or error from error
    finally:
        listener.close()
        speaker.close()
