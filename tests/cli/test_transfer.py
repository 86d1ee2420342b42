"""`export` and `import` as people type them: streams, flags, exit codes, and what is said."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.actions.connect import locate
from tests.program import QUOTED, Cli, running_cli


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Cli]:
    """The program on another, empty home."""
    with running_cli(locate(None, {"QUEUECTL_HOME": str(tmp_path / "there")}), tmp_path) as cli:
        yield cli


def shapes(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_store_moves_through_a_pipe_and_its_jobs_run_there(cli: Cli, there: Cli) -> None:
    cli.enqueue("--id", "done", "printf 'a\\377b'")
    cli.drain()
    cli.enqueue("--id", "waiting", "echo moved")
    text = cli.ok("export")

    said = there.run("import", "-", stdin=text)

    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "2 jobs and 1 run imported, with 1 queue\n"
    assert shapes(there.ok("export"))[1:] == shapes(text)[1:]
    there.drain()
    assert there.ok("logs", "waiting") == "moved\n"
    assert there.job("done")["state"] == "completed"


def test_an_export_into_a_file_is_whole_private_and_replaces_nothing_unasked(cli: Cli) -> None:
    cli.enqueue("true")

    made = cli.run("export", "queue.jsonl")
    path = cli.folder / "queue.jsonl"
    first = path.read_text()
    cli.enqueue("true")
    refused = cli.run("export", "queue.jsonl")

    assert (made.returncode, made.stdout) == (0, "queue.jsonl: 1 job and 0 runs\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "queue.jsonl exists" in refused.stderr
    assert "--force" in refused.stderr
    assert path.read_text() == first
    assert json.loads(cli.ok("export", "--force", "--json", "queue.jsonl"))["jobs"] == 2
    assert shapes(path.read_text())[1:] == shapes(cli.ok("export", "-"))[1:]
    assert sorted(each.name for each in cli.folder.glob("*queue.jsonl*")) == ["queue.jsonl"]


def test_an_export_never_takes_the_place_of_the_store_or_a_device(local: Cli) -> None:
    local.enqueue("true")
    store = str(local.target.sqlite_path)

    assert local.run("export", "--force", store).returncode == 6
    assert local.run("export", "--force", "/dev/null").returncode == 0
    assert local.run("export", "--force", str(local.folder)).returncode == 2
    assert local.run("export", "no/such/folder/file").returncode == 2
    assert local.run("export", "--force").returncode == 2
    assert Path("/dev/null").is_char_device()
    assert len(local.json("list")) == 1


def test_a_filter_exports_the_jobs_it_names(local: Cli) -> None:
    local.enqueue("--id", "a", "--queue", "mail", "true")
    local.enqueue("--id", "b", "--tag", "red", "true")
    local.enqueue("--id", "c", "--delay", "1h", "true")

    def exported(*words: str) -> list[object]:
        return [shape["id"] for shape in shapes(local.ok("export", *words)) if shape["type"] == "job"]

    assert exported("--queue", "mail") == ["a"]
    assert exported("--tag", "red") == ["b"]
    assert exported("--state", "scheduled") == ["c"]
    assert exported() == ["a", "b", "c"]


def test_jobs_that_exist_refuse_the_file_unless_told_otherwise(local: Cli) -> None:
    local.enqueue("--id", "mine", "true")
    local.enqueue("true")
    path = local.folder / "file"
    path.write_text(local.ok("export"))

    refused = local.run("import", str(path))
    skipped = local.run("import", "--skip-existing", str(path))
    both = local.run("import", "--renumber", "--skip-existing", str(path), "--json")

    assert refused.returncode == 6
    assert "2 of the 2 jobs cannot come in: id 'mine' is taken, job 2 is there already" in refused.stderr
    assert "--renumber" in refused.stderr
    assert skipped.stdout == "0 jobs and 0 runs imported\n"
    assert "2 jobs passed by, there already: mine, 2\n" in skipped.stderr
    assert json.loads(both.stdout) == {
        "jobs": 1, "runs": 0, "queues": 0, "limits": 0, "schedules": 0, "groups": 0, "settings": 0, "skipped": 1,
        "skipped_ids": ["mine"], "moved": 0, "settings_left": 0, "waiting_again": 0, "limits_missing": [],
        "held": 0, "held_ids": [],
    }  # fmt: skip
    assert "warning: under fresh numbers a job without an id" in both.stderr
    assert [job["id"] for job in local.json("list")] == ["3", "2", "mine"]


def test_a_backup_is_not_taken_for_an_export(local: Cli) -> None:
    local.enqueue("true")
    local.ok("backup", "copy.db")

    done = local.run("import", "copy.db")

    assert done.returncode == 2
    assert "this is a backup, not an export" in done.stderr
    assert "queuectl restore FILE" in done.stderr


def test_settings_are_left_out_with_a_word_or_taken_when_asked(local: Cli, there: Cli) -> None:
    local.ok("config", "set", "max_retries", "9")
    there.ok("config", "set", "shell", "/bin/bash")
    text = local.ok("export")

    left = there.run("import", "-", stdin=text)
    before = there.ok("config", "get", "max_retries")
    there.ok("import", "--settings", "-", stdin=text)

    assert "1 setting left out" in left.stderr
    assert (before, there.ok("config", "get", "max_retries")) == ("3\n", "9\n")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "nothing to import"),
        ('{"type": "header"\n', "line 1: broken JSON at column 18"),
        ('{"type": "header", "format": 99}\n', "line 1: format 99 is newer"),
        ("echo hello\n", "line 1: broken JSON at column 1"),
    ],
)
def test_a_file_that_is_none_of_ours_is_bad_input(local: Cli, text: str, words: str) -> None:
    done = local.run("import", "-", stdin=text)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setting_of_another_version_is_named_with_its_line(local: Cli) -> None:
    lines = local.ok("export").splitlines()
    lines[1:1] = ['{"type": "setting", "key": "max_retry", "value": "3"}']

    done = local.run("import", "-", stdin="\n".join(lines))

    assert done.returncode == 2
    assert "line 2: unknown setting 'max_retry'; did you mean 'max_retries'?" in done.stderr


def test_a_file_that_is_not_there_is_bad_input(local: Cli) -> None:
    done = local.run("import", "/no/such/file")

    assert done.returncode == 2
    assert "cannot read /no/such/file: No such file" in done.stderr


def test_bytes_that_are_not_text_are_refused_with_their_line(local: Cli) -> None:
    path = local.folder / "file"
    path.write_bytes(local.ok("export").splitlines(keepends=True)[0].encode() + b'{"type": "\xff"}\n')

    done = local.run("import", str(path))

    assert done.returncode == 2
    assert "line 2: not valid UTF-8 at byte 11" in done.stderr


def test_an_export_into_a_closed_pipe_is_quiet(local: Cli) -> None:
    local.run("enqueue", "--from", "-", stdin="true\n" * 2000)

    done = subprocess.run(
        ["sh", "-c", f"{QUOTED} export | head -n 1"], env=local.environ, capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert shapes(done.stdout)[0]["type"] == "header"


def test_limits_come_along_and_those_that_are_missing_are_named(local: Cli) -> None:
    local.ok("limit", "set", "api", "4")
    local.enqueue("--limit", "api", "true")
    whole, some = local.folder / "whole", local.folder / "some"
    whole.write_text(local.ok("export"))
    some.write_text(local.ok("export", "--state", "pending"))

    first = local.run("import", str(some), "--db", f"sqlite://{local.folder}/some.db")
    second = local.run("import", str(whole), "--db", f"sqlite://{local.folder}/whole.db")

    assert "hold nothing back until they are made: api\n" in first.stderr
    assert (second.stdout, second.stderr) == ("1 job and 0 runs imported, with 1 queue and 1 limit\n", "")
