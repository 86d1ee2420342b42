"""Counting what an action does besides its rows: transactions begun, idle workers woken."""

from typing import TYPE_CHECKING

import pytest

from queuectl.store.database import Database

if TYPE_CHECKING:
    from queuectl.store.dialect import Question, Row


class Bell:
    """How often idle workers were woken, after a commit each time."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rings = 0
        monkeypatch.setattr(db, "_ring", self._ring)

    def taken(self) -> int:
        """Return how often it rang since the last look."""
        rings, self.rings = self.rings, 0
        return rings

    def _ring(self) -> None:
        self.rings += 1


class Begins:
    """How many transactions were begun, and how many of them to write."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = self.writes = 0
        self._begin, self._begin_asking = db.dialect.begin, db.dialect.begin_asking
        monkeypatch.setattr(db.dialect, "begin", self._count_and_begin)
        if not db.dialect.is_local:
            monkeypatch.setattr(db.dialect, "begin_asking", self._count_and_ask)

    def _count_and_begin(self, *, writing: bool) -> int:
        self.count += 1
        self.writes += writing
        return self._begin(writing=writing)

    def _count_and_ask(self, question: "Question") -> "tuple[int, list[Row] | None]":
        self.count += 1
        self.writes += 1
        return self._begin_asking(question)
