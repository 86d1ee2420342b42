"""Help: every command and verb has one, with examples; durations and times are explained where they are taken."""

import re
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

from queuectl import __version__
from queuectl.cli.main import ALIASES, COMMANDS, main
from tests.program import Cli

GROUPS = {
    "worker": ["start", "stop", "restart", "list", "install", "uninstall"],
    "dlq": ["list", "show", "groups", "retry", "purge"],
    "queue": ["list", "show", "set", "pause", "resume", "delete"],
    "limit": ["list", "show", "set", "delete"],
    "schedule": ["add", "list", "show", "preview", "run", "edit", "pause", "resume", "remove"],
    "token": ["list", "add", "revoke"],
    "config": ["list", "get", "set", "unset"],
}
ALL = [[name] for name in COMMANDS] + [[group, verb] for group, verbs in GROUPS.items() for verb in verbs]


Told = Callable[..., str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Give what the program prints for a line that only asks for help, in this process: there are hundreds of them."""

    def tell(*words: str) -> str:
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        assert code == 0, words
        return capsys.readouterr().out

    return tell


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told(local: Cli, flag: str) -> None:
    assert local.ok(flag) == f"queuectl {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]], ids=" ".join)
def test_the_help_of_the_program_names_every_command(local: Cli, words: list[str]) -> None:
    text = local.ok(*words)

    assert [name for name in COMMANDS if not re.search(rf"(?m)^  {name} +\w", text)] == []
    assert "examples:" in text
    assert "QUEUECTL_HOME" in text


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_and_verb_has_help_with_examples_of_itself(told: Told, words: list[str]) -> None:
    text = told(*words, "--help")

    assert text.startswith("usage: queuectl ")
    examples = text.partition("\nexamples:\n")[2]
    assert f"queuectl {' '.join(words)}" in examples
    assert "--json" in text
    assert "--db" in text


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_of_a_group_of_verbs_has_no_empty_words(told: Told, name: str) -> None:
    assert "None" not in told(name, "--help")


def test_every_verb_is_known_to_this_test(told: Told) -> None:
    shown = {group: re.findall(r"(?m)^    (\w+) +\w", told(group, "--help")) for group in GROUPS}

    assert shown == GROUPS


@pytest.mark.parametrize("name", COMMANDS)
def test_help_can_be_asked_for_by_the_word(told: Told, name: str) -> None:
    assert told("help", name) == told(name, "--help")


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_its_command(told: Told, alias: str) -> None:
    assert told(alias, "--help") == told(ALIASES[alias], "--help")


def test_help_explains_durations_times_and_sizes_with_examples(told: Told) -> None:
    enqueue = _flat(told("enqueue", "--help"))

    assert all(example in enqueue for example in ("90s, 5m, 1h30m", "2026-12-01T09:00", "tomorrow 9:00"))
    assert "90s, 5m, 1h30m" in _flat(told("worker", "stop", "--help"))
    config = _flat(told("config", "--help"))
    assert "durations: 90s, 5m, 1h30m" in config
    assert "sizes: 4096, 16K, 512M, 10MB" in config


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_the_help_is_understood(told: Told, name: str) -> None:
    """Only what a shell would not be needed for, and what does not stay in the foreground."""
    for words in _plain_examples(name):
        assert told(*words, "--help"), words


@pytest.mark.parametrize(
    "text", ["90s", "5m", "1h30m", "2d", "1w", "500ms", "7", "0.5", "1 hour", "2 days"], ids=lambda text: text
)
def test_durations_of_the_help_are_understood(local: Cli, text: str) -> None:
    local.enqueue("--delay", text, "true")


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01T09:00",
        "2026-12-01T09:00:00Z",
        "2026-12-01 09:00",
        "14:30",
        "tomorrow 9:00",
        "friday 17:00",
        "now",
        "+90m",
        "in 2 hours",
        "tomorrow",
    ],
)
def test_times_of_the_help_are_understood(local: Cli, text: str) -> None:
    local.enqueue("--run-at", text, "true")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _plain_examples(name: str) -> Iterator[list[str]]:
    examples: str = import_module(f"queuectl.cli.{COMMANDS[name][0]}").EXAMPLES
    for line in examples.splitlines():
        words = re.split(r"\s{3,}", line.strip())[0]
        if words.startswith("queuectl ") and "|" not in words and " -- " not in words:
            yield shlex.split(words.partition(" :::")[0])[1:]  # behind it --help would be a value
