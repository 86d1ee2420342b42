"""`python -m benchmarks.peers.check`: every peer that is here runs three commands; the others say why they do not.

Exits 1 where one that is here fails, 2 where none is meant.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import stores
from benchmarks.bench import Bench
from benchmarks.peers.driver import drain
from benchmarks.peers.lineup import LINEUP
from benchmarks.peers.peer import Peer

COMMANDS = 3
WORKERS = 2


def main() -> int:
    """Check all peers, or those whose names contain a word given."""
    words = [word.lower() for word in sys.argv[1:]] or [""]
    chosen = [peer for peer in LINEUP if any(word in peer.name.lower() for word in words)]
    if not chosen:
        print(
            f"no peer has {' or '.join(words)} in its name: {', '.join(peer.name for peer in LINEUP)}", file=sys.stderr
        )
        return 2
    with stores.postgres_server() as server_url, tempfile.TemporaryDirectory(prefix="queuectl-bench-") as folder:
        bench = Bench(is_quick=False, server_url=server_url, folder=Path(folder))
        results = [_check(bench, peer) for peer in chosen]
    return int(not all(results))


def _check(bench: Bench, peer: Peer) -> bool:
    if why := peer.why_missing():
        print(f"{peer.name}: missing: {why}", flush=True)
        return True
    name = f"{peer.name} {peer.version()}"
    try:
        drained = drain(bench, peer, WORKERS, COMMANDS)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other peers are still to be checked
        print(f"{name}: FAILED: {error!r}", flush=True)
        return False
    print(f"{name}: ran {drained.jobs} commands in {drained.whole_s:.2f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
