"""queuectl: a durable queue for shell commands. `from queuectl import Queue` is the way in from Python."""

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Dependency",
    "FireInfo",
    "GateInfo",
    "GraphInfo",
    "Group",
    "Job",
    "JobFailed",
    "LimitInfo",
    "NotFound",
    "Queue",
    "QueueInfo",
    "QueuectlError",
    "Refused",
    "Run",
    "ScheduleInfo",
    "State",
    "StoreError",
    "WaitTimedOut",
    "Why",
    "__version__",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.api.gates import LimitInfo, QueueInfo
    from queuectl.api.graph import Dependency, GraphInfo
    from queuectl.api.group import Group
    from queuectl.api.job import Job, Run
    from queuectl.api.queue import Queue
    from queuectl.api.schedules import FireInfo, ScheduleInfo
    from queuectl.api.why import GateInfo, Why
    from queuectl.errors import BadInput, JobFailed, NotFound, QueuectlError, Refused, StoreError, WaitTimedOut
    from queuectl.model.states import State


def __getattr__(name: str) -> object:
    """Import what is asked for, and only then: the command line starts without any of it."""
    if name not in __all__:
        raise AttributeError(f"module 'queuectl' has no attribute {name!r}")
    from importlib import import_module

    homes = {
        "Dependency": "api.graph",
        "FireInfo": "api.schedules",
        "GateInfo": "api.why",
        "GraphInfo": "api.graph",
        "Group": "api.group",
        "Job": "api.job",
        "LimitInfo": "api.gates",
        "Queue": "api.queue",
        "QueueInfo": "api.gates",
        "Run": "api.job",
        "ScheduleInfo": "api.schedules",
        "State": "model.states",
        "Why": "api.why",
    }
    return getattr(import_module(f"queuectl.{homes.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return __all__
