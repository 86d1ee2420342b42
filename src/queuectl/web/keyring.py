"""Keyring: the tokens that were shown to this server lately, so that not each request asks the store for its own."""

import threading

from queuectl import clock
from queuectl.actions.tokens import note_use
from queuectl.errors import StoreError
from queuectl.model.token import Token, hash_of
from queuectl.store import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.store.database import Tx
    from queuectl.web.stores import Stores

FRESH_S = 3.0
"""How long a token that was revoked may still be used."""
NOTED_EVERY_S = 60.0


class Keyring:
    """Finds tokens by their secret, and looks again after a few seconds whether they still stand. For any thread."""

    def __init__(self, stores: "Stores", read_s: "Callable[[], float]" = clock.boot_s) -> None:
        self._stores = stores
        self._read_s = read_s
        self._lock = threading.Lock()
        self._ids: dict[str, str] = {}
        self._seen: dict[str, tuple[Token, float]] = {}
        self._noted: dict[str, float] = {}

    def knows(self, secret: str) -> bool:
        """Whether a secret was good before: then it is not a guess, whatever else comes from its address."""
        with self._lock:
            return hash_of(secret) in self._ids

    def find(self, secret: str) -> Token | None:
        """Return the token of a secret, if it is good now."""
        digest = hash_of(secret)
        with self._lock:
            token_id = self._ids.get(digest)
        if token_id is not None:
            return self.current(token_id)
        token = self._read(lambda tx: tokens.with_hash(tx, digest))
        if token is not None:
            with self._lock:
                self._ids[digest] = token.id
                self._seen[token.id] = (token, self._read_s())
        return token

    def current(self, token_id: str) -> Token | None:
        """Return a token, if it is good now, or was a few seconds ago."""
        now = self._read_s()
        with self._lock:
            token, at = self._seen.get(token_id, (None, 0.0))
        if token is not None and now - at < FRESH_S:
            return token
        token = self._read(lambda tx: tokens.with_id(tx, token_id))
        with self._lock:
            if token is None:
                self._forget(token_id)
            else:
                self._seen[token_id] = (token, now)
        return token

    def note(self, token: Token, address: str) -> None:
        """Note that a token was used, once a minute at most; a store that cannot be written keeps nobody out."""
        now = self._read_s()
        with self._lock:
            if now - self._noted.get(token.id, -NOTED_EVERY_S) < NOTED_EVERY_S:
                return
            self._noted[token.id] = now
        try:
            note_use(self._stores.database, token, address)
        except StoreError:
            pass

    def _read(self, find: "Callable[[Tx], Token | None]") -> Token | None:
        def look(tx: "Tx") -> Token | None:
            token = find(tx)
            return None if token is None or token.is_over(tx.now) else token

        return self._stores.read(look)

    def _forget(self, token_id: str) -> None:
        self._seen.pop(token_id, None)
        self._noted.pop(token_id, None)
        self._ids = {digest: known for digest, known in self._ids.items() if known != token_id}
