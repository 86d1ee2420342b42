"""Print a script that completes commands, flags, states, settings, ids, queues, limits and the like in a shell."""

import os

from queuectl.cli.grammar import nodes
from queuectl.cli.text import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queuectl.cli.grammar import Flag, Node
    from queuectl.cli.parser import Args, Parser

SHELLS = ("bash", "zsh", "fish")
ABOUT_WIDTH = 60
EXAMPLES = """\
  queuectl completion bash > ~/.local/share/bash-completion/completions/queuectl
  queuectl completion zsh > ~/.zfunc/_queuectl
  queuectl completion fish > ~/.config/fish/completions/queuectl.fish

bash: needs the package bash-completion; without it, add to ~/.bashrc: source ~/that/file
zsh: with these lines in ~/.zshrc: fpath+=~/.zfunc; autoload -Uz compinit && compinit
fish: finds it by itself.
Open a new shell afterwards. Write the script again after an upgrade: it holds the commands of this version.
"""
FOLDER = os.path.join(os.path.dirname(__file__), "shells")


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the script."""
    script = script_for(args.shell)
    if args.json:
        print_json({"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return 0


def script_for(shell: str) -> str:
    """Return the completion script of a shell, with every command and flag of this version in it."""
    with open(os.path.join(FOLDER, f"queuectl.{shell}"), encoding="utf-8") as file:
        text = file.read()
    known = list(nodes())
    node_lines = "\n".join(_NODE_LINES[shell](node) for node in known)
    value_lines = "\n".join(_VALUE_LINES[shell](kind, spelt) for kind, spelt in _values(known).items())
    return text.replace("@NODES@", node_lines).replace("@VALUES@", value_lines)


def _values(known: "Sequence[Node]") -> "dict[str, list[str]]":
    """Return each kind of value with every `node flag` that takes one."""
    found: dict[str, list[str]] = {}
    for node in known:
        for flag in node.flags:
            if flag.kind is not None:
                found.setdefault(flag.kind, []).extend(f"{node.name} {name}" for name in flag.names)
    return found


def _bash_node(node: "Node") -> str:
    return (
        f"        {_patterns(node.spellings)}) node={_quoted(node.name)}\n"
        f"            verbs={_quoted(' '.join(name for name, _ in node.verbs))}\n"
        f"            flags={_quoted(' '.join(name for flag in node.flags for name in flag.names))}\n"
        f"            places={_quoted(' '.join(node.places))} ;;"
    )


def _zsh_node(node: "Node") -> str:
    verbs = " ".join(_quoted(f"{name}:{_about(about)}") for name, about in node.verbs)
    flags = " ".join(_quoted(f"{name}:{about}") for name, about in _flags(node.flags))
    return (
        f"        ({_patterns(node.spellings)}) node={_quoted(node.name)}\n"
        f"            verbs=({verbs})\n"
        f"            flags=({flags})\n"
        f"            places=({' '.join(map(_quoted, node.places))}) ;;"
    )


def _fish_node(node: "Node") -> str:
    lines = [f"        case {' '.join(map(_fish_quoted, node.spellings))}"]
    lines += [f"            set node {_fish_quoted(node.name)}"] if node.name else []
    for name, pairs in (
        ("verbs", [(verb, _about(about)) for verb, about in node.verbs]),
        ("flags", _flags(node.flags)),
    ):
        words = " ".join(f"{_fish_quoted(word)}\\t{_fish_quoted(about)}" for word, about in pairs)
        lines += [f"            set {name} {words}"] if words else []
    lines += [f"            set places {' '.join(map(_fish_quoted, node.places))}"] if node.places else []
    return "\n".join(lines)


def _shell_value(kind: str, spelt: "Sequence[str]") -> str:
    return f"        {_patterns(spelt)}) kind={_quoted(kind)} ;;"


def _fish_value(kind: str, spelt: "Sequence[str]") -> str:
    return f"        case {' '.join(map(_fish_quoted, spelt))}\n            set kind {_fish_quoted(kind)}"


def _flags(flags: "Sequence[Flag]") -> "list[tuple[str, str]]":
    return [(name, _about(flag.about)) for flag in flags for name in flag.names]


def _about(text: str) -> str:
    return text if len(text) <= ABOUT_WIDTH else f"{text[: ABOUT_WIDTH - 1]}…"


def _patterns(words: "Sequence[str]") -> str:
    return "|".join(map(_quoted, words))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_NODE_LINES: "dict[str, Callable[[Node], str]]" = {"bash": _bash_node, "zsh": _zsh_node, "fish": _fish_node}
_VALUE_LINES: "dict[str, Callable[[str, Sequence[str]], str]]" = {
    "bash": _shell_value,
    "zsh": _shell_value,
    "fish": _fish_value,
}
