"""queuectl: a durable queue for shell commands. `from queuectl import Queue` is the way in from Python."""

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Job",
    "JobFailed",
    "NotFound",
    "Queue",
    "QueuectlError",
    "Refused",
    "Run",
    "State",
    "StoreError",
    "WaitTimedOut",
    "__version__",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.api.job import Job, Run
    from queuectl.api.queue import Queue
    from queuectl.errors import BadInput, JobFailed, NotFound, QueuectlError, Refused, StoreError, WaitTimedOut
    from queuectl.model.states import State


def __getattr__(name: str) -> object:
    """Import what is asked for, and only then: the command line starts without any of it."""
    if name not in __all__:
        raise AttributeError(f"module 'queuectl' has no attribute {name!r}")
    from importlib import import_module

    homes = {"Job": "api.job", "Queue": "api.queue", "Run": "api.job", "State": "model.states"}
    return getattr(import_module(f"queuectl.{homes.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    return __all__
