"""Draw which jobs run after which, around one: all that hang together with it, the nearest first.

A job stands below one that it runs after, each once; where it runs after several, the others name it. The job asked
for is marked with `*`. What is not plain is written on the line: any: ended, fail: did not complete, and where the one
above ended otherwise than asked, broken, or kept of a job that goes on waiting all the same.
"""

import sys

from queuectl.actions.graphs import DEFAULT_LIMIT, graph_around
from queuectl.actions.selection import seq_of
from queuectl.cli.list import read_limit
from queuectl.cli.store import open_store
from queuectl.cli.text import COLOURS, note, print_json, safe, short
from queuectl.errors import BadInput, NotFound
from queuectl.model.after import EdgeState, Kind
from queuectl.model.graph import Side, graph_shape
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.graph import Graph, Node, Tie
    from queuectl.store.database import Tx

    Show = Callable[[str, str, str], None]

EXAMPLES = """\
  queuectl graph 12
  queuectl graph last --up
  queuectl graph nightly --down --limit 1000
  queuectl graph nightly --dot | dot -Tsvg >nightly.svg
  queuectl graph nightly --json
"""
MAX_LIMIT = 10_000
DEEPEST = 12
"""How far a line is indented at most: what follows goes on at the margin, further down."""
PIPE_WIDTH = 200
STATE_WIDTH = max(len(state) for state in State)
LABEL_WIDTH = 60
MARK = 2
GAP = 2
FORK, END, BAR, SPACE = "├─ ", "└─ ", "│  ", "   "
# As the terminal has them, in names that Graphviz knows.
DOT_COLOURS = {
    State.PENDING: "lightblue",
    State.SCHEDULED: "plum",
    State.BLOCKED: "khaki",
    State.PROCESSING: "lightcyan",
    State.COMPLETED: "palegreen",
    State.FAILED: "orange",
    State.DEAD: "salmon",
    State.CANCELLED: "lightgrey",
}
DOT_LINES = {EdgeState.WAITING: "dashed", EdgeState.SATISFIED: "solid", EdgeState.BROKEN: "dotted"}


