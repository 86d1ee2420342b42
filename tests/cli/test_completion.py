"""Completion: every command and flag is in each script, and the real shells offer what makes sense."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from docs import generate
from queuectl.actions.connect import Target, connect
from queuectl.cli.completion import SHELLS, script_for
from queuectl.cli.main import ALIASES, COMMANDS
from queuectl.model.states import State
from queuectl.store import offers
from queuectl.store.database import Database
from tests.cli.terminal import Pane
from tests.program import PROGRAM, Cli
from tests.store.rows import add_job

FOLDER = str(Path(PROGRAM).parent)
EXTRA = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}

# What is typed (| stands where TAB is pressed), and what must be offered, no more and no less.
OFFERED = [
    ("queuectl wor|", "worker"),
    ("queuectl worker st|", "start stop"),
    ("queuectl worker start --qu|", "--queue"),
    ("queuectl worker -n 3 st|", "start stop"),
    ("queuectl worker start --log-format |", "text json"),
    ("queuectl ls --li|", "--limit"),
    ("queuectl list --state sch|", "scheduled"),
    ("queuectl list --state dead,fa|", "dead,failed"),
    ("queuectl list --queue |", "default mail"),
    ("queuectl list --tag ro|", "rosy"),
    ("queuectl wait --group |", "nightly nightshift"),
    ("queuectl status --group nightl|", "nightly"),
    ("queuectl enqueue --backoff-strategy |", "exponential linear fixed"),
    ("queuectl config set max_r|", "max_retries"),
    ("queuectl config get sh|", "shell"),
    ("queuectl completion |", "bash zsh fish"),
    ("queuectl show al|", "alfred alpha"),
    ("queuectl kill |", "4 alfred"),
    ("queuectl dlq retry |", "buried"),
    ("queuectl dlq show |", "buried"),
    ("queuectl retry |", "4 buried alpha"),
    ("queuectl cancel alfred |", "4 alfred"),
    ("queuectl show alpha |", "4 alfred alpha buried"),
    ("queuectl logs alpha |", ""),
    ("queuectl queue pause |", "default mail"),
    ("queuectl queue set m|", "mail"),
    ("queuectl limit show a|", "api"),
    ("queuectl token revoke s|", "screen"),
    ("queuectl token add x --role o|", "operate"),
    ("queuectl enqueue --limit |", "api"),
    ("queuectl --db sqlite:///no/such/file queue pause |", ""),
    ("queuectl --json --db sqlite://HOME/queue.db queue pause m|", "mail"),
    ("queuectl queue --db=sqlite://HOME/queue.db pause m|", "mail"),
    ("queuectl import FOLDER/file|", "FOLDER/file-one FOLDER/file-two"),
    ("queuectl enqueue --from FOLDER/file-o|", "FOLDER/file-one"),
    ("queuectl map --arr|", "--array"),
    ("queuectl map gzip ::: FOLDER/file-o|", "FOLDER/file-one"),
    ("queuectl map --queue mail gzip :::: FOLDER/file-o FOLDER/file-t|", "FOLDER/file-two"),
    ("queuectl help expo|", "export"),
]
# readline replaces what stands behind the sign alone.
BEHIND_EQUALS = [("queuectl list --queue=ma|", "mail"), ("queuectl list --queue=|", "default mail")]


@pytest.fixture
def filled(local: Cli) -> Cli:
    """A store with jobs in several states, queues and tags, and files to name."""
    local.enqueue("--id", "alpha", "--tag", "red", "--tag", "rosy", "echo one: two")
    local.enqueue("--id", "buried", "--max-retries", "0", "exit 1")
    local.drain()
    local.enqueue("--id", "alfred", "--queue", "mail", "--group", "nightshift", "printf 'x\ny\x1b[31m'")
    local.enqueue("--delay", "1h", "--group", "nightly", "true")
    local.ok("limit", "set", "api", "4")
    local.ok("token", "add", "screen", "--role", "read")
    for name in ("file-one", "file-two"):
        (local.folder / name).write_text("")
    return local


def script_of(cli: Cli, shell: str) -> Path:
    path = cli.folder / f"completion.{shell}"
    path.write_text(cli.ok("completion", shell))
    return path


def shell_says(cli: Cli, shell: str, text: str, **env: str) -> str:
    done = subprocess.run(
        [shell, *EXTRA[shell], "-c", text],
        env={**cli.environ, "PATH": f"{FOLDER}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def filled_in(cli: Cli, text: str) -> str:
    return text.replace("HOME", cli.target.home.root).replace("FOLDER", str(cli.folder))


def bash_call(line: str) -> str:
    """Call the function as bash does: words cut at = and : and runs of them, the last one begun."""
    cut = re.sub("[=:]+", r" \g<0> ", line)
    words = [*shlex.split(cut), *([""] if line.endswith(" ") else [])]
    called = f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}; _queuectl queuectl queuectl"
    return f'{called}; echo "${{COMPREPLY[*]}}"'


def test_bash_offers_what_fits(filled: Cli) -> None:
    lines = [filled_in(filled, line).rstrip("|") for line, _ in [*OFFERED, *BEHIND_EQUALS]]
    wanted = [filled_in(filled, words).split() for _, words in [*OFFERED, *BEHIND_EQUALS]]

    calls = "\n".join(map(bash_call, lines))
    said = shell_says(filled, "bash", f"source {script_of(filled, 'bash')}\n{calls}")

    offered = [sorted(words.split()) for words in said.split("\n")[:-1]]
    assert dict(zip(lines, offered, strict=True)) == dict(zip(lines, map(sorted, wanted), strict=True))


@pytest.mark.needs("fish")
def test_fish_offers_what_fits(filled: Cli) -> None:
    lines = [filled_in(filled, line).rstrip("|") for line, _ in OFFERED]
    wanted = [filled_in(filled, words).split() for _, words in OFFERED]

    calls = "\n".join(f"complete -C {shlex.quote(line)}; echo ==" for line in lines)
    said = shell_says(filled, "fish", f"source {script_of(filled, 'fish')}\n{calls}")

    offered = [
        sorted(line.partition("\t")[0] for line in part.splitlines() if line) for part in said.split("==\n")[:-1]
    ]
    assert dict(zip(lines, offered, strict=True)) == dict(zip(lines, map(sorted, wanted), strict=True))


@pytest.mark.needs("fish")
def test_fish_offers_the_value_behind_an_equals_sign_and_a_few_words_about_a_job(filled: Cli) -> None:
    calls = "complete -C 'queuectl list --queue=ma'; complete -C 'queuectl show al'"

    said = shell_says(filled, "fish", f"source {script_of(filled, 'fish')}; {calls}")

    assert said.splitlines() == [
        "--queue=mail",
        r"alfred" + "\t" + r"pending printf 'x\ny\x1b[31m'",
        "alpha\tcompleted echo one: two",
    ]


@pytest.fixture
def bash(filled: Cli) -> Iterator[Pane]:
    """A bash that knows the completion."""
    screen = Pane(filled, ["bash", *EXTRA["bash"]])
    screen.press(f"source {script_of(filled, 'bash')}; PS1=''; clear; echo re''ady", "Enter")
    screen.wait_for("ready")
    yield screen
    screen.close()


@pytest.fixture
def zsh(filled: Cli) -> Iterator[Pane]:
    """A zsh that found the script on its fpath, as the help says."""
    (filled.folder / "_queuectl").write_text(filled.ok("completion", "zsh"))
    screen = Pane(filled, ["zsh", *EXTRA["zsh"]], env={"ZDOTDIR": str(filled.folder)})
    screen.press(f"fpath+={filled.folder}; autoload -Uz compinit && compinit -u; PS1=''; clear; echo re''ady", "Enter")
    screen.wait_for("ready")
    yield screen
    screen.close()


@pytest.mark.needs("tmux")
def test_tab_in_bash_completes_a_command_a_flag_and_an_id(bash: Pane) -> None:
    bash.press("queuectl dl", "Tab", "ret", "Tab", "bur", "Tab", "--js", "Tab")

    bash.wait_for("queuectl dlq retry buried --json")


@pytest.mark.needs("tmux", "zsh")
def test_tab_in_zsh_completes_a_command_a_state_a_queue_and_an_id(zsh: Pane) -> None:
    zsh.press("queuectl lis", "Tab", "--state dead,fai", "Tab")
    zsh.wait_for("queuectl list --state dead,failed")
    zsh.press("--queue=ma", "Tab")
    zsh.wait_for("queuectl list --state dead,failed --queue=mail")
    zsh.press("C-u", "queuectl dlq show ", "Tab")

    zsh.wait_for("queuectl dlq show buried")


@pytest.mark.needs("tmux", "zsh")
def test_tab_in_zsh_says_a_few_words_about_jobs_and_flags(zsh: Pane) -> None:
    zsh.press("queuectl show al", "Tab")
    screen = zsh.wait_for("alpha ")
    zsh.press("C-u", "queuectl export --", "Tab")

    assert r"alfred  -- pending printf 'x\ny\x1b[31m'" in screen
    assert "alpha   -- completed echo one: two" in screen
    zsh.wait_for("--tag")


@pytest.mark.needs("tmux", "zsh")
def test_zsh_completes_the_one_thing_that_fits(zsh: Pane, filled: Cli) -> None:
    for line, words in [each for each in OFFERED if len(each[1].split()) == 1 and "FOLDER" not in each[0]]:
        typed = filled_in(filled, line).rstrip("|")

        zsh.press("C-u", typed, "Tab")

        zsh.wait_for(f"{typed.rpartition(' ')[0]} {words}")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_alias_verb_and_flag_is_in_each_script(shell: str) -> None:
    script = script_for(shell)
    missing = []
    for name in COMMANDS:
        parser = generate.parser_of(name)
        words = [name, *generate.verbs_of(parser)]
        for each in (parser, *generate.verbs_of(parser).values()):
            words += [flag for action in each._actions for flag in action.option_strings]
        missing += [f"{name} {word}" for word in words if word not in script]

    assert missing == []
    assert [alias for alias in ALIASES if f"'{alias}'" not in script] == []
    assert "@" not in script.replace('"$@"', "").replace("[@]", "").replace("(@", "").replace("user@host", "")


@pytest.mark.needs("strace", "zsh", "fish")
@pytest.mark.parametrize("shell, name", [("bash", "_queuectl"), ("zsh", "_queuectl"), ("fish", "__queuectl_complete")])
def test_to_read_a_script_starts_no_program_at_all(local: Cli, shell: str, name: str) -> None:
    path = script_of(local, shell)
    program = subprocess.run(["which", shell], capture_output=True, text=True).stdout.strip()
    compdef = "compdef() { :; };" if shell == "zsh" else ""

    done = subprocess.run(
        ["strace", "-f", "-e", "trace=execve", "-o", str(local.folder / "trace"), program, *EXTRA[shell], "-c",
         f"{compdef} source {path}; type {name} >/dev/null"],
        capture_output=True, text=True, timeout=60, env=local.environ,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    started = [line for line in (local.folder / "trace").read_text().splitlines() if "execve(" in line]
    assert [line for line in started if "queuectl" in line.partition("[")[0] or "python" in line] == []


def test_the_hidden_command_is_in_no_help_and_says_nothing_on_trouble(local: Cli) -> None:
    assert "_complete" not in local.ok("--help")

    for words in ([], ["ids:"], ["ids:nonsense", ""], ["what", ""], ["queues", "", "too", "many"]):
        done = local.run("_complete", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words
    for url in ("mysql://x", "sqlite:///no/such/file", "postgresql://127.0.0.1:1/none"):
        done = local.run("--db", url, "_complete", "queues", "")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), url


def test_pressing_tab_never_makes_a_store(cli: Cli) -> None:
    before = sorted(os.listdir(cli.target.home.root))

    assert cli.ok("_complete", "ids:", "") == ""
    assert cli.ok("_complete", "queues", "") == ""

    assert sorted(os.listdir(cli.target.home.root)) == before
    assert schema_version(cli.target) == 0


def schema_version(target: Target) -> int:
    """Return the schema of a store without setting it up, 0 when there is none."""
    if target.sqlite_path is not None:
        return int(os.path.exists(target.sqlite_path))
    connection = import_module("queuectl.actions.connect")._open_postgres(target)[0]
    try:
        return int(connection.read(lambda tx: tx.dialect.schema_version()))
    finally:
        connection.close()


def test_ids_queues_and_tags_come_from_either_store(cli: Cli) -> None:
    cli.enqueue("--id", "one", "--queue", "mail", "--tag", "red", "echo \x1b[2J")
    cli.enqueue("--id", "two", "--", "printf", "a b")

    assert cli.ok("_complete", "ids:", "o") == "one\tpending echo \\x1b[2J\n"
    assert cli.ok("_complete", "ids:dead", "") == ""
    assert cli.ok("_complete", "queues", "") == "default\nmail\n"
    assert cli.ok("_complete", "tags", "r") == "red\n"


def named(db: Database, prefix: str, *states: State) -> list[str]:
    return [offer.id for offer in db.read(lambda tx: offers.jobs_named(tx, states, prefix, 100))]


def test_jobs_are_found_by_the_digits_and_letters_they_begin_with_however_old(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "LOOKED_AT", 5)
    add_job(db, given_id="old-one")
    for _ in range(29):
        add_job(db)

    assert named(db, "") == ["30", "29", "28", "27", "26"]
    assert named(db, "old") == ["old-one"]
    assert named(db, "2") == ["29", "28", "27", "26", "25", "2"]
    assert named(db, "7") == ["7"]
    assert named(db, "0") == []


@pytest.mark.parametrize("state", State)
def test_jobs_in_each_state_are_found_by_it(db: Database, state: State) -> None:
    for each in State:
        add_job(db, each, given_id=f"a-{each}")

    assert named(db, "", state) == [f"a-{state}"]
    assert named(db, "a-", state) == [f"a-{state}"]
    assert named(db, "b", state) == []


def test_a_store_that_waits_for_a_migration_is_left_alone(local: Cli) -> None:
    connect(local.target).close()
    path = local.target.sqlite_path
    assert path is not None
    database = connect(local.target)
    database.write(lambda tx: tx.dialect.set_schema_version(1))
    database.close()

    assert local.ok("_complete", "queues", "") == ""

    assert not os.path.exists(f"{path}.schema1.bak")
