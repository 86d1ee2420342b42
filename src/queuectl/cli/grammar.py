"""Grammar: every command, verb and flag as the parsers behind --help know them, and what each value may be."""

import argparse
from importlib import import_module

from queuectl.cli.main import ALIASES, COMMANDS
from queuectl.cli.parser import make_parser
from queuectl.model.retry import BackoffStrategy
from queuectl.model.schedule import Misfire, Overlap
from queuectl.model.states import MOVES, STATE_NAMES, Move, State
from queuectl.model.stats import Range
from queuectl.model.value import Value
from queuectl.settings import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULTS: "dict[str, object]" = {"db": None, "json": False}
TEXT = "text"

# Which jobs a command can do something with; any other takes every job.
_IDS = {
    "cancel": MOVES[Move.CANCEL][0] | {State.PROCESSING},
    "wait": MOVES[Move.CANCEL][0] | {State.PROCESSING},
    "why": MOVES[Move.CANCEL][0] | {State.PROCESSING},
    "retry": MOVES[Move.REVIVE][0] | MOVES[Move.DUE][0],
    "delete": frozenset(State) - {State.PROCESSING},
    "dlq": frozenset({State.DEAD}),
    "hold": frozenset({State.PENDING, State.SCHEDULED, State.FAILED}),
    "release": frozenset({State.BLOCKED}),
}
_BY_METAVAR = {"FILE": "files", "PATH": "files", "DIR": "dirs"}
_BY_NAME = {
    "queue": "queues",
    "tag": "tags",
    "group": "groups",
    "limits": "limits",
    "key": f"set:{','.join(SETTINGS)}",
    "state": f"list:{','.join(STATE_NAMES)}",
    "backoff_strategy": f"set:{','.join(BackoffStrategy)}",
    "misfire": f"set:{','.join(Misfire)}",
    "overlap": f"set:{','.join(Overlap)}",
    "range": f"set:{','.join(Range)}",
    "line": "command",
}

# What the word NAME stands for behind these commands.
_NAMED = {"queue": "queues", "limit": "limits", "schedule": "schedules", "token": "tokens"}


class Flag(Value):
    """An option under all its names; without a kind it takes no value."""

    names: tuple[str, ...]
    about: str
    kind: str | None


class Node(Value):
    """What may follow some words: verbs, flags, and values by their place.

    A kind says what a value may be: `set:a,b`, `list:a,b` (several, with commas), `ids:STATES`, `queues`, `limits`,
    `schedules`, `tokens`, `tags`, `groups`, `files`, `dirs`, `command`, or `text`, of which nothing is known. The
    last place may repeat (`*`).
    """

    words: tuple[str, ...]
    """The words that lead here, each a name and its aliases joined by blanks."""
    verbs: tuple[tuple[str, str], ...]
    flags: tuple[Flag, ...]
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """The words that lead here, without aliases."""
        return " ".join(word.split()[0] for word in self.words)

    @property
    def spellings(self) -> "list[str]":
        """Every way to write the words that lead here."""
        spelt = [""]
        for word in self.words:
            spelt = [f"{head} {name}".strip() for head in spelt for name in word.split()]
        return spelt


def nodes() -> "Iterator[Node]":
    """Yield the program itself, then each command and each verb."""
    commands = [(name, about) for name, (_, about) in COMMANDS.items()]
    aliases = [(alias, COMMANDS[name][1]) for alias, name in ALIASES.items()]
    common = _flags(
        make_parser("status", import_module("queuectl.cli.status"), DEFAULTS), "", only=("db", "json", "help")
    )
    version = Flag(names=("-V", "--version"), about="the version", kind=None)
    yield Node(
        words=(), verbs=(*commands, *aliases, ("help", "the help of a command")), flags=(*common, version), places=()
    )
    yield Node(words=("help",), verbs=(), flags=(), places=(f"set:{','.join(COMMANDS)}",))
    for name, (module, _) in COMMANDS.items():
        parser = make_parser(name, import_module(f"queuectl.cli.{module}"), DEFAULTS)
        spelt = " ".join((name, *(alias for alias, meant in ALIASES.items() if meant == name)))
        verbs = _verbs(parser)
        yield _node((spelt,), parser, [(verb, made.description or "") for verb, made in verbs.items()])
        for verb, made in verbs.items():
            yield _node((spelt, verb), made, [])


def _node(words: "tuple[str, ...]", parser: argparse.ArgumentParser, verbs: "list[tuple[str, str]]") -> Node:
    command = words[0].split()[0]
    return Node(words=words, verbs=tuple(verbs), flags=_flags(parser, command), places=tuple(_places(parser, command)))


def _verbs(parser: argparse.ArgumentParser) -> "dict[str, argparse.ArgumentParser]":
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _flags(parser: argparse.ArgumentParser, command: str, only: "Sequence[str]" = ()) -> "tuple[Flag, ...]":
    return tuple(
        Flag(
            names=tuple(action.option_strings),
            about=(action.help or "").replace("%%", "%"),
            kind=None if action.nargs == 0 else _kind(action, command),
        )
        for action in parser._actions
        if action.option_strings and action.help != argparse.SUPPRESS and (not only or action.dest in only)
    )


def _places(parser: argparse.ArgumentParser, command: str) -> "Iterator[str]":
    for action in parser._actions:
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            repeats = "*" if action.nargs in ("*", "+", argparse.REMAINDER) else ""
            yield _kind(action, command) + repeats


def _kind(action: argparse.Action, command: str) -> str:
    if action.choices is not None:
        return f"set:{','.join(map(str, action.choices))}"
    if action.metavar == "ID" and not action.option_strings:
        return f"ids:{','.join(_wanted(command))}"
    if action.metavar in _BY_METAVAR:
        return _BY_METAVAR[str(action.metavar)]
    if action.metavar == "NAME" and not action.option_strings and command in _NAMED:
        return _NAMED[command]
    return _BY_NAME.get(action.dest, TEXT)


def _wanted(command: str) -> "list[str]":
    states = _IDS.get(command, frozenset(State))
    return [] if states == frozenset(State) else [state.value for state in State if state in states]
