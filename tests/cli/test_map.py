"""`queuectl map`: a job for each value, as the command line has it. That values reach commands is in scenarios/."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.program import PROGRAM, QUOTED, Cli

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "map.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMES = ["a.jpg", "b c.jpg", "it's.jpg", "$(id).jpg", "new\nline.jpg"]


def _commands(cli: Cli) -> list[object]:
    """Return the commands of all jobs, oldest first."""
    return [job["argv"] or job["command"] for job in reversed(cli.json("list", "--limit", "1000"))]


def test_a_job_is_added_for_each_value_and_the_ids_are_printed(cli: Cli) -> None:
    cli.enqueue("true")

    printed = cli.ok("map", "convert {} {.}.png", ":::", "a.jpg", "b c.jpg")

    assert printed == "2\n3\n"
    assert _commands(cli)[1:] == ["convert 'a.jpg' 'a'.png", "convert 'b c.jpg' 'b c'.png"]


def test_words_behind_two_dashes_are_run_without_a_shell(cli: Cli) -> None:
    cli.ok("map", "--", "convert", "-x", "{}", "out {/.}.png", ":::", *NAMES)

    assert _commands(cli) == [["convert", "-x", name, f"out {name.removesuffix('.jpg')}.png"] for name in NAMES]


def test_several_plain_words_are_a_program_and_its_arguments(local: Cli) -> None:
    local.ok("map", "ls", "{}", ":::", "a b")

    assert _commands(local) == [["ls", "a b"]]


def test_values_may_look_like_options_and_like_two_dashes(local: Cli) -> None:
    local.ok("map", "ls", ":::", "-l", "--", "--help", "--all", ":")

    assert _commands(local) == ["ls '-l'", "ls '--'", "ls '--help'", "ls '--all'", "ls ':'"]


def test_lists_are_combined_and_the_last_varies_fastest(local: Cli) -> None:
    local.ok("map", "echo {1}-{2} {#}", ":::", "a", "b", ":::", "x", "y")

    assert _commands(local) == ["echo 'a'-'x' '1'", "echo 'a'-'y' '2'", "echo 'b'-'x' '3'", "echo 'b'-'y' '4'"]


def test_linked_lists_go_side_by_side(local: Cli) -> None:
    (local.folder / "names").write_text("x\ny\n")

    local.ok("map", "echo {1} {2} {3}", ":::", "a", "b", ":::+", "c", "d", "::::+", "names")

    assert _commands(local) == ["echo 'a' 'c' 'x'", "echo 'b' 'd' 'y'"]


def test_each_file_is_a_list_and_a_dash_is_standard_input(local: Cli) -> None:
    (local.folder / "names").write_text("a b\n\nit's\n")

    local.ok("map", "echo {1} {2}", "::::", "names", "-", stdin="x\ny")

    assert _commands(local) == ["echo 'a b' 'x'", "echo 'a b' 'y'", "echo 'it'\\''s' 'x'", "echo 'it'\\''s' 'y'"]


def test_without_a_list_values_are_the_lines_of_standard_input(cli: Cli) -> None:
    assert cli.ok("map", "echo {}", stdin="a b\n c\n\n$(id)") == "1\n2\n3\n"

    assert _commands(cli) == ["echo 'a b'", "echo ' c'", "echo '$(id)'"]


def test_values_that_end_with_nul_may_hold_newlines(local: Cli) -> None:
    local.ok("map", "-0", "ls {}", stdin="a\nb\0\0c")

    assert _commands(local) == ["ls 'a\nb'", "ls ''", "ls 'c'"]


@pytest.mark.parametrize(
    "text, values",
    [("\ufeffa\r\nb\r\n", ["a", "b"]), ("a\r\nb\n", ["a\r", "b"]), ("a\r\n\r\nb\r\n", ["a", "b"])],
    ids=["of Windows", "of neither", "of Windows with an empty line"],
)
def test_ends_of_lines_of_windows_are_no_part_of_values(local: Cli, text: str, values: list[str]) -> None:
    (local.folder / "names").write_bytes(text.encode())

    local.ok("map", "ls {}", "::::", "names")

    assert _commands(local) == [f"ls '{value}'" for value in values]


def test_another_string_can_be_replaced(local: Cli) -> None:
    local.ok("map", "-I", ",,", "find ,, -exec ls {} ';'", ":::", "a b")

    assert _commands(local) == ["find 'a b' -exec ls {} ';'"]


@pytest.mark.parametrize("words", [(":::",), (":::", "a", ":::"), ("::::", "empty"), ()], ids=" ".join)
def test_no_values_add_nothing_and_are_no_error(local: Cli, words: tuple[str, ...]) -> None:
    (local.folder / "empty").write_text("\n")

    done = local.run("map", "echo {}", *words)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no values: nothing was added\n")
    assert _commands(local) == []


def test_a_dry_run_prints_the_commands_and_needs_no_store(local: Cli) -> None:
    nowhere = {"QUEUECTL_HOME": "/proc/none", "QUEUECTL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}

    done = local.run("map", "--dry-run", "echo {} >> {/.}.txt", ":::", "a b.c", "it's", env=nowhere)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "echo 'a b.c' >> 'a b'.txt\necho 'it'\\''s' >> 'it'\\''s'.txt\n"


def test_what_a_dry_run_prints_is_what_is_added(local: Cli) -> None:
    line = ("map", "--array", "1-2", "echo \"{1} {2}\" '{2/}'", ":::", *NAMES)
    printed = local.ok(line[0], "--dry-run", *line[1:])

    local.ok(*line)

    assert printed == "".join(f"{command}\n" for command in _commands(local))


def test_a_dry_run_prints_argument_vectors_as_a_shell_would_read_them(local: Cli) -> None:
    assert local.ok("map", "--dry-run", "--", "ls", "-l", ":::", "a b") == "ls -l 'a b'\n"


def test_a_value_that_another_shell_would_read_is_warned_of(local: Cli) -> None:
    done = local.run("map", "sh -c 'ls {}'", ":::", "a")

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "warning: {} is read again by another shell" in done.stderr


def test_a_dry_run_shows_a_terminal_what_it_would_obey(local: Cli) -> None:
    mother, child = pty.openpty()
    subprocess.run(
        [PROGRAM, "map", "--dry-run", "ls", ":::", "a\x1b[2J\nb"], env=local.environ, stdout=child, check=True
    )
    os.close(child)

    shown = os.read(mother, 1000).decode()
    os.close(mother)

    assert shown == "ls 'a\\x1b[2J\\nb'\r\n"


def test_json_tells_each_job_its_values_and_its_command(cli: Cli) -> None:
    shell = cli.ok("map", "--json", "--id", "x-{#}", "ls {}", ":::", "a b")
    vector = cli.ok("map", "--json", "--dry-run", "--", "ls", ":::", "a b")

    assert json.loads(shell) == {"id": "x-1", "result": "added", "values": ["a b"], "command": "ls 'a b'", "argv": None}
    assert json.loads(vector) == {"id": None, "result": None, "values": ["a b"], "command": None, "argv": ["ls", "a b"]}


def test_options_of_a_job_are_those_of_every_job(cli: Cli) -> None:
    cli.ok("map", "--queue", "q", "--priority", "3", "--tag", "t", "--env", "A=b", "--cwd", "/", "ls", ":::", "a", "b")

    jobs = cli.json("list")
    assert [(job["queue"], job["priority"], job["tags"], job["cwd"]) for job in jobs] == [("q", 3, ["t"], "/")] * 2
    assert [cli.job(str(job["id"]))["env"] for job in jobs] == [{"A": "b"}] * 2


def test_each_job_can_have_an_id_with_its_number(cli: Cli) -> None:
    assert cli.ok("map", "--id", "thumb-{#}", "ls", ":::", "a", "b") == "thumb-1\nthumb-2\n"


def test_a_batch_with_one_id_that_is_taken_adds_none(cli: Cli) -> None:
    cli.enqueue("--id", "thumb-2", "true")

    done = cli.run("map", "--id", "thumb-{#}", "ls", ":::", "a", "b", "c")

    assert done.returncode == 6
    assert "'thumb-2' exists already" in done.stderr
    assert len(cli.json("list")) == 1


def test_numbers_of_an_array_are_values_and_a_variable(cli: Cli) -> None:
    cli.ok("map", "--array", "1-9:4", "echo {}")
    cli.ok("map", "--array", "7", "./step")

    assert _commands(cli) == ["echo '1'", "echo '5'", "echo '9'", "./step"]
    assert [cli.job(number)["env"] for number in "1234"] == [{"QUEUECTL_ARRAY_INDEX": each} for each in "1597"]


def test_an_array_is_the_first_list_and_is_not_put_at_the_end(local: Cli) -> None:
    local.ok("map", "--array", "1-2", "./step", ":::", "a", "b")
    local.ok("map", "--array", "3", "echo {1} {2}", ":::", "c")

    assert _commands(local) == ["./step 'a'", "./step 'b'", "./step 'a'", "./step 'b'", "echo '3' 'c'"]


def test_a_job_of_an_array_survives_export_import_and_edit(cli: Cli) -> None:
    cli.ok("map", "--array", "4", "ls", "--id", "x{#}")
    exported = cli.ok("export")
    cli.ok("delete", "x1")
    (cli.folder / "lines").write_text(exported)

    cli.ok("import", "lines")
    cli.ok("edit", "x1", "--env", "A=b")

    assert cli.job("x1")["env"] == {"QUEUECTL_ARRAY_INDEX": "4", "A": "b"}


def test_the_number_of_an_array_is_the_one_variable_of_ours_a_job_may_bring(local: Cli) -> None:
    local.enqueue('{"command": "true", "env": {"QUEUECTL_ARRAY_INDEX": "4"}}')

    for name, value in (("QUEUECTL_ARRAY_INDEX", "x"), ("QUEUECTL_JOB_ID", "4")):
        assert local.run("enqueue", "--env", f"{name}={value}", "true").returncode == 2


@pytest.mark.parametrize(
    "words, problem",
    [
        ([], "no command given"),
        (["echo {}"], "no values given"),
        ([":::", "a"], "no command given"),
        (["ls {}", "--command", "ls", ":::", "a"], "give the command once"),
        (["a b", "c", ":::", "a"], "'a b' is not the name of a program"),
        (['{"command": "ls {}"}', ":::", "a"], "a command for many values is no JSON job"),
        (["--id", "x", "ls", ":::", "a"], "id 'x' would be that of every job"),
        (["ls {2}", ":::", "a"], "{2} names list 2, but there is one list"),
        (["ls `echo {}`", ":::", "a"], "{} stands in backticks"),
        (["ls", ":::", "a", "--dry-run"], "--dry-run stands behind :::, where everything is a value"),
        (["ls", ":::", "a", "--queue", "q"], "--queue stands behind :::, where everything is a value"),
        (["ls", "::::"], "no file behind ::::"),
        (["ls", "::::", "none"], "cannot read none: No such file or directory"),
        (["ls", "::::", "."], "cannot read .: Is a directory"),
        (["ls", ":::+", "a"], "the first list has none before it"),
        (["ls", ":::", "a", "b", ":::+", "a"], "list 2 has 1 values, and the one it is linked with 2"),
        (["ls", "::::", "-", "-"], "standard input is named twice"),
        (["--stdin", "-", "cat {}", "::::", "-"], "--stdin - and the values would read the same"),
        (["ls", "::::", "latin1"], "value 2 of latin1 is not valid UTF-8"),
        (["ls", "::::", "nul"], "nul holds NUL bytes"),
        (["ls", ":::", os.fsdecode(b"caf\xe9")], "value 1 of the list behind ::: is not valid UTF-8"),
        (["--array", "5-1", "ls"], "5-1 ends before it begins"),
        (["--array", "0-999999", "ls", ":::", "a", "b"], "1000000 x 2 values make 2000000 jobs; the limit is 1000000"),
        (["-I", "$x", "ls", ":::", "a"], "bad replacement string"),
        (["--shell", "/usr/bin/fish", "ls", ":::", "a"], "values are quoted for a POSIX shell, and 'fish'"),
        (["--shell", "/bin/sh", "--", "ls", ":::", "a"], "a shell is given, but an argument vector runs without one"),
        (["--priority", "x", "ls", ":::", "a"], "priority must be a whole number"),
        (["ls -l {}", "--nonsense", ":::", "a"], "unknown option '--nonsense'"),
        (["--", ":::", "a"], "no command given"),
        (["--", "", ":::", "a"], "the program name is empty"),
    ],
    ids=lambda each: " ".join(each)[:40] if isinstance(each, list) else "",
)
def test_what_cannot_be_mapped_is_refused_and_nothing_is_added(local: Cli, words: list[str], problem: str) -> None:
    (local.folder / "latin1").write_bytes(b"a\ncaf\xe9\n")
    (local.folder / "nul").write_bytes(b"a\0b\0")

    done = _at_a_terminal(local, "map", *words)

    assert done.returncode == 2
    assert problem in done.stderr
    assert local.json("list") == []


def test_a_setting_for_a_shell_that_quotes_otherwise_is_heeded(cli: Cli) -> None:
    cli.ok("config", "set", "shell", "/usr/bin/fish")

    done = cli.run("map", "ls", ":::", "a")

    assert done.returncode == 2
    assert "values are quoted for a POSIX shell, and 'fish' is not known as one" in done.stderr
    assert cli.ok("map", "--", "ls", ":::", "a") == "1\n"
    assert cli.ok("map", "--shell", "/bin/sh", "ls", ":::", "a") == "2\n"


def test_lines_without_end_are_refused_before_they_fill_the_memory(local: Cli) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        done = subprocess.run(
            [PROGRAM, "map", "ls {}"],
            env=local.environ,
            stdin=endless.stdout,
            capture_output=True,
            text=True,
            timeout=60,
        )
        endless.kill()

    assert done.returncode == 2
    assert "standard input: more than 1000000 lines" in done.stderr


def test_many_values_are_added_in_one_transaction(cli: Cli) -> None:
    ids = cli.ok("map", "echo {}", stdin="".join(f"name {number}\n" for number in range(10_000))).split()

    assert len(ids) == 10_000
    [added] = cli.json("audit", "--limit", "1")
    assert (added["action"], added["count"]) == ("enqueue", 10_000)


def test_the_dry_runs_of_the_guide_print_what_it_says(local: Cli) -> None:
    for name in ("a.jpg", "it's.jpg", "my cat.jpg", "$(id).jpg", "two\nlines.jpg"):
        (local.folder / name).touch()
    blocks = "".join(CONSOLE.findall(GUIDE.read_text()))

    for shown in re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]:
        line, _, output = shown.partition("\n")
        if line.startswith("queuectl map") and ("--dry-run" in line or output.startswith("queuectl:")):
            done = subprocess.run(
                ["bash", "-c", line.replace("queuectl", QUOTED, 1)], env={**local.environ, "LC_ALL": "C.UTF-8"},
                cwd=local.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            assert done.stdout == output, line


def _at_a_terminal(cli: Cli, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command whose standard input is a terminal, so that it reads no values there."""
    mother, child = pty.openpty()
    try:
        return subprocess.run(
            [PROGRAM, *words],
            env=cli.environ,
            cwd=Path(cli.folder),
            stdin=child,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        os.close(child)
        os.close(mother)
