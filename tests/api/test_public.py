"""What `from queuectl import ...` offers: exactly the public list, typed, and light to import."""

import inspect
import subprocess
import sys

import pytest

import queuectl
from queuectl.api import group, job, queue, schedules

PUBLIC = [
    "BadInput", "Dependency", "FireInfo", "GateInfo", "GraphInfo", "Group", "Job", "JobFailed", "LimitInfo", "NotFound",
    "Queue", "QueueInfo", "QueuectlError", "Refused", "Run", "ScheduleInfo", "State", "StoreError", "WaitTimedOut",
    "Why", "__version__",
]  # fmt: skip


def test_the_public_list_is_what_is_exported() -> None:
    assert queuectl.__all__ == PUBLIC
    assert sorted(dir(queuectl)) == sorted(PUBLIC)
    assert [name for name in PUBLIC if not hasattr(queuectl, name)] == []


def test_what_is_not_on_the_list_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Manager'"):
        _ = queuectl.Manager


@pytest.mark.parametrize("cls", [queue.Queue, job.Job, schedules.Schedules, group.Group])
def test_every_public_method_says_what_it_does_and_is_typed(cls: type) -> None:
    for name, member in inspect.getmembers(cls):
        if name.startswith("_"):
            continue
        function = member.fget if isinstance(member, property) else member
        assert function.__doc__, name
        assert "return" in function.__annotations__, name


def test_it_is_imported_without_the_extras() -> None:
    code = """
import sys
for name in ("psycopg", "fastapi", "uvicorn", "jinja2", "prometheus_client"):
    sys.modules[name] = None
import queuectl
from queuectl import Queue
assert "rich" not in sys.modules
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
