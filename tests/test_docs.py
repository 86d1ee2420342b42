"""The documents keep up with the code: generated pages, names, links, command lines, and the demo."""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from docs import generate
from queuectl import settings
from queuectl.cli.main import ALIASES, COMMANDS
from queuectl.cli.parser import parse
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.fields import FIELDS
from queuectl.model.job import JobSpec
from queuectl.model.spec import looks_like_json, spec_from_json
from queuectl.model.states import State
from queuectl.store import migrate
from tests.program import pids_with, wait_for

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
DEFAULTS: dict[str, object] = {"db": None, "json": False}

LINK = re.compile(r"(?<!\!)\[[^\]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def reference() -> str:
    return (DOCS / "reference.md").read_text()


def parsers() -> "Iterator[tuple[str, argparse.ArgumentParser]]":
    """Yield every parser of the program under the words that reach it."""
    for name in COMMANDS:
        parser = generate.parser_of(name)
        yield name, parser
        for verb, made in generate.verbs_of(parser).items():
            yield f"{name} {verb}", made


def command_lines(text: str) -> list[str]:
    """Return what is typed in the console blocks of a page: lines after `$ `, joined where they end in a backslash."""
    typed = "\n".join(CONSOLE.findall(text)).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in typed.splitlines() if line.startswith("$ ")]


def queuectl_calls(line: str) -> list[list[str]]:
    """Return the arguments of each call of queuectl in a shell line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    calls: list[list[str]] = [[]]
    for token in lexer:
        if token and set(token) <= set("();<>|&"):
            calls.append([])
        elif calls[-1] or not ASSIGNMENT.match(token):
            calls[-1].append(token)
    return [call[1:] for call in calls if call and call[0] == "queuectl"]


def check_line(line: str) -> None:
    """Check every call of queuectl in a shell line."""
    for words in queuectl_calls(line):
        check_call(words)


def check_call(words: list[str]) -> None:
    """Read a command line as the program would, without running it; raise where the program would refuse."""
    name, *rest = words or ["status"]
    if name.startswith("-"):
        return
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        raise BadInput(f"no command {name}")
    args = parse(name, import_module(f"queuectl.cli.{COMMANDS[name][0]}"), rest, DEFAULTS)
    if name == "enqueue" and args.line and looks_like_json(args.line[0]):
        spec_from_json(args.line[0], wall_ms(), JobSpec(cwd="/"))
    if name == "config" and "value" in args:
        settings.parse(args.key, args.value)


def sections(text: str) -> list[tuple[str, str]]:
    """Return the headings of a page, each with what stands below it."""
    _, *parts = HEADING.split(text)
    return [(title.strip("`"), body) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def slugs(text: str) -> set[str]:
    """Return the anchors of a page's headings as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in slugs(target.read_text())):
            broken.append(link)
    return broken


@pytest.mark.parametrize("name", generate.pages())
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text() == generate.pages()[name], "bring it up to date with: make docs"


def test_every_command_and_verb_is_in_the_reference() -> None:
    titles = [title for title, _ in sections(reference())]

    missing = [words for words, _ in parsers() if f"queuectl {words}" not in titles]

    assert missing == []
    assert [alias for alias in ALIASES if f"`{alias}`" not in reference()] == []


def test_every_flag_is_in_the_reference_under_its_command() -> None:
    missing = []
    for words, parser in parsers():
        # The flags of a group are those of the verb it stands for.
        section = "".join(text for title, text in sections(reference()) if f"{title} ".startswith(f"queuectl {words} "))
        flags = [flag for action in generate.arguments_of(parser) for flag in action.option_strings]
        missing += [f"{words} {flag}" for flag in flags if f"`{flag}`" not in section]

    assert missing == []


@pytest.mark.parametrize("names", [list(settings.SETTINGS), list(FIELDS), [state.value for state in State]])
def test_every_setting_field_and_state_is_in_the_reference(names: list[str]) -> None:
    assert [name for name in names if f"| `{name}`" not in reference()] == []


def test_every_state_and_setting_is_explained_somewhere_beside_the_reference() -> None:
    pages = (ROOT / "README.md", DOCS / "states.md", *DOCS.glob("guides/*.md"))
    guide = "".join(page.read_text() for page in pages)

    assert [name for name in (*settings.SETTINGS, *State) if f"`{name}`" not in guide] == []


