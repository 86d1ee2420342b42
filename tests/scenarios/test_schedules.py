"""Schedules with real processes: on time, with every slot busy, once however many tick and whoever is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from queuectl.actions import scheduling
from queuectl.actions.connect import Target
from queuectl.model.units import DAY_MS, HOUR_MS, MINUTE_MS, iso_text
from queuectl.store import jobs, schedules
from queuectl.store.database import Database
from tests.program import Cli, wait_for
from tests.scenarios.working import seconds
from tests.store.rows import NOW, FakeClock

TICKING = Path(__file__).with_name("ticking.py")


def fires(cli: Cli, name: str) -> list[dict[str, object]]:
    """Return what came of the instants of a schedule, oldest first."""
    found = json.loads(cli.ok("schedule", "show", name, "--fires", "100", "--json"))["fires"]
    return list(reversed(found))


def test_a_schedule_that_is_added_while_workers_sleep_fires_on_time(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")

    cli.ok("schedule", "add", "beat", "--every", "1s", "true")
    wait_for(lambda: len(fires(cli, "beat")) >= 4 or None, "four instants")

    late = sorted(seconds(each["fired_at"]) - seconds(each["instant"]) for each in fires(cli, "beat"))
    assert late[0] >= 0
    assert late[len(late) // 2] < 0.25, late  # who looks once a second is later than that three times out of four


def test_schedules_fire_while_every_slot_is_busy_and_a_paused_one_does_not(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    busy = cli.enqueue("sleep 600")
    cli.wait_for_state(busy, "processing")

    cli.ok("schedule", "add", "beat", "--every", "1s", "true")
    cli.ok("schedule", "add", "rests", "--every", "1s", "true")
    cli.ok("schedule", "pause", "rests")
    wait_for(lambda: len(fires(cli, "beat")) >= 2 or None, "two instants")

    assert {each["state"] for each in fires(cli, "beat")} == {"pending"}
    rested = len(fires(cli, "rests"))
    wait_for(lambda: len(fires(cli, "beat")) >= 4 or None, "two more")
    assert len(fires(cli, "rests")) == rested


def test_several_who_start_workers_fire_each_instant_once_while_some_are_killed(cli: Cli) -> None:
    cli.ok("schedule", "add", "beat", "--every", "1s", "--misfire", "all", "true")
    for _ in range(2):
        cli.ok("worker", "start", "-d")
    victim = cli.start("worker", "start")
    wait_for(lambda: len(fires(cli, "beat")) >= 3 or None, "three instants")

    victim.kill()
    wait_for(lambda: len(fires(cli, "beat")) >= 6 or None, "three more")
    cli.ok("worker", "stop", "--now")

    instants = [seconds(each["instant"]) for each in fires(cli, "beat")]
    assert instants == [instants[0] + step for step in range(len(instants))]
    made = [str(job["number"]) for job in cli.json("list", "--limit", "1000")]
    assert sorted(made) == sorted(str(each["job"]) for each in fires(cli, "beat"))


def test_replace_ends_the_running_job_before_the_next_begins(cli: Cli) -> None:
    cli.ok("worker", "start", "-d", "-j", "4")
    line = "mkdir lock || exit 3; trap 'rmdir lock; exit 0' TERM; sleep 60 & wait"
    cli.ok("schedule", "add", "long", "@yearly", "--overlap", "replace", "--max-retries", "0", line)

    numbers = []
    for _ in range(3):
        numbers.append(cli.ok("schedule", "run", "long").strip())
        cli.wait_for_state(numbers[-1], "processing")
        wait_for(lambda: (cli.folder / "lock").exists() or None, "the lock taken")

    assert [cli.job(number)["state"] for number in numbers] == ["cancelled", "cancelled", "processing"]
    assert cli.job(numbers[0])["cause"] == f"cancelled while running: replaced by job {numbers[1]} of schedule long"


@pytest.mark.timeout(600)
def test_two_that_are_killed_at_random_for_a_simulated_month_fire_each_instant_once(
    db: Database, target: Target, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    _set(clock, NOW)
    db.read_clock = FakeClock()
    lines = {"daily": "17 */3 * * *", "nightly": "30 2 * * *", "often": "*/20 8-10 * * mon-fri"}
    for name, line in lines.items():
        scheduling.add(db, name, _asked(cron=line), {"command": "true"}, who="ann")
    scheduling.add(db, "period", _asked(every="193m", jitter="10m"), {"command": "true"}, who="ann")
    known = db.read(schedules.all_schedules)
    end = NOW + 30 * DAY_MS
    wanted = {
        (each.name, iso_text(instant))
        for each in known
        for instant in each.rhythm.newest(NOW, end, 100_000)
        if instant + each.jitter_of(instant) <= end
    }
    dice = random.Random(7)
    living = [_start(target, clock) for _ in range(2)]

    now, kills = NOW, 0
    try:
        while now < end:
            now = min(end, now + dice.choice([3 * HOUR_MS, 15 * HOUR_MS, 21 * MINUTE_MS]))
            _set(clock, now)
            time.sleep(dice.uniform(0, 0.03))  # where they are in their work is for chance to say
            if dice.random() < 0.3:
                place = dice.randrange(2)
                _kill(living[place])
                living[place] = _start(target, clock)
                kills += 1
        db.read_clock = lambda real: real
        wait_for(lambda: len(_made(db)) >= len(wanted) or None, "all instants fired", deadline_s=400)
    finally:
        for process in living:
            _kill(process)

    made = Counter(_made(db))
    assert set(made) == wanted
    assert set(made.values()) == {1}
    assert kills > 10


def _asked(**when: str) -> dict[str, object]:
    return {"tz": "Europe/Oslo", "misfire": "all", "misfire_cap": 1000, **when}


def _made(db: Database) -> list[tuple[str, str]]:
    """Return of each job which schedule it comes from, and for which instant."""
    found = db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 100_000))
    return [(job.env_map["QUEUECTL_SCHEDULE"], job.env_map["QUEUECTL_SCHEDULED_FOR"]) for job in found]


def _set(clock: Path, now: int) -> None:
    """Set the clock in one step: who reads it finds one time or the other."""
    fresh = clock.with_suffix(".new")
    fresh.write_text(str(now))
    os.replace(fresh, clock)


def _start(target: Target, clock: Path) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "QUEUECTL_HOME": target.home.root, "QUEUECTL_DATABASE_URL": target.url}
    return subprocess.Popen([sys.executable, str(TICKING), str(clock)], env=environ)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
