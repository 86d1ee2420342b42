"""The examples of the Python guide are run as they stand, against real workers."""

import doctest
import re
from pathlib import Path

import pytest

from tests.program import Cli

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"


def test_the_examples_of_the_guide_give_what_it_says(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in cli.environ.items():
        if name.startswith("QUEUECTL_"):
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my notes.txt").write_text("notes\n")
    cli.ok("worker", "start", "-n", "2", "-d")
    blocks = re.findall(r"^```pycon\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", str(GUIDE), 0)

    said: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(examples, out=said.append, clear_globs=False)
    examples.globs["queue"].close()

    assert runner.failures == 0, "".join(said)
    assert runner.tries > 20
