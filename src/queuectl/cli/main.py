"""The entry point: finds the command, imports its module alone, and turns errors into text and exit codes."""

import errno
import os
import sys

from queuectl import __version__
from queuectl.errors import INTERRUPTED_CODE, BadInput, QueuectlError, UnknownName
from queuectl.system.leaving import leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# name: (module, one line for `queuectl --help`)
COMMANDS = {
    "enqueue": ("enqueue", "add a job: a shell line, a program with arguments, JSON, or a whole file"),
    "map": ("map", "add a job for each value of a list: a command with {} in it"),
    "run": ("run", "run a command through the queue and stay with it: its output, its exit code"),
    "list": ("list", "list jobs, newest first"),
    "show": ("show", "show jobs: their state, their runs, why they wait or failed"),
    "why": ("why", "say why jobs wait: every gate, who holds it, what would change it"),
    "graph": ("graph", "draw which jobs run after which, around one"),
    "status": ("status", "count jobs by state and queue; list workers"),
    "stats": ("stats", "count runs over time by what came of them; how long jobs waited and ran"),
    "logs": ("logs", "print what a job printed"),
    "wait": ("wait", "wait until jobs have ended"),
    "cancel": ("cancel", "cancel waiting or running jobs"),
    "retry": ("retry", "run jobs again now"),
    "hold": ("hold", "keep waiting jobs from running"),
    "release": ("release", "let held jobs run again"),
    "edit": ("edit", "change jobs: command, queue, priority, time, retries, timeout, tags"),
    "delete": ("delete", "remove jobs and their history"),
    "worker": ("worker", "start, stop and list workers"),
    "dlq": ("dlq", "look after dead jobs: list, show, groups, retry, purge"),
    "queue": ("queue", "list, limit, pause and resume queues"),
    "limit": ("limit", "list, set and delete named limits"),
    "schedule": ("schedule", "run jobs again and again, by the clock: add, list, preview, pause, edit"),
    "serve": ("serve", "serve the dashboard, the REST API and metrics over HTTP"),
    "token": ("token", "add, list and revoke tokens: who may use the server over a network"),
    "config": ("config", "list, get, set and unset settings"),
    "doctor": ("doctor", "look for what is wrong, and say how to mend it"),
    "export": ("export", "write jobs, runs, queues and settings as lines of JSON"),
    "import": ("import_", "read what export wrote, all or nothing"),
    "prune": ("prune", "remove finished jobs that were kept long enough"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
    "backup": ("backup", "copy the store into one file, while workers run"),
    "restore": ("restore", "put a backup in the place of the store"),
    "audit": ("audit", "list who did what, newest first"),
    "migrate": ("migrate", "bring the database to this program's schema"),
}
# What people type that is a verb of a group.
_GROUP_OF = {
    "pause": "queue",
    "resume": "queue",
    "start": "worker",
    "stop": "worker",
    "purge": "dlq",
    "get": "config",
    "set": "config",
    "unset": "config",
    "revoke": "token",
}
ALIASES = {"add": "enqueue", "ls": "list", "kill": "cancel", "rm": "delete"}

_USAGE = """\
usage: queuectl [--db URL] [--json] COMMAND ...

A durable queue for shell commands. Without a command: status.

commands:
{commands}

options, before or after the command:
  --db URL     sqlite:///absolute/path or postgresql://user@host/name (default: $QUEUECTL_DATABASE_URL,
               else queue.db in $QUEUECTL_HOME, else in ~/.queuectl)
  --json       machine-readable output
  -h, --help   this help, or that of a command: queuectl enqueue --help
  --version    the version

examples:
  queuectl enqueue 'sleep 2 && echo done'
  queuectl worker start --count 2
  queuectl status
"""


def entry() -> None:
    """Run the program and leave with its exit code."""
    _open_missing_streams()
    code = main(sys.argv[1:])
    if postgres := sys.modules.get("queuectl.store.postgres_connection"):
        postgres.hang_up()
    leave(code)


def _open_missing_streams() -> None:
    """Stand in for streams the caller closed (`>&-`), so that nothing of ours takes their place."""
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            while (got := os.open(os.devnull, os.O_RDWR)) < fd:
                pass
            setattr(sys, name, os.fdopen(got, "r" if fd == 0 else "w", encoding="utf-8"))


def main(argv: "Sequence[str]") -> int:
    """Run one command line and return its exit code."""
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
        return code
    except QueuectlError as error:
        return _tell(error)
    except KeyboardInterrupt:
        _print_the_rest()
        return INTERRUPTED_CODE
    except BrokenPipeError:
        _drop_output()
        return 0
    except Exception as error:
        if os.environ.get("QUEUECTL_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _cannot_write(error)
            return int(getattr(error, "exit_code", 1))
        from queuectl.cli.text import safe

        print(f"queuectl: internal error: {type(error).__name__}: {safe(str(error))}", file=sys.stderr)
        print("  please report it; QUEUECTL_DEBUG=1 shows where it happened", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))


def _dispatch(argv: list[str]) -> int:
    defaults: dict[str, object] = {"db": None, "json": False}
    while argv and argv[0].startswith("-"):
        word = argv.pop(0)
        if word in ("-h", "--help"):
            print(usage(), end="")
            return 0
        if word in ("-V", "--version"):
            print(f"queuectl {__version__}")
            return 0
        if word == "--json":
            defaults["json"] = True
        elif word == "--db":
            if not argv:
                raise BadInput("--db needs a URL", hint="see: queuectl --help")
            defaults["db"] = argv.pop(0)
        elif word.startswith("--db="):
            defaults["db"] = word.removeprefix("--db=")
        else:
            raise UnknownName.among(
                "option", word, ["--db", "--json", "--help", "--version"], hint="see: queuectl --help"
            )
    name = argv.pop(0) if argv else "status"
    name = ALIASES.get(name, name)
    if name == "help":
        return _dispatch([*argv[:1], "--help"])
    return _run(name, argv, defaults)


def _run(name: str, argv: list[str], defaults: dict[str, object]) -> int:
    if name == "_complete":  # behind the completion scripts alone, so it is in no help
        from queuectl.cli.complete import run

        return run(argv, str(defaults["db"]) if defaults["db"] else None)
    if name in _GROUP_OF:
        raise UnknownName(f"unknown command {name!r}; did you mean 'queuectl {_GROUP_OF[name]} {name}'?")
    if name in ("group", "groups"):
        raise UnknownName(f"unknown command {name!r}; did you mean 'queuectl status --groups'?")
    if name not in COMMANDS:
        raise UnknownName.among("command", name, [*COMMANDS, *ALIASES], hint="see: queuectl --help")
    from queuectl.cli.parser import parse

    # Not importlib: with all it imports itself, half a millisecond.
    module = __import__(f"queuectl.cli.{COMMANDS[name][0]}", fromlist=["run"])
    try:
        args = parse(name, module, argv, defaults)
        return int(args.run(args))
    except Exception as error:
        if hasattr(module, "FAILURE_CODE"):  # whatever went wrong is not to look like the command's own failure
            error.exit_code = module.FAILURE_CODE  # type: ignore[attr-defined]
        raise


def usage() -> str:
    """Return the help of the whole program."""
    short = {name: alias for alias, name in ALIASES.items()}
    width = max(map(len, COMMANDS))
    lines = [
        f"  {name:<{width}} {about}" + (f" (also: {short[name]})" if name in short else "")
        for name, (_, about) in COMMANDS.items()
    ]
    return _USAGE.format(commands="\n".join(lines))


def _print_the_rest() -> None:
    """Write what was printed before a command failed, or say that it cannot be."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _cannot_write(error)


def _cannot_write(error: OSError) -> None:
    print(f"queuectl: cannot write the output: {error.strerror}", file=sys.stderr)
    _drop_output()


def _drop_output() -> None:
    from queuectl.cli.text import drop_output

    drop_output()


def _tell(error: QueuectlError) -> int:
    from queuectl.cli.text import safe

    _print_the_rest()
    print(f"queuectl: {safe(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {safe(error.hint)}", file=sys.stderr)
    return error.exit_code
