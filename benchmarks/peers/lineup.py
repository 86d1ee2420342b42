"""The line-up: every peer, in the order of the table."""

from benchmarks.bench import POSTGRES, SQLITE
from benchmarks.peers.huey import Huey
from benchmarks.peers.hyperqueue import HyperQueue
from benchmarks.peers.hypershell import HyperShell
from benchmarks.peers.nq import Nq
from benchmarks.peers.own import Own
from benchmarks.peers.parallel import GnuParallel
from benchmarks.peers.peer import Peer
from benchmarks.peers.procrastinate import Procrastinate
from benchmarks.peers.redis_peers import Celery, Dramatiq, Rq, SimpleRq
from benchmarks.peers.shell_tools import LIST_JOBS
from benchmarks.peers.tsp import TaskSpooler
from benchmarks.peers.xargs import Xargs

UNIT = Xargs()
PARALLEL = GnuParallel()
OWN_SQLITE = Own(SQLITE, drain_jobs=LIST_JOBS)
LINEUP: tuple[Peer, ...] = (
    UNIT,
    OWN_SQLITE,
    Own(POSTGRES, drain_jobs=2000),
    PARALLEL,
    TaskSpooler(),
    Nq(),
    HyperQueue(),
    HyperShell(),
    Huey(),
    Dramatiq(),
    Celery(),
    Rq(),
    SimpleRq(),
    Procrastinate(),
)
MUST_RUN = tuple(
    peer.name
    for peer in LINEUP
    if isinstance(peer, Xargs | Own | GnuParallel | TaskSpooler | Nq | Huey | Rq | Procrastinate)
)
"""Without these a run is no success; the others are measured where they install."""
