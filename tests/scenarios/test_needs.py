"""What `worker start` offers, seen by the commands: labels, units, and turns by weight."""

from pathlib import Path

from tests.program import Cli


def test_a_worker_with_the_labels_and_resources_runs_the_job_and_tells_it_its_units(cli: Cli) -> None:
    job = cli.enqueue("--needs", "gpu,linux", "--use", "gpu=2,mem=4G", "echo $QUEUECTL_RES_GPU $QUEUECTL_RES_MEM")
    plain = cli.enqueue("echo ${QUEUECTL_RES_GPU-none}")

    cli.ok("worker", "start", "--until-idle", "--label", "gpu", "--resource", "gpu=2", "--resource", "mem=16G")
    before = cli.job(job)["state"]
    offer = ("--label", "gpu,linux", "--resource", "gpu=2", "--resource", "mem=16G")
    cli.ok("worker", "start", "--until-idle", *offer)

    assert before == "pending"
    assert cli.ok("logs", job) == f"0,1 {4 << 30}\n"
    assert cli.ok("logs", plain) == "none\n"


def test_queues_take_turns_by_weight(cli: Cli, tmp_path: Path) -> None:
    order = tmp_path / "order"  # times on record would not do: two no-ops may begin within one millisecond
    for queue in ("b", "a"):
        cli.run("enqueue", "--queue", queue, "--from", "-", stdin=f"echo {queue} >>{order}\n" * 6)

    cli.ok("worker", "start", "--until-idle", "--queue", "a:3", "--queue", "b:1")

    assert order.read_text().split()[:8].count("a") == 6
