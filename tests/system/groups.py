"""A control group of the kernel itself for tests: below the one they run in, as systemd hands one over to a unit."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.system.cgroups import V1, Place, find_place, remove

MOUNT = Path("/sys/fs/cgroup/memory")


@contextlib.contextmanager
def handed_over() -> Iterator[Place]:
    """Give a place in which groups that limit memory can be made; skips where this host has none to give."""
    place = find_place()
    if place is not None:
        yield place
        return
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    names = [line.split(":", 2)[2] for line in lines if line.split(":")[1] == "memory"]
    if not names or os.geteuid() != 0 or not (MOUNT / names[0].lstrip("/")).is_dir():
        pytest.skip("no control group for memory can be made here (run as root, or in a unit with Delegate=memory)")
    path = MOUNT / names[0].lstrip("/") / f"queuectl-test-{secrets.token_hex(4)}"
    path.mkdir()
    try:
        yield Place(path=str(path), version=V1)
    finally:
        assert remove(str(path)), f"{path} could not be removed"
