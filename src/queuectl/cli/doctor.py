"""Look at the store and at this host, and say what is wrong and how to mend it. Nothing is changed."""

import os
import sys

from queuectl.actions.doctor import examine, has_error
from queuectl.cli.store import target_of
from queuectl.cli.text import print_json, safe
from queuectl.model.finding import Level
from queuectl.model.units import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.finding import Finding

EXAMPLES = """\
  queuectl doctor
  queuectl doctor -v                 also what is well
  queuectl doctor --deep             every page and index of a large SQLite file
  queuectl doctor --json | jq 'select(.level != "ok")'
"""
_MARKS = {Level.OK: "✓", Level.WARNING: "!", Level.ERROR: "✗"}
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("-v", "--verbose", action="store_true", help="also what is well")
    parser.add_argument("--deep", action="store_true", help="read the whole SQLite file, however long that takes")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print what was found; 1 when there is an error, 0 also with warnings."""
    findings = examine(target_of(args), os.environ, is_deep=args.deep)
    if args.json:
        for finding in findings:
            print_json(finding.shape)
    else:
        _print([one for one in findings if args.verbose or one.level is not Level.OK])
        print(_summary(findings))
    return 1 if has_error(findings) else 0


def _print(findings: "Sequence[Finding]") -> None:
    if sys.stdout.isatty():
        _draw(findings)
        return
    for finding in findings:
        print(f"{finding.level}: {finding.check}: {safe(finding.what)}")
        if finding.mend:
            print(f"  {safe(finding.mend)}")


def _draw(findings: "Sequence[Finding]") -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for finding in findings:
        colour = _COLOURS[finding.level]
        line = Text.assemble((f"{_MARKS[finding.level]} {finding.check}:", f"bold {colour}"), f" {safe(finding.what)}")
        console.print(line)
        if finding.mend:
            console.print(Padding(Text(safe(finding.mend), style="bright_black"), (0, 0, 0, 4)))


def _summary(findings: "Sequence[Finding]") -> str:
    checks = len({finding.check for finding in findings})
    count = {level: sum(finding.level is level for finding in findings) for level in Level}
    if not count[Level.ERROR] and not count[Level.WARNING]:
        return f"all is well: {counted(checks, 'check')}"
    errors, warnings = counted(count[Level.ERROR], "error"), counted(count[Level.WARNING], "warning")
    return f"{counted(checks, 'check')}: {errors}, {warnings}"
