"""Dashboard: what pages, live updates and many viewers cost beside a million jobs; and that its figures are right."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected

from benchmarks import stores
from benchmarks.bench import KINDS, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.history import QUEUES, add_history
from benchmarks.program import DEADLINE_S, QUEUECTL, wait_for
from benchmarks.recount import check
from benchmarks.turns import ratios, take_turns
from queuectl.actions.connect import Target, connect
from queuectl.store.database import Database, Tx
from queuectl.web.snapshot import FRESH_S, LINGER_S

MILLION = 1_000_000
DAYS = 10
"""Over how many days the jobs that are over have ended."""
PAGES = {
    "overview": "/",
    "job list": "/jobs",
    "job list of the dead": "/jobs?state=dead",
    "job list by age": "/jobs?sort=finished",
}
VIEWERS = 50
ROUNDS = 20
STARTS = 5
IDLE_ROUNDS = 3
VIEWER_ROUNDS = 3
BURST = 10
WATCHED_S = 4.0
ADD_EVERY_S = 0.2


def measure(bench: Bench) -> Iterator[Figure]:
    """Serve a store of each kind and ask it as browsers do."""
    rows = bench.pick(quick=100_000, full=MILLION)
    for kind in KINDS[:1] if bench.is_quick else KINDS:
        with bench.store(kind) as target:
            _fill(target, rows)
            yield _start_figure(kind, rows, target)
            with served(target) as port:
                yield _alone_figure(kind, rows, port)
                yield from _page_figures(kind, rows, port)
                yield _recount_figure(kind, rows, target, port)
                yield _live_figure(kind, rows, port)
            yield _viewers_figure(kind, rows, target)


@contextmanager
def served(target: Target) -> Iterator[int]:
    """Give the port of a server that is ready, and stop it after the block."""
    server = subprocess.Popen(
        [QUEUECTL, "serve", "--port", "0"],
        env=stores.environ_of(target),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        assert server.stderr is not None
        said = b""
        while (found := re.search(rb"https?://[^\s]*?:(\d+)", said)) is None:
            line = server.stderr.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {said.decode()}")
            said += line
        yield int(found[1])
    finally:
        server.terminate()
        server.wait()


def _fill(target: Target, rows: int) -> None:
    with closing(connect(target)) as database:
        database.write(partial(add_history, rows=rows, days=DAYS))
    stores.settle_down(target)


def _start_figure(kind: str, rows: int, target: Target) -> Figure:
    """Measure the first look after a start, at which no request was answered yet, each time with a new server."""
    first, unit = [], []
    for _ in range(STARTS):
        with served(target) as port, closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
            first.append(_get_s(connection, "/"))
            unit.append(_get_s(connection, "/healthz"))
    return _look_figure(f"overview after a start beside {rows:,} jobs, {kind}", rows, first, unit)


def _alone_figure(kind: str, rows: int, port: int) -> Figure:
    """Measure a look after a while in which nobody looked, so that nothing is counted."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
        sides = {"first": partial(_get_alone_s, connection, "/"), "unit": partial(_get_s, connection, "/healthz")}
        taken = take_turns(IDLE_ROUNDS, sides)
    return _look_figure(f"overview nobody had looked at beside {rows:,} jobs, {kind}", rows, *taken.values())


def _look_figure(what: str, rows: int, looks: Sequence[float], unit: Sequence[float]) -> Figure:
    return Figure(
        what=what,
        unit="x of /healthz",
        ratios=ratios(looks, unit),
        absolute=[look * 1000 for look in looks],
        absolute_unit="ms",
        budget=BUDGETS["page"],
        is_headline=rows == MILLION,
    )


def _get_alone_s(connection: HTTPConnection, path: str) -> float:
    """Measure a look after so long a pause that the server keeps nothing of the last one."""
    connection.close()  # the server closes it meanwhile; the next request opens it again
    time.sleep(LINGER_S + FRESH_S)
    return _get_s(connection, path)


def _recount_figure(kind: str, rows: int, target: Target, port: int) -> Figure:
    """Hold every figure against a recount of all rows, which raises where one differs; measure what both take."""
    asked: list[float] = []
    with (
        closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection,
        closing(connect(target)) as database,
    ):

        def ask(path: str) -> object:
            begun = time.perf_counter()
            connection.request("GET", path)
            answer = json.load(connection.getresponse())
            asked.append(time.perf_counter() - begun)
            return answer

        begun = time.perf_counter()
        compared = check(database, ask, QUEUES)
        taken = time.perf_counter() - begun
    return Figure(
        what=f"{compared:,} figures equal a recount of {rows:,} jobs, {kind}",
        unit="x of the recount",
        ratios=[sum(asked) / (taken - sum(asked))],
        absolute=[sum(asked) * 1000],
        absolute_unit="ms",
    )


