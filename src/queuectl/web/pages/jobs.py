"""The list of jobs: filtered, sorted and paged by its address, with acts on what is selected or on all that match."""

import json

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions.selection import Selection, filters
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.job import Job
from queuectl.model.states import FINAL, State
from queuectl.model.token import Role
from queuectl.model.value import Value
from queuectl.store import jobs, listing, offers
from queuectl.store.listing import Order, Sorting
from queuectl.web.given import Given, board_of, figures_of
from queuectl.web.templating import render
from queuectl.web.views.columns import COLUMNS
from queuectl.web.views.joblist import LIMITS, SINCE, Asked, key_text, read_asked, read_key
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.offers import Offer

TEMPLATE = "jobs.html"

router = APIRouter()

FILTERED = ("state", "queue", "group", "text", "error", "since", "until", "ended_since")

MOST_BEGUN = 5
"""So many ids, groups and tags that begin with what is searched for are offered."""
VERBS = (
    ("retry", "Retry", "r"),
    ("cancel", "Cancel", "c"),
    ("hold", "Hold", None),
    ("release", "Release", None),
    ("delete", "Delete", None),
)


class Found(Value):
    """One page of the list."""

    jobs: list[Job]
    has_newer: bool
    has_older: bool
    meant: "Meant | None"
    """What the text that is searched for may name; None where none is, or where it can be no name."""


class Meant(Value):
    """What a text may name beside standing in commands."""

    name: str
    job: Job | None
    """The job whose id it is."""
    begun: "list[Offer]"
    """Others whose ids begin with it, the newest."""
    has_more: bool
    """Whether there are more of them."""
    groups: list[str]
    """Groups whose names begin with it; some, never all."""
    tags: list[str]
    """Tags of the newest tagged jobs that begin with it."""
    may_be_older_tag: bool
    """Whether it may yet be the tag of an older job: not all are looked at."""

    @property
    def has_doors(self) -> bool:
        """Whether anything is known by this name."""
        return bool(self.job or self.begun or self.groups or self.tags)


class Counted(Value):
    """How many jobs there are, as all dashboards are told, or nothing while the store cannot be read."""

    states: "dict[State, int]"
    """In each state, of the queue that is asked for."""
    queues: list[str]
    has_any: bool
    total: int | None
    """How many match; None: not counted yet."""


@router.get("/jobs")
def show(request: Request, stores: Given, visitor: Reader) -> HTMLResponse:
    """Show the jobs that are asked for."""
    now = wall_ms()
    asked = read_asked(request.query_params, now)
    found, problem = None, asked.problem
    if problem is None:
        try:
            found = stores.read(lambda tx: _look(tx, asked))
        except BadInput as error:
            problem = error
    return render(
        request,
        TEMPLATE,
        title="Jobs",
        command=asked.command if problem is None else "queuectl list",
        status=200 if problem is None else 422,
        asked=asked,
        now=now,
        found=found,
        counted=_counted(request, asked, found),
        problem=problem,
        rows=[] if found is None else found.jobs,
        columns=[COLUMNS[name] for name in asked.columns],
        all_columns=list(COLUMNS.values()),
        states=list(State),
        orders=list(Order),
        since_choices=SINCE,
        limits=LIMITS,
        verbs=VERBS if visitor.may(Role.OPERATE) else (),
        retryable=FINAL | {State.FAILED, State.SCHEDULED},
        final=FINAL,
        newer=_newer(asked, found),
        older=_older(asked, found),
        filter_json=json.dumps(_filter_shape(asked)),
    )


def _counted(request: Request, asked: Asked, found: Found | None) -> Counted:
    seen = board_of(request).current().found
    by_queue = {} if seen is None else seen.counts
    chosen = by_queue.values() if asked.wanted.queue is None else [by_queue.get(asked.wanted.queue, {})]
    states = {state: sum(each.get(state, 0) for each in chosen) for state in State}
    return Counted(
        states=states,
        queues=[] if seen is None else [queue.name for queue in seen.queues],
        has_any=any(count for each in by_queue.values() for count in each.values()),
        total=None if found is None else _total(request, asked, found, states),
    )


def _total(request: Request, asked: Asked, found: Found, states: "dict[State, int]") -> int | None:
    """Return how many match: all that are shown, as all are told, or as it was last counted by itself."""
    if not found.has_newer and not found.has_older:
        return len(found.jobs)
    wanted, params = asked.wanted, request.query_params
    if wanted == jobs.Filter(states=wanted.states, queue=wanted.queue):
        return sum(states[state] for state in wanted.states or State)
    name = f"jobs {asked.filter_query}"

    def count(tx: "Tx") -> int:
        now_wanted = read_asked(params, tx.now).wanted  # the hour before now moves on
        return sum(jobs.count_matching(tx, part) for part in filters(tx, Selection(wanted=now_wanted)))

    figure = figures_of(request).get(name, count)
    return figure.value if figure is not None and isinstance(figure.value, int) else None


def _look(tx: "Tx", asked: Asked) -> Found:
    shown, has_newer, has_older = _page(tx, asked, Sorting(order=asked.order, is_reversed=asked.is_reversed))
    meant = None if asked.name_meant is None else _meant(tx, asked.name_meant)
    return Found(jobs=shown, has_newer=has_newer, has_older=has_older, meant=meant)


def _meant(tx: "Tx", name: str) -> Meant:
    """Look a name up by the indexes of ids, groups and tagged jobs, which a million jobs do not make slower."""
    tags = offers.tags(tx, name, MOST_BEGUN)
    begun = [offer for offer in offers.jobs_named(tx, (), name, MOST_BEGUN + 2) if offer.id != name]
    return Meant(
        name=name,
        job=jobs.find(tx, name),
        begun=begun[:MOST_BEGUN],
        has_more=len(begun) > MOST_BEGUN,
        groups=offers.groups(tx, name, MOST_BEGUN),
        tags=tags,
        may_be_older_tag=name not in tags and offers.has_older_tagged(tx),
    )


def _page(tx: "Tx", asked: Asked, sorting: Sorting) -> "tuple[list[Job], bool, bool]":
    """Return one page, and whether there are jobs before and behind it."""
    parts = filters(tx, Selection(wanted=asked.wanted))
    if asked.before is not None:
        found = listing.page_before(tx, parts, sorting, asked.limit + 1, read_key(asked.before))
        return found[-asked.limit :], len(found) > asked.limit, True
    after = None if asked.after is None else read_key(asked.after)
    found = listing.page(tx, parts, sorting, asked.limit + 1, after)
    return found[: asked.limit], after is not None, len(found) > asked.limit


def _newer(asked: Asked, found: Found | None) -> str | None:
    if found is None or not found.has_newer:
        return None
    return asked.page_address(before=_key_text(asked, found.jobs[0])) if found.jobs else asked.address()


def _older(asked: Asked, found: Found | None) -> str | None:
    if found is None or not found.has_older or not found.jobs:
        return None
    return asked.page_address(after=_key_text(asked, found.jobs[-1]))


def _key_text(asked: Asked, job: Job) -> str:
    sorting = Sorting(order=asked.order, is_reversed=asked.is_reversed)
    return key_text(sorting.key_of(job))


def _filter_shape(asked: Asked) -> "dict[str, object]":
    """Return which jobs are meant, as the API takes it."""
    given = {name: asked.text_of(name) for name in FILTERED}
    shape: dict[str, object] = {name: value for name, value in given.items() if value}
    return {**shape, **({"tag": asked.given["tag"]} if "tag" in asked.given else {})}
