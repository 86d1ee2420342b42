"""Log: a reader that stands still costs lines, never the work, and is told how many."""

import json
import subprocess
import sys

import pytest

FULL = """
import os, signal, sys, threading
from queuectl.runtime.log import JSON, TEXT, Log
reading, writing = os.pipe()
os.dup2(writing, 2)
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 512)
except BlockingIOError:
    os.set_blocking(2, True)
log = Log("worker", form=sys.argv[1], file=None)
log.info("event", "nobody reads this")
assert os.get_blocking(2)  # it is others', too
signal.alarm(20)
"""
PROGRAMS = {
    "a line follows": """
os.read(reading, 4096)
log.runs([("event", "y" * int(sys.argv[2]), "1", 1)] * 64)
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
""",
    "nothing follows": """
log.runs([("event", "y" * int(sys.argv[2]), "1", 1)] * 64)
first = []
reader = threading.Timer(0.1, lambda: first.append(os.read(reading, 1 << 20)))
reader.start()
log.close()
signal.alarm(0)
reader.join()
said = first[0] + os.read(reading, 1 << 20)
""",
}
END = 'sys.stdout.buffer.write(said.lstrip(b"x"))'


def told(name: str, form: str, length: int) -> list[str]:
    """Return the lines that a reader has seen who let a pipe fill up."""
    words = [sys.executable, "-c", FULL + PROGRAMS[name] + END, form, str(length)]
    done = subprocess.run(words, capture_output=True, timeout=60, text=True)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


@pytest.mark.parametrize("length", [1, 36, 100, 4000])  # 36 and 100: a batch fills a page to the last byte
def test_lines_written_together_into_a_pipe_that_is_nearly_full_wait_for_nobody(length: int) -> None:
    lines = told("a line follows", "text", length)

    assert any("left out: nobody read them in time" in line for line in lines)
    assert lines[-1].endswith("last")


def test_what_was_left_out_last_is_told_at_the_end() -> None:
    (line,) = told("nothing follows", "text", 1)

    assert line.endswith(" worker warning: 65 lines left out: nobody read them in time")


def test_what_was_left_out_is_told_in_the_form_of_the_others() -> None:
    (line,) = told("nothing follows", "json", 1)

    fields = json.loads(line)
    assert (fields["event"], fields["message"]) == ("left_out", "65 lines left out: nobody read them in time")
