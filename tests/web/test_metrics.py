"""Metrics and probes: what Prometheus and whoever looks after the server are told."""

import json
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from queuectl.actions.connect import connect
from queuectl.model.states import State
from queuectl.model.verdict import Outcome, Result
from queuectl.store import migrate, removing, workers
from queuectl.store.database import Database
from queuectl.system.host import host_name
from queuectl.web.readings import FRESH_S, Count, Readings
from queuectl.web.stores import Stores
from tests.program import Cli, wait_for
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, settle_run
from tests.web.serving import Site

EXAMPLES = Path(__file__).parents[2] / "examples"
ALERTS = EXAMPLES / "alerts.rules.yml"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(site: Site) -> Samples:
    """Return every sample by its name and labels."""
    answer = site.get("/metrics")
    assert answer.status == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples}


def of(samples: Samples, name: str, **labels: str) -> float:
    """Return one sample."""
    return samples[f"queuectl_{name}", tuple(sorted(labels.items()))]


def fresh(site: Site, reached: "tuple[str, float]") -> Samples:
    """Scrape until a counter without labels has come so far: one reading is good for a second."""

    def look() -> Samples | None:
        found = scrape(site)
        return found if of(found, reached[0]) >= reached[1] else None

    return wait_for(look, str(reached))


