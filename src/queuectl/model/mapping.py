"""Mapping: one command for each value of a list, or for each set of values of several; all of it checked beforehand."""

from itertools import product
from math import prod

from queuectl.errors import BadInput
from queuectl.model.checks import as_text
from queuectl.model.fields import FIELDS, INDEX_VARIABLE
from queuectl.model.spec import spec_from_fields
from queuectl.model.template import MARK, check_value, read_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queuectl.model.job import JobSpec
    from queuectl.model.template import Template

MOST_JOBS = 1_000_000
NAMING_FIELDS = frozenset({"id", "unique"})
"""What may be said of one job only, so that each needs its own."""
MOST_CHARACTERS = 1 << 30
"""In all commands together: they are held in memory before any is written."""


class Source(Value):
    """A list of values; a linked one goes along with the list before it instead of being combined with it."""

    values: tuple[str, ...]
    is_linked: bool = False


def check_source(values: "Iterable[object]", name: str, *, is_linked: bool = False) -> Source:
    """Check the values of a list; `name` says which list that is."""
    checked = tuple(check_value(value, f"value {number} of {name}") for number, value in enumerate(values, start=1))
    return Source(values=checked, is_linked=is_linked)


def combine(sources: "Sequence[Source]") -> "list[tuple[str, ...]]":
    """Return every combination of the values of some lists, the last varying fastest; raises when they are too many."""
    axes: list[list[tuple[str, ...]]] = []
    for number, source in enumerate(sources, start=1):
        if not source.is_linked:
            axes.append([(value,) for value in source.values])
            continue
        if not axes:
            raise BadInput("the first list has none before it to be linked with", hint="begin with ::: or ::::")
        if len(source.values) != len(axes[-1]):
            raise BadInput(
                f"list {number} has {len(source.values)} values, and the one it is linked with {len(axes[-1])}",
                hint="linked lists go side by side and must be of one length",
            )
        axes[-1] = [(*row, value) for row, value in zip(axes[-1], source.values, strict=True)]
    count = prod(map(len, axes))
    if count > MOST_JOBS:
        sizes = " x ".join(str(len(axis)) for axis in axes)
        raise BadInput(f"{sizes} values make {count} jobs; the limit is {MOST_JOBS}", hint="map a part at a time")
    if len(axes) == 1:
        return axes[0]
    return [tuple(value for row in rows for value in row) for rows in product(*axes)]


def common_spec(fields: "Mapping[str, object]", template: "Template", now_ms: int, base: "JobSpec") -> "JobSpec":
    """Check the fields that all jobs of a template have in common, and return them as a job without a command."""
    common = {name: value for name, value in fields.items() if name not in NAMING_FIELDS}
    stand_in: dict[str, object] = {"command": "true"} if template.words is None else {"argv": ["true"]}
    return spec_from_fields({**common, **stand_in}, now_ms, base).replace(command=None, argv=None)


def map_jobs(
    template: "Template",
    rows: "Sequence[tuple[str, ...]]",
    base: "JobSpec",
    *,
    names: "Mapping[str, Template] | None" = None,
    has_index: bool = False,
) -> "list[JobSpec]":
    """Return a job for each row of values: `base` with the command filled in.

    `names` are fields that name one job, with something in them that tells one from the other. With `has_index` the
    first value of a row is what the command finds in QUEUECTL_ARRAY_INDEX.
    """
    specs = _with_commands(template, rows, base)
    for field, text in (names or {}).items():
        make = text.command_maker()
        target, _ = FIELDS[field](field, make(rows[0], 1), 0)
        specs = [
            spec.replace(**{target: FIELDS[field](field, make(row, number), 0)[1]})
            for number, (spec, row) in enumerate(zip(specs, rows, strict=True), start=1)
        ]
    if has_index:
        own = base.env or {}
        specs = [spec.replace(env={**own, INDEX_VARIABLE: row[0]}) for spec, row in zip(specs, rows, strict=True)]
    return specs


def read_names(fields: "Mapping[str, object]", count: int, mark: str = MARK) -> "dict[str, Template]":
    """Return what of some fields names one job alone, for so many lists; raises where it would name all of them."""
    names: dict[str, Template] = {}
    for field in NAMING_FIELDS & fields.keys():
        text = as_text(field, fields[field])
        names[field] = read_text(text, mark)
        if not names[field].slots:
            raise BadInput(
                f"{field} {text!r} would be that of every job", hint=f"have each tell its own, by number: {text}-{{#}}"
            )
        names[field].for_lists(count)
    return names


def _with_commands(template: "Template", rows: "Sequence[tuple[str, ...]]", base: "JobSpec") -> "list[JobSpec]":
    room = MOST_CHARACTERS
    specs: list[JobSpec] = []
    if template.words is None:
        make_command = template.command_maker()
        for number, row in enumerate(rows, start=1):
            command = make_command(row, number)
            room -= len(command)
            _check_room(room, number)
            specs.append(base.replace(command=command))
        return specs
    make_argv = template.argv_maker()
    for number, row in enumerate(rows, start=1):
        argv = make_argv(row, number)
        room -= sum(map(len, argv))
        _check_room(room, number)
        specs.append(base.replace(argv=argv))
    return specs


def _check_room(room: int, number: int) -> None:
    if room < 0:
        raise BadInput(
            f"the first {number} commands have more than {MOST_CHARACTERS} characters", hint="map a part at a time"
        )
