"""Deadlines with real workers: what waits is buried in time, what runs is stopped, and who waits for it hears of it."""

from pathlib import Path

from tests.program import Cli
from tests.scenarios.working import is_running, on_postgres


def test_supervisors_bury_what_waits_beyond_its_deadline(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    cli.ok("queue", "pause", "paused")
    ids = [
        cli.enqueue("--deadline", "1s", "--hold", "true"),
        cli.enqueue("--deadline", "1s", "--queue", "paused", "true"),
    ]

    waited = cli.run("wait", *ids, "--timeout", "30s")

    assert waited.returncode == 1
    assert [cli.job(each)["cause"] for each in ids] == ["its deadline passed before it could run"] * 2


@on_postgres
def test_a_deadline_is_for_all_runs_together_and_stops_the_whole_tree_of_the_last(cli: Cli, tmp_path: Path) -> None:
    line = f'test "$QUEUECTL_RUN" = 2 || exit 1; sleep 600 & echo $! >{tmp_path}/pid; sleep 600'
    job_id = cli.enqueue("--deadline", "5s", "--timeout", "60s", "--backoff-base", "0.1", line)

    cli.drain()

    dead = cli.job(job_id)
    assert (dead["state"], dead["cause"], dead["attempts"]) == ("dead", "its deadline of 5s passed while it ran", 2)
    assert not is_running(int((tmp_path / "pid").read_text()))
