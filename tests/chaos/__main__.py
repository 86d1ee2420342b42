"""Run chaos: `python -m tests.chaos --seconds 60 --seed 7 --database both`. Exit code 1 when anything is wrong."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from tests.chaos.rounds import Run, Say
from tests.chaos.stores import KINDS, store_of
from tests.chaos.sweeper import Sweeper

INTERRUPTED = 130


def main(words: list[str]) -> int:
    """Run on each database that was asked for, and print the figures."""
    args = _parsed(words)
    missing = [program for program in ("flock", "setsid") if shutil.which(program) is None]
    if missing:
        print(f"chaos needs {' and '.join(missing)} (package util-linux)", file=sys.stderr)
        return 1
    seed = random.randrange(1_000_000) if args.seed is None else args.seed
    signal.signal(signal.SIGTERM, _interrupt)
    say: Say = lambda text: print(text, file=sys.stderr if args.json else sys.stdout, flush=True)  # noqa: E731
    kinds = KINDS if args.database == "both" else (args.database,)
    say(f"chaos: seed {seed}, {args.seconds:g} s on {' and '.join(kinds)}")
    try:
        results = [_run(kind, seed, say, args) for kind in kinds]
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0 if all(results) else 1


def _run(kind: str, seed: int, say: Say, args: argparse.Namespace) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="queuectl-chaos-") if args.folder is None else f"{args.folder}/{kind}")
    folder.mkdir(parents=True, exist_ok=True)
    sweeper = Sweeper()
    is_well = False
    try:
        home = folder / "home"
        sweeper.watch(str(home))
        sweeper.watch(str(folder / "locks"))
        with store_of(kind, home, sweeper) as store:
            run = Run(store, folder, seed, say)
            try:
                is_well = run.rounds(args.seconds, go_on=args.go_on)
            finally:
                run.close()
        print(run.figures.as_json() if args.json else run.figures.as_text(), flush=True)
    finally:
        sweeper.sweep()
        if is_well and args.folder is None:
            shutil.rmtree(folder)
        else:
            again = f"make chaos DATABASE={kind} SEED={seed} SECONDS={args.seconds:g}"
            say(f"home, ledger, journal and log are in {folder}; once more: {again}")
    return is_well


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long on each database (default: 60)")
    parser.add_argument("--seed", type=int, help="the same seed makes the same choices (default: by chance)")
    parser.add_argument("--database", choices=(*KINDS, "both"), default="both")
    parser.add_argument("--go-on", action="store_true", help="begin another round after a violation, too")
    parser.add_argument("--folder", metavar="DIR", help="keep the files there: home, ledger, journal and logs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, one line a database")
    return parser.parse_args(words)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
