"""Workloads: one file each, with a function that measures it. What other tools do is in benchmarks/peers/."""

from importlib import import_module

from benchmarks.bench import Workload

NAMES = (
    "drain",
    "limit",
    "core",
    "enqueue",
    "bulk",
    "pickup",
    "idle",
    "sleeps",
    "output",
    "growth",
    "pruning",
    "dependents",
    "long_transaction",
)
"""In the order in which they run."""


def workload(name: str) -> Workload:
    """Return the function of a workload."""
    module = "benchmarks.peers.peer" if name == "peers" else f"benchmarks.workloads.{name}"
    found: Workload = import_module(module).measure
    return found
