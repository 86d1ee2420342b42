"""After: which jobs a job waits for, and what it makes of how they end. Who waits for whom is in store/edges.py."""

import re
from enum import StrEnum

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import as_items, check_given_id, check_own_name, shown_value
from queuectl.model.states import State
from queuectl.model.value import Value

MAX_PARENTS = 10_000
GROUP = "group:"
AFTER_HELP = "ids: 12, any:13, fail:nightly, a range 3-9, or group:NAME"
LATEST = "last"


class Kind(StrEnum):
    """How a parent must end for its child to run."""

    OK = "ok"
    ANY = "any"
    FAIL = "fail"


class EdgeState(StrEnum):
    """What has become of one dependency."""

    WAITING = "waiting"
    SATISFIED = "satisfied"
    BROKEN = "broken"


class OnDead(StrEnum):
    """What a job does when one it waits for ended otherwise than it asked."""

    CANCEL = "cancel"
    KEEP = "keep"
    RUN = "run"


class Parent(Value):
    """A job to wait for, by whatever a person calls it."""

    kind: Kind
    id: str

    @property
    def text(self) -> str:
        """As a person writes it."""
        return parent_text(self.kind, self.id)


def parent_text(kind: str, job_id: str) -> str:
    """Write a dependency as `--after` takes it: `12`, `any:13`."""
    return job_id if kind == Kind.OK else f"{kind}:{job_id}"


def is_met(kind: str, state: State) -> bool:
    """Whether a job that ended in a state ended as its child asked."""
    return kind == Kind.ANY or (kind == Kind.OK) == (state is State.COMPLETED)


def check_after(name: str, value: object) -> tuple[Parent, ...]:
    """Read what a job is to run after: `12,any:13`, or a list of such; each parent once."""
    found: dict[str, Parent] = {}
    for item in as_items(name, value):
        parent = _parent(name, item)
        other = found.setdefault(parent.id, parent)
        if other.kind is not parent.kind:
            raise BadInput(
                f"{name} names {parent.id} as {other.text} and as {parent.text}", hint="leave out one of them"
            )
    if len(found) > MAX_PARENTS:
        raise BadInput(f"{name} names {len(found)} jobs; the limit is {MAX_PARENTS}", hint="wait for them in steps")
    return tuple(found.values())


def _parent(name: str, item: object) -> Parent:
    if isinstance(item, int) and not isinstance(item, bool):
        item = str(item)
    if not isinstance(item, str):
        raise BadInput(f"{name} holds {shown_value(item)}", hint=f"write {AFTER_HELP}")
    head, colon, rest = item.strip().partition(":")
    if not colon or f"{head}:" == GROUP:
        return Parent(kind=Kind.OK, id=_id(name, item.strip()))
    if head not in list(Kind):
        raise UnknownName.among(f"kind of {name}", head, [*Kind, GROUP[:-1]])
    return Parent(kind=Kind(head), id=_id(name, rest.strip()))


def _id(name: str, job_id: str) -> str:
    if job_id.startswith(GROUP):
        return GROUP + check_own_name(f"group in {name}", job_id.removeprefix(GROUP))
    if span_of(job_id) is not None:
        return job_id
    if job_id.isascii() and job_id.isdigit() and len(job_id) < 19:
        return str(int(job_id))
    if job_id == LATEST:
        return job_id
    try:
        return check_given_id(name, job_id)
    except BadInput as error:
        raise BadInput(error.message, hint=f"write {AFTER_HELP}") from None


def span_of(name: str) -> tuple[int, int] | None:
    """Return both ends of a range of numbers such as `3-9`; None for another name."""
    found = re.fullmatch(r"(\d{1,18})-(\d{1,18})", name, re.ASCII)
    return None if found is None else (int(found[1]), int(found[2]))
