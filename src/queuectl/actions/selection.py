"""Selection: which jobs a person means, by what they call them, by ranges of numbers, or by what they look like."""

from queuectl.errors import BadInput, NotFound, UnknownName, did_you_mean
from queuectl.model.checks import check_name
from queuectl.model.states import STATE_NAMES, State, hindrances
from queuectl.model.units import past_ms
from queuectl.model.value import Value
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx

EVERYTHING = jobs.Filter()
NEIGHBOURS = 150
MAX_NUMBER = 10**18
"""Beyond what a job will ever have, and within what a column can hold."""


class Selection(Value):
    """Jobs by name (`12`, `job1`, `last`, `3-9`), by a filter, or those of the names that the filter holds."""

    names: tuple[str, ...] = ()
    wanted: jobs.Filter = EVERYTHING

    @property
    def is_by_name(self) -> bool:
        """Whether each job is named by itself: no range, no filter."""
        return bool(self.names) and self.wanted == EVERYTHING and not any(map(span_of, self.names))


def read_filter(
    now_ms: int,
    *,
    states: tuple[State, ...] = (),
    state: str | None = None,
    queue: str | None = None,
    group: str | None = None,
    tags: "Sequence[str]" = (),
    text: str | None = None,
    error: str | None = None,
    since: str | None = None,
    until: str | None = None,
    ended_since: str | None = None,
) -> jobs.Filter:
    """Read what to look for in jobs, as people write it; `states` are those of a command that is about some alone."""
    names = () if states else state_names(state)
    return jobs.Filter(
        states=states or tuple(dict.fromkeys(STATE_NAMES[name] for name in names)),
        hindrances=hindrances(names),
        queue=None if queue is None else check_name("queue", queue),
        group=None if group is None else check_name("group", group),
        tags=tuple(dict.fromkeys(check_name("tag", tag) for tag in tags)),
        text=text,
        error=error,
        since=None if since is None else past_ms(since, now_ms),
        until=None if until is None else past_ms(until, now_ms),
        ended_since=None if ended_since is None else past_ms(ended_since, now_ms),
    )


def state_names(text: str | None) -> list[str]:
    """Read a list of states, also by what keeps a job blocked, or raise with the nearest one."""
    names = [name.strip().lower() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise BadInput("no state is named", hint=f"known: {', '.join(State)}")
    for name in names:
        if name not in STATE_NAMES:
            raise UnknownName.among("state", name, list(STATE_NAMES))
    return names


def is_everything(chosen: Selection) -> bool:
    """Whether nothing was said about which jobs are meant."""
    return not chosen.names and chosen.wanted == EVERYTHING


def group_alone(chosen: Selection) -> str | None:
    """Return the group that is meant as a whole: named, and nothing else said about which jobs."""
    group = chosen.wanted.group
    return group if group is not None and chosen == Selection(wanted=jobs.Filter(group=group)) else None


def refuse_names_with_filter(selection: Selection) -> None:
    """Refuse single jobs beside a filter: nobody could tell whether the filter is to hold for them."""
    single = [name for name in selection.names if span_of(name) is None]
    if single and selection.wanted != EVERYTHING:
        raise BadInput(
            f"give either ids or a filter, not both: {single[0]} is one job",
            hint="a filter may stand with ranges such as 3-9",
        )


def span_of(name: str) -> tuple[int, int] | None:
    """Return both ends of a range such as `3-9`; None for what names one job."""
    low, dash, high = name.partition("-")
    if not dash or not all(part.isascii() and part.isdigit() for part in (low, high)):
        return None
    first, last = (min(int(part), MAX_NUMBER) for part in (low[:4000], high[:4000]))
    if first > last:
        raise BadInput(f"range {name} ends before it begins", hint=f"write {high}-{low}")
    return first, last


def numbers(tx: "Tx", selection: Selection) -> list[int]:
    """Return the numbers of the jobs that are meant, oldest first; a name that no job has is an error."""
    return [seq for seq, _ in states(tx, selection)]


def states(tx: "Tx", selection: Selection) -> "list[tuple[int, str]]":
    """Return the numbers of the jobs that are meant with the state each is in, oldest first: one consistent set."""
    found = [jobs.states_of(tx, part) for part in filters(tx, selection)]
    return found[0] if len(found) == 1 else [row for rows in found for row in rows]


def filters(tx: "Tx", selection: Selection) -> list[jobs.Filter]:
    """Return filters that together find the jobs that are meant, each once, the oldest first."""
    wanted = selection.wanted
    if not selection.names:
        return _by_error(tx, wanted)
    return [
        wanted.replace(
            first=low if wanted.first is None else max(low, wanted.first),
            last=high if wanted.last is None else min(high, wanted.last),
        )
        for low, high in _spans(tx, selection.names)
    ]


def _by_error(tx: "Tx", wanted: jobs.Filter) -> list[jobs.Filter]:
    """Return what finds the jobs of a filter: of dead ones, an error that names a group of them means that group."""
    if wanted.error is None or wanted.states != (State.DEAD,):
        return [wanted]
    from queuectl.store.error_groups import meant  # adding a job asks for no error, and start-up time counts

    return meant(tx, wanted)


def seq_of(tx: "Tx", name: str) -> int:
    """Return the number of the one job a person names, or raise."""
    found = jobs.find(tx, name)
    if found is None:
        raise no_such_job(tx, name)
    return found.seq


def no_such_job(tx: "Tx", name: str) -> NotFound:
    """Return the error for a name that no job has: with the nearest id, or what else may have been meant."""
    if name in STATE_NAMES:
        return NotFound(f"no job {name!r}", hint=f"jobs in this state: queuectl list --state {name}")
    if span_of(name) is not None:
        return NotFound(f"{name} is a range, and here one job is meant", hint=f"list them with: queuectl list {name}")
    meant = "" if name.isdigit() else did_you_mean(name, jobs.ids_around(tx, name, NEIGHBOURS))
    return NotFound(f"no job {name!r}{meant}", hint="list them with: queuectl list")


def _spans(tx: "Tx", names: "Sequence[str]") -> list[tuple[int, int]]:
    """Return what the names cover as few ranges of numbers, in order and apart from each other."""
    spans: list[tuple[int, int]] = []
    for name in names:
        span = span_of(name)
        if span is not None and not jobs.has_between(tx, *span):
            raise NotFound(f"no job has a number in {name}", hint="list them with: queuectl list")
        spans.append(span or (seq_of(tx, name),) * 2)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
