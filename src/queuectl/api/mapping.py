"""Mapping: the jobs of a command for many values, from what Python has: lists, paths, numbers."""

import os

from queuectl.actions.mapping import check_shell, fresh_name
from queuectl.api.fields import plain_fields
from queuectl.errors import BadInput
from queuectl.model.array import read_array
from queuectl.model.job import JobSpec
from queuectl.model.mapping import Source, check_source, combine, common_spec, map_jobs, read_names
from queuectl.model.template import read_line, read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queuectl.api.fields import Command

    Mappable = str | int | os.PathLike[str]


def mapped_specs(
    command: "Command",
    lists: "Sequence[Iterable[Mappable]]",
    options: "Mapping[str, object]",
    now: int,
    *,
    array: str | None,
    mark: str,
) -> list[JobSpec]:
    """Check a command for many values, its lists and its options, and return its jobs."""
    template = read_line(command, mark) if isinstance(command, str) else read_words(list(command), mark)
    fields = plain_fields(options)
    if "shell" in fields:
        check_shell(str(fields["shell"]))
    sources = [_source(values, number) for number, values in enumerate(lists, start=1)]
    if array is not None:
        numbers = read_array(array)
        sources.insert(0, Source(values=tuple(map(str, numbers.numbers))))
        fields = numbers.limiting(fields, fresh_name())
    if not sources:
        raise BadInput("no values given", hint="hand over a list of them, or array='1-10'")
    base = common_spec(fields, template, now, JobSpec(cwd=None if "cwd" in fields else os.getcwd()))
    template = template.for_lists(len(sources), silent=0 if array is None else 1)
    names = read_names(fields, len(sources), mark)
    rows = combine(sources)
    return map_jobs(template, rows, base, names=names, has_index=array is not None) if rows else []


def _source(values: "Iterable[Mappable]", number: int) -> Source:
    if isinstance(values, str | bytes):
        raise BadInput(f"list {number} is one text, not a list of values", hint="put it in brackets")
    return check_source(map(_text, values), f"list {number}")


def _text(value: object) -> object:
    """Return what a command line would have for a path or a number."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
