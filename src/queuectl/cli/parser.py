"""Argument parsing shared by all commands: argparse, with our own errors and the options every command has."""

import argparse
import os
import re
from functools import partial

from queuectl.errors import BadInput, UnknownName
from queuectl.model.states import STATE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import NoReturn

    Run = Callable[["Args"], int]

# argparse asks for a translation of each word it may print: a millisecond, for what nobody installs.
argparse._ = lambda text: text  # type: ignore[attr-defined]
# The default of a verb's option that its group has, too: `worker -n 3 start` keeps the 3 that was read before the verb.
STANDS = argparse.SUPPRESS
_COMMON_STANDS = {"db": STANDS, "json": STANDS}


class Args(argparse.Namespace):
    """What was typed: every command has these, and its own beside them."""

    db: str | None
    json: bool
    run: "Run"
    words: list[str]
    """What stands behind `--`, for the command that takes it."""
    has_words: bool
    tail: list[str]
    """What stands behind all options, from the first of the words on that the command's TAIL names."""


class Parser(argparse.ArgumentParser):
    """argparse, but an error is ours: one line that says what to do, exit code 2."""

    takes_words = False
    verbs: "Mapping[str, Parser]" = {}  # noqa: RUF012 - never written to

    def error(self, message: str) -> "NoReturn":
        """Raise instead of printing the usage and leaving; a name that does not exist gets the nearest that does."""
        hint = f"see: {self.prog} --help"
        if found := re.match(r"argument VERB: invalid choice: '(.*?)'", message):
            raise UnknownName.among("verb", found[1], list(self.verbs), hint=hint)
        if found := re.match(r"argument (\S+): invalid choice: '(.*?)'", message):
            name = found[1].rpartition("/")[2]
            raise UnknownName.among(name.lstrip("-").lower(), found[2], self._choices(name))
        if found := re.match(r"argument (\S+): expected (one|at least one) argument", message):
            name = found[1].rpartition("/")[2]
            raise BadInput(f"{name} needs a value", hint=f"{name}=-x if it begins with a dash; {hint}")
        if found := re.match(r"argument (\S+): ignored explicit argument", message):
            raise BadInput(f"{found[1].rpartition('/')[2]} takes no value", hint=hint)
        if found := re.match("the following arguments are required: (.*)", message):
            if found[1] == "ID":
                raise BadInput("which job?", hint=f"give its number or id, or 'last', as ID; {hint}")
            raise BadInput(f"{found[1].replace(', ', ' and ')} missing", hint=hint)
        raise BadInput(message, hint=hint)

    def refuse(self, word: str) -> "NoReturn":
        """Raise for a word that has no place here; an option that does not exist gets the nearest that does."""
        hint = f"see: {self.prog} --help"
        if not word.startswith("-"):
            raise BadInput(f"unexpected word {word!r}", hint=hint)
        if self.takes_words:
            hint = f"to hand it to a program write -- before that: {self.prog} -- ls -la"
        name = word.partition("=")[0]
        if "--state" in self._option_string_actions and name.lstrip("-") in STATE_NAMES:
            hint = f"write --state {name.lstrip('-')}"
        raise UnknownName.among("option", name, list(self._option_string_actions), hint=hint)

    def refuse_in_tail(self, tail: "Sequence[str]") -> None:
        """Refuse an option at the end of the values, where it was hardly meant as one: it would not be obeyed."""
        for word in tail[-2:]:
            if word.startswith("--") and word in self._option_string_actions:
                hint = f"options go before it; for {word} as a value, give the values as lines of a file"
                raise BadInput(f"{word} stands behind {tail[0]}, where everything is a value", hint=hint)

    def _choices(self, name: str) -> list[str]:
        """Return what an argument may be, of this parser or one of its verbs."""
        for action in self._actions:
            if name in (*action.option_strings, action.dest, action.metavar) and action.choices is not None:
                return [str(choice) for choice in action.choices]
        return []


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's, told its width: else it imports shutil, and that all compression, for each argument declared."""

    def __init__(self, prog: str, width: int) -> None:
        super().__init__(prog, max_help_position=30, width=width)


