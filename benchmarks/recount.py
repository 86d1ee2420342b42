"""Recount: what a server tells of a store, held against a plain count of every row. Raises where they differ."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from queuectl.model.errorgroup import group_name
from queuectl.store.database import Database, Tx

Ask = Callable[[str], object]
"""Asks the server for a path and gives the JSON it answers with."""

RANGES = ("1h", "24h", "7d")


def check(database: Database, ask: Ask, queues: Sequence[str]) -> int:
    """Compare every figure of the statistics, the states, the queues and the dead; return how many were compared."""
    runs = database.read(_runs)
    jobs = database.read(_jobs)
    compared = _same("states", ask("/api/v1/status"), "jobs", Counter(state for state, _, _ in jobs))
    for queue in queues:
        states = Counter(state for state, name, _ in jobs if name == queue)
        compared += _same(f"queue {queue}", ask(f"/api/v1/queues/{queue}"), None, states)
    for range_ in RANGES:
        compared += _check_stats(ask(f"/api/v1/stats?range={range_}"), runs)
        compared += _check_stats(ask(f"/api/v1/stats?range={range_}&queue={queues[-1]}"), runs)
    dead = Counter(group_name(error) for state, _, error in jobs if state == "dead")
    found = _objects(ask("/api/v1/dlq/groups"), "groups")
    _equal("dead by error", {str(each["error"]): each["count"] for each in found}, dict(dead))
    return compared + len(dead)


class _Run:
    """A run as its row says."""

    def __init__(self, row: Sequence[object]) -> None:
        self.queue, self.result, self.error = str(row[0]), str(row[1]), row[2]
        self.started_at, self.finished_at = int(str(row[3])), int(str(row[4]))
        self.waited_ms = None if row[5] is None else int(str(row[5]))


def _runs(tx: Tx) -> list[_Run]:
    sql = "SELECT queue, result, error, started_at, finished_at, waited_ms FROM attempts"
    return [_Run(row) for row in tx.rows(sql)]


def _jobs(tx: Tx) -> list[tuple[str, str, str | None]]:
    rows = tx.rows("SELECT state, queue, error FROM jobs")
    return [(str(state), str(queue), None if error is None else str(error)) for state, queue, error in rows]


def _check_stats(answer: object, runs: Sequence[_Run]) -> int:
    """Compare buckets, percentiles, what fails and what was done today."""
    told = _object(answer)
    name = f"stats of {told['range']}, queue {told['queue']}"
    since, until = _ms(told["since"]), _ms(told["until"])
    asked = [run for run in runs if told["queue"] in (None, run.queue)]
    mine = [run for run in asked if since <= run.finished_at < until]
    width = int(str(told["bucket_seconds"])) * 1000
    buckets = Counter(((run.finished_at - since) // width, run.result) for run in mine)
    shown = _objects(told, "buckets")
    for number, bucket in enumerate(shown):
        for result, count in _object(bucket["results"]).items():
            _equal(f"{name}: {result} in bucket {number}", count, buckets.pop((number, result), 0))
    _equal(f"{name}: beyond the buckets", dict(buckets), {})
    waits = [run.waited_ms for run in mine if run.waited_ms is not None]
    _equal(f"{name}: waits", told["wait"], _spread(waits))
    _equal(f"{name}: run times", told["run_time"], _spread([run.finished_at - run.started_at for run in mine]))
    failures = {"failed", "killed", "out_of_memory", "timed_out", "not_started", "lost"}
    failing = Counter(group_name(str(run.error or "")) for run in mine if run.result in failures)
    _equal(f"{name}: failing", {each["error"]: each["count"] for each in _objects(told, "failing")}, dict(failing))
    return len(shown) * len(_object(shown[0]["results"])) + 8 + len(failing)


def _spread(values: list[int]) -> dict[str, object]:
    """Return the percentiles of values by sorting them: the nearest rank."""
    values.sort()
    if not values:
        return {"count": 0, "p50_ms": None, "p95_ms": None, "max_ms": None}
    at = {name: values[-(-len(values) * percent // 100) - 1] for name, percent in (("p50_ms", 50), ("p95_ms", 95))}
    return {"count": len(values), **at, "max_ms": values[-1]}


def _same(name: str, answer: object, key: str | None, states: Counter[str]) -> int:
    told = _object(answer) if key is None else _object(_object(answer)[key])
    for state, count in states.items():
        _equal(f"{name}: {state}", told[state], count)
    return len(states)


def _equal(name: str, told: object, counted: object) -> None:
    if told != counted:
        raise AssertionError(f"{name}: the server says {json.dumps(told)[:500]}, a recount {json.dumps(counted)[:500]}")


def _ms(text: object) -> int:
    return round(datetime.fromisoformat(str(text)).timestamp() * 1000)


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise AssertionError(f"no JSON object: {value!r}")
    return value


def _objects(value: object, key: str) -> list[dict[str, object]]:
    found = _object(value)[key]
    if not isinstance(found, list):
        raise AssertionError(f"no list: {found!r}")
    return found
