"""Workloads: one file each, with a function that measures it. What other tools do is in benchmarks/peers/."""

from importlib import import_module

from benchmarks.bench import Workload

OWN = (
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
    "dashboard",
    "pruning",
    "dependents",
    "long_transaction",
)
MODULES = {**{name: f"benchmarks.workloads.{name}" for name in OWN}, "peers": "benchmarks.peers.workload"}
"""Where each workload is, in the order in which they run."""


def workload(name: str) -> Workload:
    """Return the function of a workload."""
    found: Workload = import_module(MODULES[name]).measure
    return found


def title(name: str) -> tuple[str, str]:
    """Return the heading of a workload and what it measures, as the first line of its file has them."""
    heading, _, story = str(import_module(MODULES[name]).__doc__).partition("\n")[0].partition(": ")
    return heading, f"{story[:1].upper()}{story[1:]}"
