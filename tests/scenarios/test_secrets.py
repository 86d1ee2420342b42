"""Secrets end to end: the command has the value; the store, the home and whoever looks have its name alone."""

import os
import signal
from pathlib import Path

import psycopg

from tests.program import Cli, wait_for
from tests.scenarios.working import on_sqlite, wait_for_workers

VALUE = "hunter2-correct-horse"
IN_TWO = 'head=${API_KEY%???}; printf "got $head"; sleep 0.3; echo "${API_KEY#"$head"}"'


def test_no_trace_of_a_secret_is_kept(cli: Cli) -> None:
    put_secret(cli)
    long = cli.enqueue("--secret", "API_KEY", "--max-retries", "0", f'{IN_TWO}; echo "$API_KEY" >&2; false')
    apart = cli.enqueue("--secret", "API_KEY", "--split-output", "--id", "apart", "echo $API_KEY; printf $API_KEY >&2")
    missing = cli.enqueue("--secret", "OTHER", "--max-retries", "0", "true")

    cli.start("worker", "start", "--until-idle", "-j", "3")
    followed = cli.ok("logs", "-f", long)

    cli.wait_for_state(apart, "completed")
    reason = str(cli.wait_for_state(missing, "dead")["error"])
    assert followed == cli.ok("logs", long) == "got ***\n***\n"
    assert (cli.ok("logs", apart, "--stdout"), cli.ok("logs", apart, "--stderr")) == ("***\n", "***")
    assert cli.job(long)["launch"] == {"secrets": ["API_KEY"]}
    assert reason.startswith("secret OTHER: not found as variable QUEUECTL_SECRET_OTHER, ")
    everything = dump(cli)
    assert "got ***" in everything or b"got ***".hex() in everything
    assert VALUE not in everything
    assert VALUE.encode().hex() not in everything
    assert "Secrets:      API_KEY\n" in (shown := cli.ok("show", long))
    assert VALUE not in shown + cli.ok("export")


def test_run_where_nobody_works_brings_the_variables_of_its_caller(cli: Cli) -> None:
    done = cli.run("run", "--secret", "API_KEY", IN_TWO, env={"API_KEY": VALUE})

    assert (done.returncode, done.stdout) == (0, "got ***\n")
    assert VALUE not in done.stderr


@on_sqlite
def test_a_worker_that_is_killed_leaves_only_masked_output(cli: Cli) -> None:
    put_secret(cli)
    line = 'echo "first $API_KEY"; printf %s "${API_KEY%?}"; exec sleep 600'
    job_id = cli.enqueue("--secret", "API_KEY", "--max-retries", "0", line)
    cli.start("worker", "start")
    (worker,) = wait_for_workers(cli, 1)
    wait_for(lambda: "first ***" in cli.ok("logs", job_id) or None, "the first line")

    os.kill(int(str(worker["pid"])), signal.SIGKILL)
    wait_for(lambda: cli.job(job_id)["runs"][0]["outcome"] == "lost" or None, "the rescue")  # type: ignore[index]

    assert cli.ok("logs", job_id, "--run", "1") == "first ***\n"
    assert VALUE[:-1] not in dump(cli)


def put_secret(cli: Cli) -> None:
    """Write the secret into the home as its user does."""
    folder = Path(cli.target.home.secrets)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "API_KEY").write_text(VALUE + "\n")
    (folder / "API_KEY").chmod(0o600)


def dump(cli: Cli) -> str:
    """Return all that the home holds, but for the secrets, and every row of every table."""
    files = [file for file in Path(cli.target.home.root).rglob("*") if file.is_file()]
    texts = [file.read_bytes().decode("latin-1") for file in files if file.parent.name != "secrets"]
    if cli.target.sqlite_path is None:
        texts += rows_of(cli.target.url)
    return "\n".join(texts)


def rows_of(url: str) -> list[str]:
    """Return every row of every table as text; bytes are in hexadecimal."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'queuectl'").fetchall()
        rows = [connection.execute(f'SELECT t::text FROM queuectl."{name}" t').fetchall() for (name,) in tables]
    return [str(row[0]) for table in rows for row in table]
