"""`status --group`: where a group stands, once or from now on; `status --groups`: where each of the newest does."""

from queuectl.actions.regroup import refuse_unknown_group
from queuectl.actions.shapes import group_shape
from queuectl.cli.group_text import digest, group_facts
from queuectl.cli.text import facts, moment, note, print_json, table
from queuectl.errors import BadInput
from queuectl.model.states import State
from queuectl.store import group_views, groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.console import Console, Group

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args
    from queuectl.store.database import Database, Tx
    from queuectl.store.group_views import GroupView

LISTED = 50
HEADERS = ("GROUP", "JOBS", "COMPLETED", "FAILED", "IS", "ADDED")
LEAST_BAR = 10
WIDEST_BAR = 60


def show_group(args: "Args", target: "Target", database: "Database", name: str) -> int:
    """Print where a group stands."""

    def look(tx: "Tx") -> "GroupView":
        refuse_unknown_group(tx, name)
        view = group_views.view(tx, name)
        assert view is not None, f"group {name} is known"
        return view

    if args.watch:
        from queuectl.cli.screen import Scene, watch

        scene = Scene(
            look=lambda database: database.read(look),
            compared=lambda view: (view.counts, view.group),
            shape=group_shape,
            show=_print,
            page=_page,
        )
        return watch(args, target, database, scene)
    view = database.read(look)
    if args.json:
        print_json(group_shape(view))
    else:
        _print(view)
    return 0


def list_groups(args: "Args", database: "Database") -> int:
    """Print where each of the newest groups stands, the newest first."""
    if args.group is not None or args.watch:
        other = "--watch" if args.watch else "--group"
        raise BadInput(f"--groups and {other} do not go together", hint="one group alone: queuectl status --group NAME")

    def look(tx: "Tx") -> "tuple[list[GroupView], bool]":
        names = groups.names(tx, LISTED + 1)
        views = [group_views.view(tx, name) for name in names[:LISTED]]
        return [view for view in views if view is not None], len(names) > LISTED

    views, has_more = database.read(look)
    if args.json:
        for view in views:
            print_json(group_shape(view))
    elif views:
        table(HEADERS, [_row(view) for view in views], right=HEADERS[1:4])
    else:
        note("no groups; a job is of one by: queuectl enqueue --group NAME ...")
    if has_more:
        note(f"the newest {LISTED} groups are shown")
    return 0


def _row(view: "GroupView") -> tuple[str, ...]:
    state = "stopped" if view.group.stopped_at is not None else "over" if view.is_over else "under way"
    numbers = (view.total, view.counts.get(State.COMPLETED, 0), view.failed)
    return view.name, *(f"{number:,}" for number in numbers), state, moment(view.group.created_at, view.now)


def _print(view: "GroupView") -> None:
    facts(group_facts(view))
    if lines := digest(view):
        print()
        print("\n".join(lines))


def _page(view: "GroupView", _began: "GroupView", console: "Console") -> "Group":
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    colour = "red" if view.failed else "green"
    width = max(LEAST_BAR, min(WIDEST_BAR, console.width - 1))
    parts: list[Text | ProgressBar] = [
        ProgressBar(max(view.total, 1), view.ended, width, complete_style=colour, finished_style=colour),
        Text(""),
        *(Text(f"{name + ':':<13} {value}") for name, value in group_facts(view)),
        Text(""),
        *(Text(line, no_wrap=True, overflow="ellipsis") for line in digest(view)),
        Text(""),
        Text("q or Ctrl-C to leave", style="dim"),
    ]
    return Group(*parts)
