"""`status --group`: where a group stands, once or from now on."""

from queuectl.actions.regroup import refuse_unknown_group
from queuectl.cli.group_text import digest, group_facts, group_shape
from queuectl.cli.text import facts, print_json
from queuectl.store import group_views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.console import Console, Group

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args
    from queuectl.store.database import Database, Tx
    from queuectl.store.group_views import GroupView

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
