"""Job list: what the address of a list of jobs says, and the addresses and commands that say a little else."""

import shlex
from urllib.parse import urlencode

from queuectl.actions.selection import read_filter
from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import check_name
from queuectl.model.patterns import ascii_pattern
from queuectl.model.value import Value
from queuectl.store.jobs import Filter
from queuectl.store.listing import Key, Order
from queuectl.web.views.address import check_names
from queuectl.web.views.columns import COLUMNS, DEFAULT_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.datastructures import QueryParams

LIMITS = (25, 50, 100, 200, 500)
DEFAULT_LIMIT = 50
MOST_DIGITS = 9
SINCE = (("15m", "15 min"), ("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))
_SINGLE = ("state", "queue", "group", "text", "error", "since", "until", "ended_since")
_NAMES = (*_SINGLE, "tag", "sort", "reverse", "columns", "limit", "after", "before")
_PLACE = ("after", "before")
_KEY = r"(-?\d{1,18}|none)\.(\d{1,18})"
_FLAGS = {"text": "command", "ended_since": "ended-since"}
"""What the command line calls what the address calls otherwise."""


class Asked(Value):
    """A list as somebody asked for it; what is wrong with it is in `problem`, and then `wanted` is nobody."""

    given: "dict[str, list[str]]"
    wanted: Filter = Filter()
    order: Order = Order.ADDED
    is_reversed: bool = False
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    limit: int = DEFAULT_LIMIT
    after: str | None = None
    before: str | None = None
    problem: BadInput | None = None

    def text_of(self, name: str) -> str:
        """Return what the address says of one thing; nothing where it says nothing."""
        return ",".join(self.given.get(name, []))

    @property
    def states(self) -> list[str]:
        """The names of the states that are asked for."""
        return [name for name in self.text_of("state").split(",") if name]

    @property
    def filters(self) -> list[tuple[str, str]]:
        """What is asked of the jobs, each by itself, but for their states."""
        names = ("queue", "group", "tag", "text", "error", "since", "until", "ended_since")
        return [(name, value) for name in names for value in self.given.get(name, [])]

    @property
    def is_narrow(self) -> bool:
        """Whether not every job is meant."""
        return bool(self.filters or self.states)

    @property
    def name_meant(self) -> str | None:
        """The id, group or tag that the text may be: it is looked for in commands alone."""
        try:
            return check_name("name", self.text_of("text").strip())
        except BadInput:
            return None

    def address(self, **changes: "str | Sequence[str] | None") -> str:
        """Return the query of the same list with some things otherwise, from its first page on."""
        given = {name: values for name, values in self.given.items() if name not in _PLACE}
        return _query(given, changes)

    def page_address(self, **place: str) -> str:
        """Return the query of another page of the same list."""
        return _query({name: values for name, values in self.given.items() if name not in _PLACE}, place)

    def without(self, name: str, value: str) -> str:
        """Return the query of the same list with one thing less asked for."""
        return self.address(**{name: [each for each in self.given.get(name, []) if each != value]})

    def toggled(self, state: str) -> str:
        """Return the query of the same list with a state more, or less."""
        kept = [name for name in self.states if name != state]
        chosen = kept if state in self.states else [*self.states, state]
        return self.address(state=",".join(chosen) or None)

    def sorted_by(self, order: str) -> str:
        """Return the query of the same list in another order; in the other direction where it is sorted so already."""
        turned = order == self.order and not self.is_reversed
        return self.address(sort=None if order == Order.ADDED else order, reverse="1" if turned else None)

    @property
    def filter_query(self) -> str:
        """What says which jobs are meant, and nothing of how they are shown."""
        return _query({name: values for name, values in self.given.items() if name in (*_SINGLE, "tag")}, {})

    @property
    def filter_words(self) -> list[str]:
        """The flags of a command line that mean these jobs."""
        words = [f"--state {shlex.quote(self.text_of('state'))}"] if self.states else []
        words += [f"--{_FLAGS.get(name, name)} {shlex.quote(value)}" for name, value in self.filters]
        return words

    @property
    def command(self) -> str:
        """The command line that shows the same."""
        words = ["queuectl list", *self.filter_words]
        words += [] if self.order is Order.ADDED else [f"--sort {self.order}"]
        words += ["-r"] if self.is_reversed else []
        words += [f"--columns {','.join(self.columns)}"] if "columns" in self.given else []
        words += [] if self.limit == DEFAULT_LIMIT else [f"--limit {self.limit}"]
        if self.after is not None and self.order is Order.ADDED and not self.is_reversed:
            words.append(f"--before {shlex.quote(self.after.rpartition('.')[2])}")
        return " ".join(words)


def read_asked(params: "QueryParams", now_ms: int) -> Asked:
    """Read the address of a list; what cannot be read is told, not raised, so that it can be mended on the page."""
    given: dict[str, list[str]] = {}
    for name, value in params.multi_items():
        if name in _NAMES and value.strip():
            given.setdefault(name, []).append(value.strip() if name not in ("text", "error") else value)
    for name in _SINGLE[1:]:
        given[name] = given.get(name, [])[-1:]
    given = {name: values for name, values in given.items() if values}
    asked = Asked(given=given)
    try:
        check_names(params, _NAMES)
        wanted, order = _filter(given, now_ms), _order(asked.text_of("sort"))
        return asked.replace(
            wanted=wanted,
            order=order,
            is_reversed=asked.text_of("reverse") not in ("", "0", "false"),
            columns=_columns(asked.text_of("columns"), order),
            limit=_limit(asked.text_of("limit")),
            after=_last(given, "after"),
            before=_last(given, "before"),
        )
    except BadInput as error:
        return asked.replace(problem=error)


def key_text(key: Key) -> str:
    """Write where a page begins or ends as an address carries it."""
    return f"{'none' if key.value is None else key.value}.{key.seq}"


def read_key(text: str) -> Key:
    """Read where a page begins or ends, or raise."""
    found = ascii_pattern(_KEY).fullmatch(text)
    if found is None:
        raise BadInput(f"bad place {text[:80]!r} in the list", hint="begin again with the first page")
    return Key(value=None if found[1] == "none" else int(found[1]), seq=int(found[2]))


def _filter(given: "Mapping[str, Sequence[str]]", now_ms: int) -> Filter:
    return read_filter(
        now_ms,
        state=",".join(given["state"]) if "state" in given else None,
        queue=_last(given, "queue"),
        group=_last(given, "group"),
        tags=given.get("tag", ()),
        text=_last(given, "text"),
        error=_last(given, "error"),
        since=_last(given, "since"),
        until=_last(given, "until"),
        ended_since=_last(given, "ended_since"),
    )


def _last(given: "Mapping[str, Sequence[str]]", name: str) -> str | None:
    return given[name][-1] if given.get(name) else None


def _order(text: str) -> Order:
    if text and text not in list(Order):
        raise UnknownName.among("order", text, list(Order))
    return Order(text or Order.ADDED)


def _columns(text: str, order: Order) -> tuple[str, ...]:
    """Return the columns that are asked for; else the usual ones, with the one the list is sorted by."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in COLUMNS:
            raise UnknownName.among("column", name, list(COLUMNS))
    sorted_by = [name for name, column in COLUMNS.items() if column.order == order]
    if not names and not any(name in DEFAULT_COLUMNS for name in sorted_by):
        names = [*DEFAULT_COLUMNS, *sorted_by]
    chosen = tuple(name for name in COLUMNS if name in names)
    return chosen or DEFAULT_COLUMNS


def _limit(text: str) -> int:
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and 1 <= int(text) <= LIMITS[-1]):
        raise BadInput(f"bad limit {text[:40]!r}", hint=f"give a whole number from 1 to {LIMITS[-1]}")
    return int(text)


def _query(given: "Mapping[str, Sequence[str]]", changes: "Mapping[str, str | Sequence[str] | None]") -> str:
    merged: dict[str, object] = {**given, **changes}
    said = {name: value for name, value in merged.items() if value}
    return f"?{urlencode(said, doseq=True)}" if said else "?"
