"""`worker install` and `worker uninstall`: workers as a unit of your own systemd. The other verbs are in worker.py."""

import os

from queuectl.cli.parser import STANDS
from queuectl.cli.store import target_of
from queuectl.cli.text import note, print_json, safe
from queuectl.model.checks import check_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.install import Installed
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.duty import Duty

INSTALL_EXAMPLES = """\
  queuectl worker install
  queuectl worker install -n 4 -j 2 --queue mail --name mail
  queuectl worker install --dry-run
  queuectl worker install --env-file ~/.config/queuectl.env

Exit code 1: the unit is written, and systemd could not be told; what is left to do is said.
"""
UNINSTALL_EXAMPLES = "  queuectl worker uninstall\n  queuectl worker uninstall --name mail"


def add_install_arguments(verbs: "Mapping[str, Parser]") -> None:
    """Declare the arguments of both verbs; what the workers serve is said as to `worker start`."""
    made = verbs["install"]
    made.add_argument("-n", "--count", metavar="N", default=STANDS, help="worker processes (default: 1)")
    made.add_argument("-j", "--concurrency", metavar="M", default=STANDS, help="commands each runs at once")
    made.add_argument(
        "--queue", action="append", metavar="Q[:WEIGHT]", default=STANDS, help="only this queue; may be repeated"
    )
    made.add_argument("--label", action="append", metavar="LABEL", default=STANDS, help="what jobs may need")
    made.add_argument("--resource", action="append", metavar="NAME=N", default=STANDS, help="so much for jobs to use")
    made.add_argument(
        "--env-file", metavar="FILE", help="variables for the workers, such as QUEUECTL_DATABASE_URL; mode 0600"
    )
    made.add_argument("--linger", action="store_true", help="keep them running when you are logged out, too")
    made.add_argument("--dry-run", action="store_true", help="print the unit and do nothing")
    for verb, about in ((made, "replace a unit that differs"), (verbs["uninstall"], "also one written by hand")):
        verb.add_argument("--name", metavar="NAME", help="one of several: queuectl-NAME.service")
        verb.add_argument("--force", action="store_true", help=about)


def run_install(args: "Args", *, count: int, slots: int | None, duty: "Duty") -> int:
    """Write the unit, have systemd start it, and say each thing that was done or not."""
    from queuectl.actions.install import install, plan_install, worker_unit

    unit = worker_unit(
        target_of(args), count=count, slots=slots, duty=duty, name=_name(args), env_file=args.env_file,
        environ=os.environ,
    )  # fmt: skip
    if args.dry_run:
        done = plan_install(unit, linger=args.linger)
    else:
        done = install(unit, force=args.force, linger=args.linger)
    if args.json:
        print_json(_shape(done))
    elif args.dry_run:
        print(unit.text, end="")
        note(f"would be written to {safe(done.path)}, then: {'; '.join(_line(step.argv) for step in done.steps)}")
    else:
        print({"same": "is there already: "}.get(done.change, f"{done.change} ") + safe(done.path))
        _tell_steps(done)
        _tell_what_next(done, args.name, has_linger=args.linger)
    return 0 if args.dry_run or done.is_whole else 1


def run_uninstall(args: "Args") -> int:
    """Stop, disable and remove the unit, and say each thing that was done or not."""
    from queuectl.actions.install import find_installed, uninstall

    name = _name(args)
    note(f"stopping {find_installed(name, force=args.force).name}; running jobs are waited for")
    done = uninstall(name, force=args.force)
    if args.json:
        print_json(_shape(done))
        return 0 if done.is_whole else 1
    print(f"removed {safe(done.path)}" if done.change == "removed" else f"left {safe(done.path)} where it is")
    _tell_steps(done)
    return 0 if done.is_whole else 1


def _name(args: "Args") -> str | None:
    return None if args.name is None else check_name("name", args.name)


def _tell_steps(done: "Installed") -> None:
    for step in done.steps:
        if step.is_done:
            print(f"done: {_line(step.argv)}")
        elif step.is_done is False:
            note(f"failed: {_line(step.argv)}: {safe(step.said)}")
    if done.left:
        note(f"still to do, where systemd runs for you: {' && '.join(map(_line, done.left))}")


def _tell_what_next(done: "Installed", name: str | None, *, has_linger: bool) -> None:
    print(f"log:  journalctl --user -u {done.name}")
    print(f"undo: queuectl worker uninstall{f' --name {name}' if name else ''}")
    if not has_linger:
        note("they run while you are logged in; to run them always, say once: loginctl enable-linger")


def _shape(done: "Installed") -> "dict[str, object]":
    steps = [{"command": _line(step.argv), "done": bool(step.is_done), "said": step.said} for step in done.steps]
    return {"unit": done.name, "path": done.path, "change": done.change, "text": done.text, "steps": steps}


def _line(argv: "Sequence[str]") -> str:
    import shlex  # not for `worker start`, which reads the arguments declared here, too

    return shlex.join(argv)