class Line(Value):
    """One line of the drawing: what leads to it, and a job, or words alone."""

    lead: str
    name: str
    node: "Node | None" = None
    """None where the job is drawn elsewhere, or none is meant."""
    is_asked: bool = False


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("ids", nargs="+", metavar="ID", help="the job: its number, its id, or 'last'")
    parser.add_argument("--up", action="store_true", help="only what it runs after, near and far")
    parser.add_argument("--down", action="store_true", help="only what runs after it, near and far")
    parser.add_argument("--dot", action="store_true", help="for Graphviz: | dot -Tsvg >graph.svg")
    parser.add_argument(
        "--limit", metavar="N", default=str(DEFAULT_LIMIT), help=f"at most so many jobs (default: {DEFAULT_LIMIT})"
    )
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Draw the graph around a job."""
    name, side, limit = _read(args)

    def look(tx: "Tx") -> "Graph":
        job = jobs.get(tx, seq_of(tx, name))
        if job is None:
            raise NotFound(f"no job {name!r}", hint="it was removed just now")
        return graph_around(tx, job, side, limit)

    graph = open_store(args).read(look)
    if args.json:
        print_json(graph_shape(graph))
        return 0
    if args.dot:
        for line in dot_lines(graph):
            print(line)
    else:
        _print(graph)
    if not graph.is_whole:
        hint = f"; see more with --limit {min(limit * 10, MAX_LIMIT)}" if limit < MAX_LIMIT else ""
        note(f"{len(graph.nodes):,} jobs shown, others left out{hint}")
    return 0


def _read(args: "Args") -> "tuple[str, Side, int]":
    if len(args.ids) > 1:
        raise BadInput(f"one job at a time, not {len(args.ids)}", hint="a graph shows all that hang together with it")
    if args.up and args.down:
        raise BadInput("--up and --down are two sides", hint="leave both out to see all that hangs together")
    if args.dot and args.json:
        raise BadInput("--dot and --json are two forms", hint="leave out one of them")
    limit = read_limit(args.limit)
    if limit > MAX_LIMIT:
        raise BadInput(f"bad --limit {args.limit!r}", hint=f"give a whole number from 1 to {MAX_LIMIT}")
    return args.ids[0], Side.UP if args.up else Side.DOWN if args.down else Side.BOTH, limit


class Drawing:
    """A graph as lines, each job once: below the first of those it runs after, in the order of their numbers."""

    def __init__(self, graph: "Graph") -> None:
        self._graph = graph
        self._children = graph.children()
        self._seen: set[int] = set()
        self._at_margin = graph.roots()

    def lines(self) -> "Iterator[Line]":
        """Yield them from the top."""
        while self._at_margin:
            number = self._at_margin.pop(0)
            if number not in self._seen:
                yield from self._job(number, "", "", 0)

    def _job(self, number: int, lead: str, below: str, depth: int) -> "Iterator[Line]":
        """Yield a job and what hangs below it; one that would stand too far right goes on at the margin."""
        node = self._graph.nodes[number]
        if number in self._seen:
            yield Line(lead=lead, name=f"{safe(node.id)} (see above)")
        elif depth > DEEPEST:
            self._at_margin.append(number)
            yield Line(lead=lead, name=f"{safe(node.id)} (see below)")
        else:
            self._seen.add(number)
            yield Line(lead=lead, name=safe(node.id), node=node, is_asked=number == self._graph.asked)
            yield from self._below(number, below, depth)

    def _below(self, number: int, below: str, depth: int) -> "Iterator[Line]":
        ties, rest = self._children[number], self._graph.children_left.get(number)
        if others := self._graph.parents_left.get(number):
            yield Line(lead=f"{below}{BAR if ties or rest else SPACE}", name=f"(after {others.words})")
        for tie in ties:
            is_last = tie is ties[-1] and rest is None
            lead = f"{below}{END if is_last else FORK}{self._label(tie)}"
            yield from self._job(tie.child, lead, f"{below}{SPACE if is_last else BAR}", depth + 1)
        if rest is not None:
            yield Line(lead=f"{below}{END}", name=f"and {rest.words}")

    def _label(self, tie: "Tie") -> str:
        """Say what is not plain of a dependency: how the one above must end, and that it ended otherwise."""
        kind = "" if tie.kind is Kind.OK else f"{tie.kind}: "
        if tie.edge_state is EdgeState.BROKEN:
            return f"{kind}broken: "
        above = self._graph.nodes[tie.parent].job
        is_over = above is not None and above.state in FINAL
        return f"{kind}kept: " if is_over and tie.edge_state is EdgeState.WAITING else kind


def _print(graph: "Graph") -> None:
    """Print the drawing: names with what leads to them, states and commands each in a column of their own."""
    lines = list(Drawing(graph).lines())
    width = max(len(line.lead) + len(line.name) for line in lines if line.node is not None)
    show = _shower(MARK + width + GAP + STATE_WIDTH) if sys.stdout.isatty() else _print_plain
    for line in lines:
        head = f"{'* ' if line.is_asked else '  '}{f'{line.lead}{line.name}':<{width}}"
        node = line.node
        if node is None:
            show(head.rstrip(), "", "")
        else:
            command = "" if node.job is None else short(node.job.line, PIPE_WIDTH)
            show(f"{head}{'':<{GAP}}", f"{node.state:<{STATE_WIDTH}}", f"{'':<{GAP}}{command}")


def _print_plain(head: str, state: str, command: str) -> None:
    print(f"{head}{state}{command}".rstrip())


def _shower(least_width: int) -> "Show":
    """Return what prints a line on a terminal: the state in its colour, and the command cut, but never a name."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if console.width < least_width:  # goes on in the next line: cut, it would name nothing
        console = Console(highlight=False, width=least_width)

    def show(head: str, state: str, command: str) -> None:
        style = COLOURS.get(State(name), "") if (name := state.strip()) in list(State) else ""
        text = Text.assemble(head, (state, style), command)
        text.rstrip()
        console.print(text, no_wrap=True, overflow="ellipsis")

    return show


def dot_lines(graph: "Graph") -> "Iterator[str]":
    """Yield the graph as Graphviz reads it; jobs are named by their numbers, so that nothing in a name can harm."""
    yield "digraph queuectl {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="filled,rounded", fontname="sans-serif"];'
    for node in graph.nodes.values():
        yield f"  {node.number} [{_dot_node(node, is_asked=node.number == graph.asked)}];"
    for tie in graph.ties:
        label = f", label={_quoted(tie.kind)}" if tie.kind is not Kind.OK else ""
        yield f"  {tie.parent} -> {tie.child} [style={DOT_LINES[tie.edge_state]}{label}];"
    for number, rest in graph.parents_left.items():
        yield f"  before_{number} [label={_quoted(rest.words)}, shape=plaintext, style=solid];"
        yield f"  before_{number} -> {number} [style=dotted];"
    for number, rest in graph.children_left.items():
        yield f"  after_{number} [label={_quoted(rest.words)}, shape=plaintext, style=solid];"
        yield f"  {number} -> after_{number} [style=dotted];"
    yield "}"


def _dot_node(node: "Node", *, is_asked: bool) -> str:
    parts = [node.id, node.state]
    if node.job is not None:
        parts.append(short(node.job.line, LABEL_WIDTH))
    label = "\\n".join(_escaped(part) for part in parts)
    colour = "white" if node.job is None else DOT_COLOURS[node.job.state]
    return f'label="{label}", fillcolor={colour}{", penwidth=3" if is_asked else ""}'


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Write text so that Graphviz shows it: it knows escapes of its own, and those of HTML."""
    return safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