@pytest.mark.needs("promtool")
def test_promtool_accepts_what_is_told_also_of_an_empty_store(site: Site) -> None:
    for accept in ("text/plain", "application/openmetrics-text; version=1.0.0"):
        answer = site.get("/metrics", Accept=accept)

        assert answer.headers["content-type"].startswith(accept.partition(";")[0])
    plain = site.get("/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=plain.body, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_jobs_queues_and_workers_are_told_as_they_are(site: Site) -> None:
    with closing(connect(site.target)) as db:
        for state in (State.PENDING, State.PENDING, State.DEAD, State.COMPLETED):
            add_job(db, state, queue="mail")
        add_job(db, State.SCHEDULED)
        add_worker(db, "w1", host="far", slots=4)
        add_worker(db, "w2", host="far", slots=2, stop=workers.DRAIN)
        add_job(db, State.PROCESSING, worker_id="w1")
    site.post("/api/v1/queues/media/pause")

    found = scrape(site)

    assert of(found, "jobs", queue="mail", state="pending") == 2
    assert of(found, "jobs", queue="mail", state="dead") == 1
    assert of(found, "jobs", queue="media", state="dead") == 0
    assert of(found, "jobs", queue="default", state="processing") == 1
    assert of(found, "dead_jobs") == 1
    assert (of(found, "queue_paused", queue="media"), of(found, "queue_paused", queue="mail")) == (1, 0)
    assert of(found, "paused_queues") == 1
    assert of(found, "oldest_pending_seconds", queue="mail") >= 0
    assert of(found, "oldest_pending_seconds", queue="default") == 0
    assert of(found, "store_up") == 1
    assert of(found, "store_schema_version") == of(found, "store_schema_expected") == migrate.LATEST
    assert of(found, "store_size_bytes") > 10_000
    if site.target.sqlite_path is None:  # on a local store there is one host alone, and these have no process there
        assert of(found, "workers", host="far", state="working") == 1
        assert of(found, "workers", host="far", state="draining") == 1
        assert of(found, "worker_slots", host="far") == 6
        assert of(found, "worker_slots_busy", host="far") == 1
        assert of(found, "workers_working") == 1


def test_what_a_job_waited_before_it_was_ready_is_not_the_age_of_the_oldest_ready_one(site: Site) -> None:
    with closing(connect(site.target)) as db:
        add_job(db, State.PENDING, queue="mail", created_at=1, run_at=2)

    assert of(scrape(site), "oldest_pending_seconds", queue="mail") < 3600
    assert site.get("/api/v1/queues/mail").json()["oldest_ready"]["seconds"] < 3600


def test_runs_are_counted_as_they_begin_and_end(site: Site, cli: Cli) -> None:
    assert of(scrape(site), "runs_claimed_total") == 0
    cli.enqueue("true")
    cli.enqueue("--max-retries", "0", "exit 3")
    cli.enqueue("--max-retries", "0", "--timeout", "0.1s", "sleep 60")

    cli.drain()

    found = fresh(site, ("runs_claimed_total", 3))
    outcomes = {
        result: of(found, "runs_total", outcome=result) for result in ("completed", "failed", "timed_out", "lost")
    }
    assert outcomes == {"completed": 1, "failed": 1, "timed_out": 1, "lost": 0}
    assert of(found, "run_seconds_count") == 3
    assert of(found, "run_seconds_sum") >= 0.1
    assert of(found, "run_seconds_bucket", le="0.05") <= 2
    assert of(found, "run_seconds_bucket", le="7200") == of(found, "run_seconds_bucket", le="+Inf") == 3
    assert of(found, "wait_seconds_count") == 3
    assert of(found, "lease_rescues_total") == 0
    assert of(found, "jobs", queue="default", state="dead") == 2


def test_a_living_worker_and_its_slots_are_told(site: Site, cli: Cli) -> None:
    cli.enqueue("sleep 600")
    cli.start("worker", "start", "-j", "3")
    cli.wait_for_state("1", "processing")

    found = fresh(site, ("workers_working", 1))

    assert of(found, "workers", host=host_name(), state="working") == 1
    assert of(found, "workers", host=host_name(), state="lost") == 0
    assert of(found, "worker_slots", host=host_name()) == 3
    assert of(found, "worker_slots_busy", host=host_name()) == 1


def ended_run(db: Database, outcome: Outcome) -> int:
    """Run a job to its end at the time the clock stands at, and return its number."""
    add_job(db)
    claim = claim_one(db)
    settle_run(db, claim, outcome)
    return claim.job.seq


def test_counters_never_fall_and_count_each_run_once(db: Database) -> None:
    add_worker(db, "w1")
    count = Count()

    def at(ms: int) -> None:
        db.read_clock = FakeClock(now=NOW + ms)

    def moved() -> None:
        nonlocal count
        count = db.read(lambda tx: count.moved(tx, 0))

    def ended() -> int:
        assert sum(count.tally.ended.counts.values()) == count.tally.ended.run_time.count
        return count.tally.ended.run_time.count

    at(0)
    ended_run(db, Outcome.exited(0))  # before the first reading: not counted
    at(1)
    moved()
    assert ended() == 0
    seqs = []
    for ms, expected in ((1_000, 1), (30_000, 2), (70_000, 3), (200_000, 4), (200_500, 5)):
        at(ms)
        seqs.append(ended_run(db, Outcome.lost() if ms == 70_000 else Outcome.exited(0)))
        moved()
        moved()
        assert (ended(), count.tally.claimed) == (expected, expected), ms

    db.write(lambda tx: removing.delete(tx, seqs))  # as pruning does, also of what ended a moment ago
    moved()

    assert (ended(), count.tally.claimed) == (5, 5)
    assert count.tally.ended.counts[Result.LOST] == 1
    at(300_000)
    ended_run(db, Outcome.exited(0))
    moved()
    assert (ended(), count.tally.claimed) == (6, 6)


def test_a_run_that_is_committed_late_counts_and_those_before_the_first_look_do_not(db: Database) -> None:
    add_worker(db)
    db.read_clock = FakeClock(now=NOW)
    for _ in range(3):
        add_job(db)
    settle_run(db, claim_one(db), Outcome.exited(0))
    late, later = claim_one(db), claim_one(db)
    db.read_clock = FakeClock(now=NOW + 20)
    count = db.read(lambda tx: Count().moved(tx, 2))
    assert count.tally.ended.counts.get(Result.COMPLETED, 0) == 0

    db.read_clock = FakeClock(now=NOW + 10)  # its transaction began before the first look
    settle_run(db, late, Outcome.exited(0))
    db.read_clock = FakeClock(now=NOW + 30)
    count = db.read(lambda tx: count.moved(tx, 1))
    assert (count.tally.ended.counts[Result.COMPLETED], count.tally.claimed) == (1, 0)

    settle_run(db, later, Outcome.exited(3))
    db.read_clock = FakeClock(now=NOW + 200_000)
    count = db.read(lambda tx: count.moved(tx, 0))
    assert (sum(count.tally.ended.counts.values()), count.tally.ended.run_time.count, count.tally.claimed) == (2, 2, 0)


def test_many_scrapers_cost_one_reading_a_second(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = Stores(local_site.target)
    asked: list[object] = []
    real = stores.read

    def counted(work: object) -> object:
        asked.append(work)
        return real(work)  # type: ignore[arg-type]

    monkeypatch.setattr(stores, "read", counted)
    readings = Readings(stores)
    readings.current()
    readings._read_at += 1000 * FRESH_S  # as if no time had passed, however slow this host is

    for _ in range(20):
        readings.current()

    assert len(asked) == 1
    stores.close()


def test_a_store_that_is_gone_is_told_and_not_taken_for_an_empty_one(local_site: Site) -> None:
    assert scrape(local_site)["queuectl_store_up", ()] == 1
    assert local_site.get("/readyz").json() == {"status": "ready", "schema": migrate.LATEST}
    path = local_site.target.sqlite_path
    assert path is not None
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.rename(name, f"{name}.away")

    answer = local_site.get("/readyz")

    assert answer.status == 503
    assert "no database at" in answer.json()["detail"]
    assert local_site.get("/healthz").json() == {"status": "ok"}


def test_a_server_is_not_ready_with_a_schema_it_does_not_know(site: Site) -> None:
    with closing(connect(site.target)) as db:
        db.write(lambda tx: tx.dialect.set_schema_version(migrate.LATEST + 1))

    answer = site.get("/readyz")

    assert answer.status == 503
    assert f"schema {migrate.LATEST + 1}" in answer.json()["detail"]
    assert "upgrade" in answer.json()["hint"]
    assert site.get("/healthz").status == 200


def names_in(text: str) -> set[str]:
    """Return the metrics that an expression names, without what a histogram adds to them."""
    found = re.findall(r"\b(?:queuectl|process)_[a-z_]+", re.sub(r"\{[^}]*\}", "", text))
    return {re.sub(r"(?<=_seconds)_(bucket|sum|count)$", "", name) for name in found}


def test_the_examples_use_what_is_exported_and_the_dashboard_shows_all_of_it(local_site: Site) -> None:
    with closing(connect(local_site.target)) as db:
        add_job(db)
    exported = set(re.findall(r"^# TYPE (\S+)", local_site.get("/metrics").text, re.MULTILINE))
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    shown = names_in(" ".join(each["expr"] for panel in dashboard["panels"] for each in panel.get("targets", ())))
    asked = names_in(" ".join(each["query"]["query"] for each in dashboard["templating"]["list"][1:]))
    alerts = names_in("\n".join(re.findall(r"expr: ((?:.|\n)*?)\n +(?:for|labels):", ALERTS.read_text())))

    assert shown | asked | alerts <= exported
    assert {name for name in exported if name.startswith("queuectl_")} <= shown
    assert len(alerts) >= 8
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.needs("promtool")
def test_the_alert_rules_are_accepted_and_do_what_they_say() -> None:
    for words in (["check", "rules", "alerts.rules.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=EXAMPLES, capture_output=True, text=True)

        assert done.returncode == 0, done.stdout + done.stderr
