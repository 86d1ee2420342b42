"""The screen of `status --watch`: drawn anew when something changes, and once a second for what grows older."""

import os
import select
import sys
import time

from queuectl.actions.snapshot import look_closely, status_shape
from queuectl.cli.status import (
    counts_table,
    group_lines,
    no_worker_line,
    print_status,
    waiting_lines,
    workers_table,
)
from queuectl.cli.text import age, drawn, note, print_json, safe, short
from queuectl.errors import StoreBusy, StoreUnreachable
from queuectl.model.states import State
from queuectl.model.units import local_text
from queuectl.model.value import Value
from queuectl.runtime.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rich.console import Console, Group

    from queuectl.actions.connect import Target
    from queuectl.actions.snapshot import Snapshot
    from queuectl.cli.parser import Args
    from queuectl.store.database import Database

REDRAW_EVERY_S = 1.0
LEAST_S = 0.1  # between two looks
LOOK_SHARE = 5
TROUBLE_PAUSE_S = 1.0
COMMAND_WIDTH = 200
KEYS_AT_ONCE = 1024


class Scene(Value):
    """What is watched: how to look at it, and how to show what was seen."""

    look: "Callable[[Database], Any]"
    compared: "Callable[[Any], object]"
    """What a reader would compare: only when that is another is it shown again, but on a screen."""
    shape: "Callable[[Any], object]"
    show: "Callable[[Any], None]"
    page: "Callable[[Any, Any, Console], Group]"
    """The screen for what was seen now, and first."""


def watch_status(args: "Args", target: "Target", database: "Database") -> int:
    """Show where everything stands until Ctrl-C."""
    scene = Scene(
        look=lambda database: database.read(look_closely),
        compared=_compared,
        shape=lambda found: status_shape(found, database.dialect),
        show=print_status,
        page=_page,
    )
    return watch(args, target, database, scene)


def watch(args: "Args", target: "Target", database: "Database", scene: Scene) -> int:
    """Show something until Ctrl-C: a screen on a terminal, else once per change."""
    try:
        if args.json:
            _each_change(target, database, scene, lambda found: print_json(scene.shape(found)))
        elif not sys.stdout.isatty():
            _each_change(target, database, scene, scene.show)
        else:
            _screen(target, database, scene)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    return 0


def _each_change(target: "Target", database: "Database", scene: Scene, show: "Callable[[Any], None]") -> None:
    """Show it once per change of what a reader would compare; a heartbeat alone is none."""
    before: object = None
    for found, trouble in _looks(target, database, scene, lambda: False):
        after = trouble if found is None else scene.compared(found)
        if after != before and found is not None:
            show(found)
            sys.stdout.flush()
        elif after != before:
            note(f"{safe(trouble)}; trying again")
        before = after


def _looks(
    target: "Target", database: "Database", scene: Scene, is_over: "Callable[[], bool]", keys: int | None = None
) -> "Iterator[tuple[Any, str]]":
    """Look whenever something changed and once a second; without a store, yield what is wrong with it."""
    while True:
        try:
            with Watch(target, database) as watch:
                if keys is not None:
                    watch.wake_on(keys, lambda: None)
                while True:
                    began = time.monotonic()
                    yield scene.look(database), ""
                    if is_over():
                        return
                    now = time.monotonic()
                    watch.wait(began + REDRAW_EVERY_S, not_before=now + max(LEAST_S, LOOK_SHARE * (now - began)))
        except (StoreUnreachable, StoreBusy) as error:
            yield None, error.message
            if is_over():
                return
            time.sleep(TROUBLE_PAUSE_S)


def _compared(found: "Snapshot") -> object:
    paused = [(queue.name, queue.paused_at) for queue in found.queues]
    return (
        found.counts,
        paused,
        [(worker.id, worker.stop) for worker in found.workers],
        found.load,
        found.unservable,
        found.groups,
    )


def _screen(target: "Target", database: "Database", scene: Scene) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    began: Any = None
    with _Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        for found, trouble in _looks(target, database, scene, lambda: keys.is_quit, keys.fd):
            if found is not None:
                began = began or found
                live.update(scene.page(found, began, console), refresh=True)
            else:
                live.update(f"{safe(trouble)}; trying again", refresh=True)


def _page(found: "Snapshot", began: "Snapshot", console: "Console") -> "Group":
    from rich.console import Group
    from rich.text import Text

    width = console.width
    running = sum(len(held) for held in found.load.held.values())
    parts: list[object] = [
        Text(f"queuectl  {local_text(found.now)}  {_since(found, began)}", style="bold"),
        Text(""),
        drawn(*counts_table(found), width),
        Text(""),
        drawn(*workers_table(found), width) if found.workers else Text(no_worker_line(found), style="yellow"),
    ]
    if lines := waiting_lines(found):
        parts += [Text(""), *(Text(line, style="yellow") for line in lines)]
    if lines := group_lines(found):
        parts += [Text(""), *map(Text, lines)]
    if found.dead:
        rows = [
            (job.id, age(job.finished_at, found.now), short(job.error or "-", 40), short(job.line, COMMAND_WIDTH))
            for job in found.dead
        ]
        parts += [Text(""), drawn(("DEAD", "DIED", "ERROR", "COMMAND"), rows, (), width)]
    parts += [Text(""), Text(f"{running} running; q or Ctrl-C to leave", style="dim")]
    return Group(*parts)  # type: ignore[arg-type]


def _since(found: "Snapshot", began: "Snapshot") -> str:
    """Say what was done since the watch began, and how quickly."""
    done = found.total[State.COMPLETED] - began.total[State.COMPLETED]
    minutes = max(found.now - began.now, 1) / 60_000
    return (
        f"{done} completed here since {local_text(began.now)[11:]}, {done / minutes:.0f} a minute" if done > 0 else ""
    )


class _Keys:
    """Single keys from the terminal, without waiting for Enter; as it was when the statement is left."""

    def __init__(self) -> None:
        self.fd = 0 if sys.stdin.isatty() else None
        self._before: Any = None
        self._is_quit = False

    def __enter__(self) -> "_Keys":
        if self.fd is not None:
            import termios
            import tty

            self._before = termios.tcgetattr(self.fd)
            tty.setcbreak(self.fd, termios.TCSANOW)  # a key pressed before counts
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd is not None:
            import termios

            termios.tcsetattr(self.fd, termios.TCSADRAIN, self._before)

    @property
    def is_quit(self) -> bool:
        """Whether somebody pressed q, or the terminal is gone."""
        if self.fd is not None and not self._is_quit and select.select([self.fd], [], [], 0)[0]:
            keys = os.read(self.fd, KEYS_AT_ONCE)
            self._is_quit = not keys or b"q" in keys.lower()  # it may come together with others
        return self._is_quit
