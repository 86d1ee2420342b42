"""Picture: where each job of a graph stands when it is drawn: those that run first on the left, each after its own."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.graph import Graph, Node, Tie

BOX_WIDTH = 190
BOX_HEIGHT = 44
GAP_X = 56
GAP_Y = 14
MARGIN = 8
SWEEPS = 4


class Box(Value):
    """One job as it is drawn."""

    node: "Node"
    x: int
    y: int
    is_asked: bool
    parents_left: str | None = None
    children_left: str | None = None
    """What is not shown on each side."""


class Line(Value):
    """One dependency as it is drawn."""

    tie: "Tie"
    path: str


class Picture(Value):
    """A whole drawing."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def picture(graph: "Graph") -> Picture:
    """Place the jobs of a graph in columns, so that every line goes from left to right."""
    columns = _columns(graph)
    places = {
        number: (MARGIN + at * (BOX_WIDTH + GAP_X), MARGIN + row * (BOX_HEIGHT + GAP_Y))
        for at, column in enumerate(columns)
        for row, number in enumerate(column)
    }
    boxes = tuple(
        Box(
            node=graph.nodes[number],
            x=x,
            y=y,
            is_asked=number == graph.asked,
            parents_left=graph.parents_left[number].words if number in graph.parents_left else None,
            children_left=graph.children_left[number].words if number in graph.children_left else None,
        )
        for number, (x, y) in places.items()
    )
    return Picture(
        width=2 * MARGIN + len(columns) * BOX_WIDTH + (len(columns) - 1) * GAP_X,
        height=2 * MARGIN + max(map(len, columns)) * (BOX_HEIGHT + GAP_Y) - GAP_Y,
        boxes=boxes,
        lines=tuple(Line(tie=tie, path=_path(places[tie.parent], places[tie.child])) for tie in graph.ties),
    )


def _columns(graph: "Graph") -> list[list[int]]:
    depths = _depths(graph)
    columns: list[list[int]] = [[] for _ in range(max(depths.values()) + 1)]
    for number, depth in depths.items():
        columns[depth].append(number)
    for _ in range(SWEEPS):
        _straighten(columns, graph.ties)
    return columns


def _depths(graph: "Graph") -> dict[int, int]:
    """Return how many jobs run one after the other before each; a parent always has a lower depth."""
    parents: dict[int, list[int]] = {number: [] for number in graph.nodes}
    for tie in graph.ties:
        parents[tie.child].append(tie.parent)
    depths: dict[int, int] = {}
    left = dict(parents)
    while left:
        ready = [number for number, above in left.items() if all(parent in depths for parent in above)]
        for number in ready or list(left):  # what an import made a circle of is drawn all the same
            depths[number] = 1 + max((depths.get(parent, -1) for parent in left.pop(number)), default=-1)
    return depths


def _straighten(columns: "Sequence[list[int]]", ties: "Sequence[Tie]") -> None:
    """Order each column by where those it is tied to stand, so that few lines cross."""
    rows = {number: row for column in columns for row, number in enumerate(column)}
    near: dict[int, list[int]] = {number: [] for number in rows}
    for tie in ties:
        near[tie.child].append(tie.parent)
        near[tie.parent].append(tie.child)
    for column in columns:
        column.sort(key=lambda number: (_mean(near[number], rows, rows[number]), number))
        rows.update({number: row for row, number in enumerate(column)})


def _mean(numbers: "Sequence[int]", rows: "Mapping[int, int]", otherwise: int) -> float:
    return sum(rows[number] for number in numbers) / len(numbers) if numbers else otherwise


def _path(parent: tuple[int, int], child: tuple[int, int]) -> str:
    x1, y1 = parent[0] + BOX_WIDTH, parent[1] + BOX_HEIGHT // 2
    x2, y2 = child[0], child[1] + BOX_HEIGHT // 2
    bend = max(GAP_X // 2, (x2 - x1) // 2)
    return f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
