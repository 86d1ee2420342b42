"""Leaving: a process ends at once, with its exit code, and all that it printed is there."""

import subprocess
import sys

import pytest


def leaving(before: str, stdout: int | None = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    program = f"import sys\nfrom queuectl.system.leaving import leave\n{before}\nleave(3)"
    return subprocess.run(
        [sys.executable, "-I", "-c", program], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60
    )


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_was_printed_is_there_and_the_code_is_the_one_asked_for(stream: str) -> None:
    done = leaving(f"print('x' * 100_000, end='', file=sys.{stream})")

    assert done.returncode == 3
    assert getattr(done, stream) == "x" * 100_000


def test_a_thread_that_is_not_to_be_left_alone_ends_first() -> None:
    work = "import os, threading, time\ndef work():\n time.sleep(0.2)\n os.write(1, b'done')\n"

    assert leaving(f"{work}threading.Thread(target=work).start()").stdout == "done"
    assert leaving(f"{work}threading.Thread(target=work, daemon=True).start()").stdout == ""


@pytest.mark.parametrize("gone", ["sys.stdout = None", "sys.stderr.close()"])
def test_a_stream_that_is_not_there_changes_no_code(gone: str) -> None:
    assert leaving(gone).returncode == 3


def test_what_cannot_be_printed_any_more_changes_no_code() -> None:
    with open("/dev/full", "w") as full:
        done = leaving("print('x')", stdout=full.fileno())

    assert done.returncode == 3
    assert done.stderr == ""
