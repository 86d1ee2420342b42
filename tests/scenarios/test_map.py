"""Many at once: what workers really run for each value, whatever it holds."""

import os
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest

from tests.program import PROGRAM, Cli, lines_of

NAMES = [
    "plain.txt",
    "two words.txt",
    "  blanks around  ",
    "it's.txt",
    'say "hi".txt',
    "new\nline.txt",
    "ends in a newline\n",
    "$(touch ran).txt",
    "`touch ran`.txt",
    "'; touch ran; '",
    '"; touch ran; "',
    "a;b&c|d<e>f(g)h{i}j",
    "$HOME ${HOME} $$",
    "back\\slash\\",
    "-n",
    "--help",
    "*",
    "~",
    "#no comment",
    "!!",
    "a=b",
    "tab\there",
    "\x1b[31mred",
    "déjà vu",
    "日本語",
    "if",
    "{}",
    "{.}",
    "%s%n",
    "\x7f\x01",
]
TEMPLATES = [
    "cp -- ./{} out/{#} && cat ./{} >/dev/null",
    'cp -- "./{}" "out/{#}"',
    "cp -- './{}' out/{#}",
    'cp -- "$(printf %s "./{}")" out/{#} || cp -- ./{} out/{#}',
    "if test -e ./{1}; then (cp -- ./{1} out/{#}); fi # all of them",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_name_reaches_its_command_literally(cli: Cli, template: str) -> None:
    """Each file holds its own name; a copy by its number shows which name the command was given."""
    _make_files(cli.folder)

    cli.ok("map", template, ":::", *NAMES)
    cli.drain("-j", "4")

    assert _copies(cli.folder) == NAMES
    assert not (cli.folder / "ran").exists()


def test_each_name_reaches_a_program_without_a_shell(cli: Cli) -> None:
    _make_files(cli.folder)

    cli.ok("map", "--", "cp", "--", "./{}", "out/{#}", ":::", *NAMES)
    cli.drain("-j", "4")

    assert _copies(cli.folder) == NAMES


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", pytest.param("/bin/zsh", marks=pytest.mark.needs("zsh"))])
def test_each_name_of_find_reaches_its_command(cli: Cli, shell: str) -> None:
    _make_files(cli.folder)
    found = subprocess.run(["find", "in", "-type", "f", "-print0"], cwd=cli.folder, capture_output=True, check=True)

    subprocess.run(
        [PROGRAM, "map", "-0", "--shell", shell, 'mkdir -p "out/{//}" && cp -- {} "out/{//}"/{/}'],
        env=cli.environ, cwd=cli.folder, input=found.stdout, check=True, timeout=60,
    )  # fmt: skip
    cli.drain("-j", "4")

    assert sorted(os.listdir(cli.folder / "out" / "in")) == sorted(NAMES)


def test_a_command_of_an_array_knows_its_number(cli: Cli) -> None:
    cli.ok("map", "--array", "1-9:4", "echo $QUEUECTL_ARRAY_INDEX $(({} * 10)) >>numbers")
    cli.drain()

    assert sorted(lines_of(cli.folder / "numbers")) == ["1 10", "5 50", "9 90"]


def test_a_worker_started_in_an_array_hands_on_no_number(cli: Cli) -> None:
    cli.ok("enqueue", "echo ${QUEUECTL_ARRAY_INDEX-none} >number")

    cli.ok("worker", "start", "--until-idle", env={"QUEUECTL_ARRAY_INDEX": "5"})

    assert lines_of(cli.folder / "number") == ["none"]


@pytest.mark.parametrize("group", [(), ("--group", "steps")], ids=["alone", "in a group"])
def test_no_more_of_an_array_run_at_once_than_it_says(cli: Cli, group: tuple[str, ...]) -> None:
    both_began = "until [ $(grep -c + log) -ge 2 ]; do sleep 0.01; done"
    cli.ok("map", *group, "--array", "1-12%2", f"echo +1 >>log; {both_began}; sleep 0.02; echo -1 >>log")
    cli.drain("-j", "6")

    running = list(accumulate(int(line) for line in lines_of(cli.folder / "log")))
    assert len(running) == 24
    assert max(running) == 2


def test_a_map_that_waits_returns_when_all_have_ended(cli: Cli) -> None:
    cli.ok("worker", "start", "-d", "-j", "2")

    done = cli.run("map", "--wait", "echo {} >>log", ":::", "a", "b", "c")

    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")
    assert sorted(lines_of(cli.folder / "log")) == ["a", "b", "c"]


@pytest.mark.parametrize("codes", [("0", "3", "0"), ("3",)])
def test_a_map_that_waits_fails_when_one_job_did(cli: Cli, codes: tuple[str, ...]) -> None:
    cli.ok("worker", "start", "-d", "-j", "2")

    done = cli.run("map", "--wait", "--max-retries", "0", "exit {}", ":::", *codes)

    assert done.returncode == 1
    assert "dead, exit code 3" in done.stderr


def test_each_job_can_have_a_key_of_its_own(cli: Cli) -> None:
    line = ("map", "--unique", "thumb of {}", "echo {} >>log", ":::")
    cli.ok(*line, "a", "b")

    done = cli.run(*line, "b", "c")
    cli.drain()

    assert done.stdout == "2\n3\n"
    assert "has the key 'thumb of b'" in done.stderr
    assert sorted(lines_of(cli.folder / "log")) == ["a", "b", "c"]


def _make_files(folder: Path) -> None:
    for place in (folder, folder / "in"):
        place.mkdir(exist_ok=True)
        for name in NAMES:
            (place / name).write_text(name)
    (folder / "out").mkdir()


def _copies(folder: Path) -> list[str]:
    return [(folder / "out" / str(number)).read_text() for number in range(1, len(NAMES) + 1)]
