"""The spool: what is put aside comes out again, in order and as often as asked, from memory or from disk."""

import tempfile

import pytest

from queuectl.errors import StoreFull
from queuectl.system import spool
from queuectl.system.spool import Spool


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1700])
def test_things_come_out_in_order_as_often_as_asked(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", 1000)
    aside: Spool[int] = Spool()
    for number in range(count):
        aside.put(number, 8)

    for _ in range(2):
        chunks = list(aside.chunks())
        assert [thing for chunk in chunks for thing in chunk] == list(range(count))
        assert all(len(chunk) <= spool.CHUNK_THINGS for chunk in chunks)
    aside.close()


def test_big_things_come_in_small_chunks() -> None:
    aside: Spool[bytes] = Spool()
    for _ in range(5):
        aside.put(b"x" * spool.CHUNK_BYTES, spool.CHUNK_BYTES)

    assert [len(chunk) for chunk in aside.chunks()] == [1, 1, 1, 1, 1]
    aside.close()


def test_a_full_disk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda **_: full)
        aside: Spool[int] = Spool()

        with pytest.raises(StoreFull, match="no space left") as caught:
            aside.put(1, spool.CHUNK_BYTES)

    assert "TMPDIR" in caught.value.hint
