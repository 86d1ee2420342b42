"""Log: a reader that stands still costs lines, never the work."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
from queuectl.runtime.log import TEXT, Log
reading, writing = os.pipe()
os.dup2(writing, 2)
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 512)
except BlockingIOError:
    os.set_blocking(2, True)
log = Log("worker", form=TEXT, file=None)
log.info("event", "nobody reads this")
os.read(reading, 4096)
signal.alarm(20)
log.runs([("event", "y" * int(sys.argv[1]), "1", 1)] * 64)
signal.alarm(0)
os.set_blocking(reading, False)
said = b""
try:
    while part := os.read(reading, 65536):
        said += part
        log.info("event", "last")
        if b"last" in said:
            break
except BlockingIOError:
    pass
sys.stdout.buffer.write(said.lstrip(b"x"))
"""


@pytest.mark.parametrize("length", [1, 36, 100, 4000])  # 36 and 100: a batch fills a page to the last byte
def test_lines_written_together_into_a_pipe_that_is_nearly_full_wait_for_nobody(length: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(length)], capture_output=True, timeout=60)

    assert done.returncode == 0, done
    assert b" lines left out: nobody read them)" in done.stdout
    assert b"last" in done.stdout
