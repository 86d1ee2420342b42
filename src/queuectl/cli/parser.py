"""Argument parsing shared by all commands: argparse, with our own errors and the options every command has."""

import argparse

from queuectl.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import NoReturn

    Run = Callable[["Args"], int]


class Args(argparse.Namespace):
    """What was typed: every command has these, and its own beside them."""

    db: str | None
    json: bool
    run: "Run"
    words: list[str]
    """What stands behind `--`, for the command that takes it."""
    has_words: bool


class Parser(argparse.ArgumentParser):
    """argparse, but an error is ours: one line that says what to do, exit code 2."""

    def error(self, message: str) -> "NoReturn":
        """Raise instead of printing the usage and leaving."""
        raise BadInput(message, hint=f"see: {self.prog} --help")


def parse(name: str, module: "ModuleType", argv: "Sequence[str]", defaults: "Mapping[str, object]") -> Args:
    """Read the arguments of one command with the parser its module sets up."""
    head, has_words, words = _split(argv)
    parser = make_parser(name, module, defaults)
    args = Args(words=words, has_words=has_words)
    if has_words and not getattr(module, "TAKES_WORDS", False):
        raise BadInput("nothing may follow '--' here", hint=f"see: queuectl {name} --help")
    return parser.parse_args(head, args)


def make_parser(name: str, module: "ModuleType", defaults: "Mapping[str, object]") -> Parser:
    """Build the parser of a command: its own arguments and the common ones."""
    parser = Parser(
        prog=f"queuectl {name}",
        description=module.__doc__,
        epilog=_examples(module.EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_common(parser, defaults)
    module.add_arguments(parser, defaults)
    return parser


def add_common(parser: argparse.ArgumentParser, defaults: "Mapping[str, object]") -> None:
    """Add the options every command has."""
    parser.add_argument(
        "--db", metavar="URL", default=defaults["db"], help="the store: sqlite:///path or postgresql://..."
    )
    parser.add_argument("--json", action="store_true", default=defaults["json"], help="machine-readable output")


def add_verbs(
    parser: Parser,
    defaults: "Mapping[str, object]",
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
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_common(made[verb], defaults)
        made[verb].set_defaults(run=run)
    parser.set_defaults(run=verbs[default][2])
    return made


def _examples(text: str) -> str:
    return f"examples:\n{text.rstrip()}" if text else ""


def _split(argv: "Sequence[str]") -> tuple[list[str], bool, list[str]]:
    """Cut at the first `--`: argparse versions differ in what they make of it."""
    words = list(argv)
    if "--" not in words:
        return words, False, []
    place = words.index("--")
    return words[:place], True, words[place + 1 :]
