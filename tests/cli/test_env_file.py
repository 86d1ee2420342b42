"""enqueue --env-file: variables out of files, read when the job is added. What a line means is the model's."""

from pathlib import Path

import pytest

from tests.program import Cli


def test_later_files_win_over_earlier_ones_and_env_over_all(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("A=1\nB=1\nC=1\nexport D='a b'\n")
    (tmp_path / "two").write_text("# more\nB=2\nC=2\n")

    job = local.job(local.enqueue("--env", "C=3", "--env-file", "one", "--env-file", "two", "true"))

    assert job["env"] == {"A": "1", "B": "2", "C": "3", "D": "a b"}


def test_the_command_gets_them_as_they_were_when_it_was_added(local: Cli, tmp_path: Path) -> None:
    file = tmp_path / "variables"
    file.write_text('COLOUR="deep blue"\n')
    job_id = local.enqueue("--env-file", str(file), "echo $COLOUR")
    file.unlink()

    local.drain()

    assert local.ok("logs", job_id) == "deep blue\n"


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "cannot read --env-file variables: No such file or directory"),
        (b"A=\xff", "cannot read --env-file variables: not valid UTF-8"),
        (b"A=1\nhunter2\n", "--env-file variables: line 2 has no '='"),
        (b"QUEUECTL_HOME=hunter2", "QUEUECTL_HOME is set by queuectl itself"),
    ],
)
def test_a_file_that_cannot_be_used_adds_nothing(local: Cli, tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "variables").write_bytes(content)

    done = local.run("enqueue", "--env-file", "variables", "true")

    assert done.returncode == 2
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert local.json("list") == []
