"""Bells: a ring is heard, once."""

import time
from contextlib import closing

from queuectl.actions.connect import Target, connect
from queuectl.runtime.bell import make_bell
from queuectl.runtime.loop import Loop
from queuectl.store.database import Database, Tx
from tests.program import wait_for


def ring(tx: Tx) -> None:
    """Make work ready, or so it says."""
    tx.wake()


def test_a_ring_that_was_heard_is_not_heard_again_after_the_next_look(target: Target, db: Database) -> None:
    loop, heard = Loop(), list[float]()
    with closing(connect(target)) as listening, closing(loop):
        bell = make_bell(target, listening, loop, lambda: heard.append(time.monotonic()))
        db.write(ring)

        def listen() -> bool | None:
            loop.turn(time.monotonic() + 0.02)
            return bool(heard) or None

        wait_for(listen, "the ring")
        listening.read(lambda tx: tx.now)
        bell.attend()
        loop.turn(time.monotonic())

        assert len(heard) == 1
        bell.close()


def test_a_ring_amid_a_look_is_heard_after_it(target: Target, db: Database) -> None:
    loop, heard = Loop(), list[float]()
    with closing(connect(target)) as listening, closing(loop):
        bell = make_bell(target, listening, loop, lambda: heard.append(time.monotonic()))

        listening.read(lambda _: db.write(ring))

        def listen() -> bool | None:
            bell.attend()
            loop.turn(time.monotonic() + 0.02)
            return bool(heard) or None

        wait_for(listen, "the ring")
        bell.close()