def _page_figures(kind: str, rows: int, port: int) -> Iterator[Figure]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
        sides = {name: partial(_get_s, connection, path) for name, path in {**PAGES, "unit": "/healthz"}.items()}
        take_turns(2, sides)
        taken = take_turns(ROUNDS, sides)
    for name in PAGES:
        yield _look_figure(f"{name} beside {rows:,} jobs, {kind}", rows, taken[name], taken["unit"])


def _get_s(connection: HTTPConnection, path: str) -> float:
    begun = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise AssertionError(f"{path} answered {answer.status}")
    return time.perf_counter() - begun


def _live_figure(kind: str, rows: int, port: int) -> Figure:
    """Measure from the call that adds a job until a stream tells of it."""
    with ExitStack() as stack:
        stream = _stream(stack, port)
        api = stack.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)))
        _event(stream)
        delays, adds = [], []
        for _ in range(BURST):
            adds.append(_add_s(api))
            begun = time.perf_counter() - adds[-1]
            _event(stream)
            delays.append(time.perf_counter() - begun)
    return Figure(
        what=f"a job added is told of, beside {rows:,} jobs, {kind}",
        unit="x of adding it",
        ratios=ratios(delays, adds),
        absolute=[each * 1000 for each in delays],
        absolute_unit="ms",
        budget=BUDGETS["told of"],
        is_headline=rows == MILLION,
    )


def _viewers_figure(kind: str, rows: int, target: Target) -> Figure:
    """Compare how often a server reads the store while jobs are added, with one viewer and with many."""
    with _counted_reads() as count, _served_here(target) as port:
        taken = take_turns(VIEWER_ROUNDS, {str(each): partial(_reads, count, port, each) for each in (1, VIEWERS)})
    return Figure(
        what=f"reads of the store for {VIEWERS} dashboards beside {rows:,} jobs, {kind}",
        unit="x of one dashboard",
        ratios=ratios(taken[str(VIEWERS)], taken["1"]),
        absolute=[*taken[str(VIEWERS)]],
        absolute_unit="reads/s",
        budget=BUDGETS["viewers"],
        is_headline=rows == MILLION,
    )


def _reads(count: Callable[[], int], port: int, viewers: int) -> float:
    """Return how often the store is read in a second while so many look on and jobs are added."""
    before, begun = count(), time.perf_counter()
    with ExitStack() as stack:
        threads = [threading.Thread(target=_look_on, args=(_stream(stack, port), port)) for _ in range(viewers)]
        for thread in threads:
            thread.start()
        _add_slowly(port, WATCHED_S)
        rate = (count() - before) / (time.perf_counter() - begun)
        while any(thread.is_alive() for thread in threads):  # who waits for a change would wait for long now
            _add_slowly(port, ADD_EVERY_S)
    return rate


@contextmanager
def _counted_reads() -> Iterator[Callable[[], int]]:
    """Give what tells how often this process has read a store."""
    plain = Database.read
    made: list[None] = []

    def read(database: Database, work: Callable[[Tx], object]) -> object:
        made.append(None)
        return plain(database, work)

    Database.read = read  # type: ignore[method-assign, assignment]
    try:
        yield lambda: len(made)
    finally:
        Database.read = plain  # type: ignore[method-assign]


@contextmanager
def _served_here(target: Target) -> Iterator[int]:
    """Give the port of a server in this process."""
    from queuectl.web.app import make_app
    from queuectl.web.listening import bind
    from queuectl.web.serving import make_server

    with closing(bind("127.0.0.1", 0)) as listener:
        server = make_server(make_app(target))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            wait_for(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def _look_on(stream: HTTPResponse, port: int) -> None:
    """Do as a dashboard does for a while: at each change, ask for the page again as it is at that version."""
    until = time.perf_counter() + WATCHED_S
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as connection:
        while time.perf_counter() < until:
            version = _event(stream)
            try:
                connection.request("GET", "/", headers={"X-Live": version})
                connection.getresponse().read()
            except RemoteDisconnected:  # it rested too long; the next request opens another, as in a browser
                connection.close()


def _add_slowly(port: int, for_s: float) -> None:
    until = time.perf_counter() + for_s
    with closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)) as api:
        while time.perf_counter() < until:
            _add_s(api)
            time.sleep(ADD_EVERY_S)


def _add_s(api: HTTPConnection) -> float:
    begun = time.perf_counter()
    api.request("POST", "/api/v1/jobs", json.dumps({"command": "true"}), {"Content-Type": "application/json"})
    answer = api.getresponse()
    answer.read()
    if answer.status != 201:
        raise AssertionError(f"adding a job answered {answer.status}")
    return time.perf_counter() - begun


def _stream(stack: ExitStack, port: int) -> HTTPResponse:
    connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)))
    connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
    return connection.getresponse()


def _event(stream: HTTPResponse) -> str:
    """Read until the end of the next change and return its version; other events are passed by."""
    version, is_change = "", False
    while line := stream.readline():
        if line.startswith(b"id:"):
            version = line[3:].strip().decode()
        is_change = is_change or line.startswith(b"event: change")
        if line == b"\n" and is_change:
            return version
    raise AssertionError("the stream ended")
