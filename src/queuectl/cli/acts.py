"""What the commands that act on jobs share: saying which, asking before many are changed, and what came of it."""

import json
import sys

from queuectl.actions import acts
from queuectl.actions.selection import group_alone, is_everything, refuse_names_with_filter
from queuectl.actions.shapes import done_shape, tally_shape
from queuectl.cli.selection import add_filter, add_names, add_state, read_selection
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json, safe, short
from queuectl.errors import BadInput
from queuectl.model.after import OnDead
from queuectl.model.fields import PARTS
from queuectl.model.needs import amount_text
from queuectl.model.shapes import changes_shape
from queuectl.model.states import State
from queuectl.model.units import counted, duration_text, local_text, size_text, time_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.acts import Act, Chosen, Done, Tally
    from queuectl.actions.selection import Selection
    from queuectl.cli.parser import Args, Parser

VALUE_WIDTH = 60


def add_ids(parser: "Parser", *, nargs: str = "+") -> None:
    """Declare the ids of the jobs to act on."""
    parser.add_argument("ids", nargs=nargs, metavar="ID", help="the jobs: numbers, ids, or 'last'")


def add_choice(parser: "Parser") -> None:
    """Declare which jobs to act on, by name or by what they look like, and how sure a person is."""
    add_names(parser)
    add_state(parser)
    add_filter(parser)
    parser.add_argument("--all", action="store_true", help="every job the act applies to")
    add_trial(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask before acting on what a filter finds")


def add_trial(parser: "Parser") -> None:
    """Declare the flag that changes nothing."""
    parser.add_argument(
        "--dry-run", dest="is_trial", action="store_true", help="say what would be done, and do nothing"
    )


def run_act(args: "Args", act: "Act") -> int:
    """Act on the jobs a command line means: named ones all or none, found ones after a question."""
    selection = read_selection(args)
    if args.all and not is_everything(selection):
        raise BadInput("--all stands alone", hint="leave it out: the ids or the filter say which jobs are meant")
    if is_everything(selection) and not args.all:
        raise BadInput("which jobs?", hint="give ids, a range such as 3-9, a filter such as --state, or --all")
    refuse_names_with_filter(selection)
    is_sure = args.yes or bool(selection.names)
    if (group := group_alone(selection)) is not None and act.takes_groups:
        from queuectl.actions.regroup import refuse_unknown_group  # most acts are on jobs

        open_store(args).read(lambda tx: refuse_unknown_group(tx, group))
        is_sure = True  # it is named
    return act_on(args, act, selection, is_sure=is_sure)


def act_on(args: "Args", act: "Act", selection: "Selection", *, is_sure: bool) -> int:
    """Act on what was selected and say what came of it."""
    database = open_store(args)
    if selection.is_by_name:
        return report(args, acts.act_on_each(database, selection.names, act, who=who(), is_trial=args.is_trial))
    chosen = acts.choose(database, act, selection)
    if args.is_trial:
        return _report_tally(args, chosen, acts.Tally(count=len(chosen.seqs), passed=chosen.passed))
    if chosen.seqs:
        confirm(_affects(chosen), is_sure=is_sure)
    tally = acts.act_on_many(database, chosen, who=who())
    return _report_tally(args, chosen, tally)


def report(args: "Args", done: "list[Done]") -> int:
    """Say what became of each job."""
    would = "would be: " if getattr(args, "is_trial", False) else ""
    for act in done:
        changes = None if act.after is None else changes_shape(act.job, act.after)
        if args.json:
            print_json(done_shape(act, is_trial=bool(would)))
        else:
            print(f"{act.job.id}: {would}{_changes_text(changes) if changes else act.note}")
    return 0


def _changes_text(changes: "Mapping[str, Mapping[str, object]]") -> str:
    return ", ".join(
        f"{name} {_value_text(name, change['from'])} -> {_value_text(name, change['to'])}"
        for name, change in changes.items()
    )


_DURATIONS = ("timeout", "deadline", "max_backoff_seconds", "job_retry_delay")
_UNSAID = {"on_dead_dependency": OnDead.CANCEL.value}
_BY_SETTING = ("timeout", *PARTS["backoff"])


def _value_text(name: str, value: object) -> str:
    """Write a value as the flag for it takes it."""
    if value is None:
        return _UNSAID.get(name, "default" if name in _BY_SETTING else "none")
    if name in _DURATIONS and isinstance(value, float):
        return duration_text(round(value * 1000)) if value else "none"
    if name in ("memory", "file_size") and isinstance(value, int):
        return size_text(value)
    if name == "snooze_codes" and isinstance(value, dict):
        return ",".join(f"{code}:{duration_text(round(delay * 1000))}" for code, delay in value.items())
    if name == "use" and isinstance(value, dict):
        return ",".join(f"{resource}={amount_text(amount)}" for resource, amount in value.items()) or "none"
    if isinstance(value, list) and name != "argv":
        return short(",".join(map(str, value)), VALUE_WIDTH) or "none"
    if name.endswith("_at") and isinstance(value, str):
        return local_text(time_ms(value, 0))
    if isinstance(value, str) and name != "command":
        return safe(value)
    return short(json.dumps(value, ensure_ascii=False), VALUE_WIDTH) if value or value == 0 else "none"


def confirm(what: str, *, is_sure: bool) -> None:
    """Ask before acting on many; in a pipe `--yes` must have been given."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"this {what}", hint="add --yes to do it")
    note(f"this {what}; go on? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BadInput("not confirmed; nothing was changed")


def _affects(chosen: "Chosen") -> str:
    names = _sampled(chosen)
    return f"{chosen.act.name} affects {counted(len(chosen.seqs), 'job')} ({by_state(chosen.counts)}): {names}"


def _sampled(chosen: "Chosen") -> str:
    more = len(chosen.seqs) - len(chosen.samples)
    return ", ".join(chosen.samples) + (f" and {more:,} more" if more else "")


def _report_tally(args: "Args", chosen: "Chosen", tally: "Tally") -> int:
    if args.json:
        print_json(tally_shape(tally.count, tally.passed, is_trial=args.is_trial))
        return 0
    would = "would be " if args.is_trial else ""
    passed = sum(tally.passed.values())
    end = f", {passed:,} passed by: {by_state(tally.passed)}" if passed else ""
    print(f"{tally.count - tally.held:,} {would}{chosen.act.done}{end}{_held_text(tally.held)}")
    if args.is_trial and chosen.seqs:
        print(f"  {by_state(chosen.counts)}: {_sampled(chosen)}")
    if not tally.count and not passed:
        note("no jobs match")
    return 0


def _held_text(held: int) -> str:
    if held == 1:
        return "; 1 is with its worker, which stops it unless it has ended by then"
    return f"; {held:,} are with their workers, which stop those that have not ended by then" if held else ""


def by_state(counts: "Mapping[State, int]") -> str:
    """Write how many jobs are in each state: `2 completed, 1 dead`."""
    return ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))
