"""Spool: things put aside in a file of nobody's name, to be read again from the start as often as needed."""

import errno
import os
import pickle
import tempfile
from typing import Generic, TypeVar

from queuectl.errors import StoreFull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY_BYTES = 4 << 20
CHUNK_THINGS = 500
CHUNK_BYTES = 1 << 20

Thing = TypeVar("Thing")


class Spool(Generic[Thing]):
    """What is put in comes out in the same order, in chunks; memory holds one chunk and a few MiB."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - closed by close()
        self._chunk: list[Thing] = []
        self._bytes = 0

    def put(self, thing: Thing, size: int) -> None:
        """Put one thing of about this many bytes aside."""
        self._chunk.append(thing)
        self._bytes += size
        if len(self._chunk) >= CHUNK_THINGS or self._bytes >= CHUNK_BYTES:
            self._write()

    def chunks(self) -> "Iterator[list[Thing]]":
        """Yield all that was put aside, from the start."""
        if self._chunk:
            self._write()
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        while self._file.tell() < end:
            yield pickle.load(self._file)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _write(self) -> None:
        try:
            pickle.dump(self._chunk, self._file, pickle.HIGHEST_PROTOCOL)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise StoreFull(
                f"no space left in {tempfile.gettempdir()} to put the jobs aside",
                hint="point TMPDIR at a folder with room; nothing was written",
            ) from None
        self._chunk, self._bytes = [], 0
