"""Contenders: bare workers in processes of their own, which claim and settle from one store at the same time.

Run as `python -m benchmarks.contenders` it is one of them: it says that it is ready, waits for a word, and works until
nothing is left.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.bareworker import BareWorker
from benchmarks.stores import environ_of
from queuectl.actions.connect import Target, locate

TREE = Path(__file__).parents[1]
ONE_BY_ONE, BY_THE_HANDFUL = "one by one", "by the handful"


@contextmanager
def contenders(target: Target, count: int, way: str) -> "Iterator[list[subprocess.Popen[str]]]":
    """Give so many of them that are ready, and end them after the block."""
    argv = [sys.executable, "-m", "benchmarks.contenders", way]
    started = [
        subprocess.Popen(
            argv, env=environ_of(target), cwd=TREE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]
    try:
        for each in started:
            _hear(each)
        yield started
    finally:
        for each in started:
            each.kill()
            each.communicate()


def work_off_s(started: "list[subprocess.Popen[str]]") -> tuple[float, int]:
    """Let them work; return how long it took until all had found nothing more, and how many jobs they had."""
    begun = time.perf_counter()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    done = sum(int(_hear(each)) for each in started)
    return time.perf_counter() - begun, done


def _hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ChildProcessError(f"a contender ended with {process.wait()}")
    return line


def main() -> None:
    """Be one of them."""
    with closing(BareWorker(locate(None, os.environ))) as worker:
        work = {ONE_BY_ONE: worker.work_off_all, BY_THE_HANDFUL: worker.work_off_all_by_the_handful}[sys.argv[1]]
        print("ready", flush=True)
        while sys.stdin.readline():
            print(work(), flush=True)


if __name__ == "__main__":
    main()