def test_every_guide_page_is_listed_in_the_guide() -> None:
    listed = {path for path in LINK.findall((DOCS / "guide.md").read_text()) if path.startswith("guides/")}

    assert listed == {f"guides/{page.name}" for page in DOCS.glob("guides/*.md")}


def test_every_command_is_shown_in_a_guide() -> None:
    shown = {
        ALIASES.get(words[0], words[0])
        for page in DOCS.glob("guides/*.md")
        for line in _typed_lines(page.read_text())
        for words in queuectl_calls(line)
        if words
    }

    assert sorted(set(COMMANDS) - shown) == []


def _typed_lines(text: str) -> list[str]:
    """Return what is typed in the console blocks of a page, and the lines of its shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [*command_lines(text), *"".join(blocks).splitlines()]


def test_what_is_called_unused_is_unused() -> None:
    code = "".join(
        path.read_text()
        for folder in ("actions", "runtime", "cli", "system")
        for path in (ROOT / "src" / "queuectl" / folder).glob("*.py")
    ) + Path(ROOT / "src" / "queuectl" / "model" / "verdict.py").read_text()  # fmt: skip

    assert [move for move in generate.NOT_YET if f"Move.{move.name}" in code] == []
    assert [key for key in generate.NOT_IN_FORCE if re.search(rf"\.{key}\b", code)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_relative_link_is_broken(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_shown_can_be_typed(page: Path) -> None:
    for line in command_lines(page.read_text()):
        try:
            check_line(line)
        except BadInput as error:
            pytest.fail(f"{line}: {error.message}")


def test_the_tour_of_the_readme_shows_command_lines() -> None:
    lines = command_lines((ROOT / "README.md").read_text())

    assert sum(len(queuectl_calls(line)) for line in lines) >= 8


@pytest.mark.parametrize(
    "line",
    [
        "queuectl enqeue true",
        "queuectl list --stat dead",
        "queuectl dlq burn",
        "queuectl config set max_retries many",
        """queuectl enqueue '{"comand": "true"}'""",
        "printf 'true' | queuectl enqueue --form -",
        "id=$(queuectl enqueue --prio 3 true)",
        "QUEUECTL_HOME=x queuectl shwo 1",
    ],
)
def test_a_command_line_that_does_not_parse_is_found(line: str) -> None:
    with pytest.raises(BadInput):
        check_line(line)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Head\n[a](#head) [b](#tail) [c](gone.md) [d](page.md#head) [e](https://example.org/x)\n")

    assert broken_links(page) == ["#tail", "gone.md"]


def test_the_change_log_has_this_version_and_the_contributing_page_every_target() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    contributing = (ROOT / "CONTRIBUTING.md").read_text()

    from queuectl import __version__

    assert f"## [{__version__}]" in changes
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert [target for target in targets if f"make {target}" not in contributing] == []
    assert f"schema {migrate.LATEST}" in changes


def start_demo(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, ROOT / "examples" / "demo.py"], env={**os.environ, "TMPDIR": str(folder)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_the_demo_ends_with_status_and_the_dead_and_leaves_nothing(tmp_path: Path) -> None:
    demo = start_demo(tmp_path)

    output, _ = demo.communicate(timeout=60)

    assert demo.returncode == 0, output
    assert "$ queuectl why after\nJob after is blocked: it waits for mutex disk" in output
    assert re.search(r"\$ queuectl status\n(.|\n)*\$ queuectl dlq list\nbroken\n(.|\n)*stuck\n", output), output
    assert "27/27: 25 completed, 2 dead, 0 processing, 0 failed, 0 blocked, 0 pending" in output
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_stops_its_workers_and_leaves_nothing(tmp_path: Path) -> None:
    demo = start_demo(tmp_path)
    assert demo.stdout is not None
    while "pending" not in demo.stdout.readline():
        assert demo.poll() is None
    (home,) = tmp_path.iterdir()
    assert pids_with("QUEUECTL_HOME", str(home)) != []

    demo.send_signal(signal.SIGINT)
    output, _ = demo.communicate(timeout=60)

    assert demo.returncode == 130, output
    assert list(tmp_path.iterdir()) == []
    wait_for(lambda: not pids_with("QUEUECTL_HOME", str(home)), "processes of the demo to be gone")
