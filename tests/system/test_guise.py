"""Guise: what others read of a process in /proc is what it says, and its own view is the same."""

import json
import subprocess
import sys

PROGRAM = """
import ctypes, json, os, sys
from queuectl.system import guise
{before}
argv, env = json.loads(sys.argv[1])
can, shown = guise.can_change(), guise.appear_as(argv, env)
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(json.dumps({{
    "can": can,
    "shown": shown,
    "environ": dict(os.environ),
    "getenv": [os.fsdecode(getenv(os.fsencode(name)) or b"") for name in ("KEPT", "DROPPED", "NEW")],
    "/proc/environ": os.fsdecode(open("/proc/self/environ", "rb").read()),
    "/proc/cmdline": os.fsdecode(open("/proc/self/cmdline", "rb").read()),
}}))
"""
ARGV = ["worker", "two words", "\u00e9", ""]
ENV = {"KEPT": "as it was", "NEW": "x" * 5000, "PATH": "/bin"}


def seen_after(before: str) -> dict[str, object]:
    """Return what a process sees of itself that was started with other variables."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM.format(before=before), json.dumps([ARGV, ENV])],
        env={"KEPT": "as it was", "DROPPED": "secret", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    seen: dict[str, object] = json.loads(done.stdout)
    return seen


def test_arguments_and_environment_are_those_taken_on_for_everybody() -> None:
    seen = seen_after("")

    assert (seen["can"], seen["shown"]) == (True, True)
    assert seen["environ"] == ENV
    assert seen["getenv"] == ["as it was", "", "x" * 5000]
    assert seen["/proc/environ"] == "".join(f"{name}={value}\0" for name, value in ENV.items())
    assert seen["/proc/cmdline"] == "".join(f"{word}\0" for word in ARGV)


def test_a_kernel_that_does_not_let_us_is_found_out() -> None:
    seen = seen_after("guise._PR_SET_MM = -1")

    assert (seen["can"], seen["shown"]) == (False, False)


def test_a_kernel_that_only_pretends_is_found_out() -> None:
    assert seen_after("guise._show = lambda *_: None")["shown"] is False
