"""The kernel end to end: what the first page of the README promises."""

from tests.program import Cli


def test_a_failing_job_is_retried_with_backoff_and_then_buried(cli: Cli) -> None:
    job_id = cli.enqueue("--max-retries", "1", "--backoff-base", "1", "exit 3")

    cli.drain()

    job = cli.job(job_id)
    assert (job["state"], job["attempts"], job["exit_code"]) == ("dead", 2, 3)