def parse(name: str, module: "ModuleType", argv: "Sequence[str]", defaults: "Mapping[str, object]") -> Args:
    """Read the arguments of one command with the parser its module sets up."""
    argv, tail = _cut_tail(argv, getattr(module, "TAIL", ()))
    head, has_words, words = _split(argv)
    if head:
        head[0] = getattr(module, "VERB_ALIASES", {}).get(head[0], head[0])
    parser = make_parser(name, module, defaults)
    args = Args(words=words, has_words=has_words, tail=tail)
    if tail:
        parser.refuse_in_tail(tail)
    if has_words and not parser.takes_words:
        raise BadInput("nothing may follow '--' here", hint=f"see: queuectl {name} --help")
    _, rest = parser.parse_known_args(head, args)
    if "ids" in args and not any(word.startswith("-") for word in rest):
        args.ids += rest  # argparse takes ids up to the first option only: cancel 1 --yes 2
    elif rest:
        _reading(parser, head, args).refuse(next((word for word in rest if word.startswith("-")), rest[0]))
    return args


def _reading(parser: Parser, head: "Sequence[str]", args: Args) -> Parser:
    """Return the parser of the verb that was typed, if one was: what it does not know, its group was left with."""
    typed = (made for verb, made in parser.verbs.items() if verb in head and made.get_default("run") is args.run)
    return next(typed, parser)


def make_parser(name: str, module: "ModuleType", defaults: "Mapping[str, object]") -> Parser:
    """Build the parser of a command: its own arguments and the common ones."""
    parser = Parser(
        prog=f"queuectl {name}",
        description=module.__doc__,
        epilog=_examples(module.EXAMPLES),
        formatter_class=partial(_Formatter, width=_width()),
        allow_abbrev=False,
    )
    parser.takes_words = getattr(module, "TAKES_WORDS", False)
    add_common(parser, defaults)
    module.add_arguments(parser, defaults)
    return parser


def add_common(parser: argparse.ArgumentParser, defaults: "Mapping[str, object]") -> None:
    """Add the options every command has."""
    parser.add_argument(
        "--db", metavar="URL", default=defaults["db"], help="the store: sqlite:///absolute/path or postgresql://..."
    )
    parser.add_argument("--json", action="store_true", default=defaults["json"], help="machine-readable output")


def add_verbs(
    parser: Parser,
    verbs: "Mapping[str, tuple[str, str, Run]]",
    default: str,
) -> dict[str, Parser]:
    """Add the verbs of a group (name: help, examples, function); without one, `default` is meant."""
    group = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)
    made: dict[str, Parser] = {}
    for verb, (about, examples, run) in verbs.items():
        made[verb] = group.add_parser(
            verb,
            help=about,
            description=about,
            epilog=_examples(examples),
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        add_common(made[verb], _COMMON_STANDS)
        made[verb].set_defaults(run=run)
    parser.set_defaults(run=verbs[default][2])
    parser.verbs = made
    return made


def _width() -> int:
    try:
        return min(120, os.get_terminal_size(1).columns - 2)
    except OSError:
        return 100


def _examples(text: str) -> str:
    return f"examples:\n{text.rstrip()}" if text else ""


def _split(argv: "Sequence[str]") -> tuple[list[str], bool, list[str]]:
    """Cut at the first `--`: argparse versions differ in what they make of it."""
    words = list(argv)
    if "--" not in words:
        return words, False, []
    place = words.index("--")
    return words[:place], True, words[place + 1 :]


def _cut_tail(argv: "Sequence[str]", beginnings: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Cut where the first of some words stands: the rest is for the command, also what looks like an option."""
    place = next((at for at, word in enumerate(argv) if word in beginnings), len(argv))
    return list(argv[:place]), list(argv[place:])
