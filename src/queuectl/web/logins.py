"""Logins: letting people and programs in by their token, within bounds, and on record."""

from queuectl.actions.tokens import record_visit
from queuectl.errors import StoreError
from queuectl.model.value import Value
from queuectl.web.keyring import Keyring
from queuectl.web.sessions import Session, Sessions
from queuectl.web.throttle import Throttle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.token import Token
    from queuectl.web.stores import Stores

MOST_SECRET_CHARACTERS = 200
WINDOW_S = 60.0
TRIES_PER_WINDOW = 10
ALL_TRIES_PER_WINDOW = 100
REFUSALS_ON_RECORD_PER_WINDOW = 5


class TooMany(Exception):
    """Somebody tried too often."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"wait {wait_s:.0f} s")
        self.wait_s = wait_s


class Known(Value):
    """Whoever was let in: by which token, and in which session, if in one."""

    token: "Token"
    session: Session | None = None


class Logins:
    """Knows who is let in. Its methods ask the store, so they are called in threads that may wait."""

    def __init__(self, stores: "Stores") -> None:
        self._stores = stores
        self._sessions = Sessions()
        self._keyring = Keyring(stores)
        self._tries = Throttle(each=TRIES_PER_WINDOW, total=ALL_TRIES_PER_WINDOW, window_s=WINDOW_S)
        self._on_record = Throttle(
            each=REFUSALS_ON_RECORD_PER_WINDOW, total=REFUSALS_ON_RECORD_PER_WINDOW, window_s=WINDOW_S
        )
        self._untold = 0

    def by_secret(self, secret: str, address: str) -> Known | None:
        """Return who a program is by its token; None means that it is not good. Raises TooMany."""
        if not self._keyring.knows(secret) and (wait_s := self._tries.wait_s(address)):
            raise TooMany(wait_s)
        token = self._keyring.find(secret) if len(secret) <= MOST_SECRET_CHARACTERS else None
        if token is None:
            self._tries.take(address)
            self._refused(address)
            return None
        self._keyring.note(token, address)
        return Known(token=token)

    def by_session(self, session_id: str, address: str) -> Known | None:
        """Return who a browser is by its session; None means that it has ended, or its token has."""
        session = self._sessions.use(session_id)
        if session is None:
            return None
        token = self._keyring.current(session.token_id)
        if token is None:
            self._sessions.end(session_id)
            return None
        self._keyring.note(token, address)
        return Known(token=token, session=session)

    def still_stands(self, known: Known) -> bool:
        """Whether somebody who was let in may stay: for answers that take long. Nobody may while nobody can know."""
        try:
            token = self._keyring.current(known.token.id)
        except StoreError:
            return False
        if token is None:
            return False
        return known.session is None or self._sessions.use(known.session.id) is not None

    def log_in(self, secret: str, address: str) -> Known | None:
        """Begin a session; None means that the token is not good. Raises TooMany."""
        if wait_s := self._tries.take(address):
            raise TooMany(wait_s)
        token = self._keyring.find(secret) if len(secret) <= MOST_SECRET_CHARACTERS else None
        if token is None:
            self._refused(address)
            return None
        self._keyring.note(token, address)
        record_visit(self._stores.database, "login", who=who_of(token), address=address)
        return Known(token=token, session=self._sessions.begin(token.id))

    def log_out(self, known: Known, address: str) -> None:
        """End a session."""
        if known.session is not None:
            self._sessions.end(known.session.id)
            record_visit(self._stores.database, "logout", who=who_of(known.token), address=address)

    def _refused(self, address: str) -> None:
        """Put a refusal on record, unless there were many: the next row counts those that have none."""
        self._untold += 1
        if self._on_record.take("") > 0:
            return
        count, self._untold = self._untold, 0
        try:
            record_visit(self._stores.database, "login refused", who="unknown", address=address, count=count)
        except StoreError:
            pass


def who_of(token: "Token") -> str:
    """Return whose act it is that a token was used for, as the audit trail has it."""
    return f"token {token.name}"
