"""Jobs over REST: adding, listing and looking at them. What is done to them is in jobacts.py."""

import hashlib
import os
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse

from queuectl.actions.graphs import DEFAULT_LIMIT as DEFAULT_NODES
from queuectl.actions.graphs import graph_around
from queuectl.actions.once import Answered, enter_once
from queuectl.actions.selection import filters
from queuectl.actions.shapes import entry_shape, standing_shape
from queuectl.actions.standing import standing
from queuectl.actions.submit import Fate, enter
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.graph import Side, graph_shape
from queuectl.model.job import JobSpec
from queuectl.model.shapes import attempt_shape, job_shape
from queuectl.model.spec import spec_from_fields
from queuectl.runtime.known import known_shape, look_at
from queuectl.runtime.outputs import measured
from queuectl.store import attempts, jobs, listing
from queuectl.web.given import Given
from queuectl.web.problems import BadRequest, WrongMedia
from queuectl.web.rest import jobexamples as examples
from queuectl.web.rest.asking import JSON, LINES, Fields, Raw, media_of, parse_json
from queuectl.web.rest.choosing import Choice, Id, Sorted, cursor_text, job_of, read_cursor
from queuectl.web.rest.documenting import documented, listed, ref
from queuectl.web.rest.masking import seen_by
from queuectl.web.visitor import Reader, Submitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.web.stores import Stores
    from queuectl.web.visitor import Visitor

    Shape = dict[str, object]

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000
MAX_NODES = 10_000
MAX_KEY = 255
REPLAYED = {"Idempotency-Replayed": "`true` where the answer is that of an earlier request with the same key"}

router = APIRouter(prefix="/jobs", tags=["jobs"])
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="any text of your own: the same request again, within a day, adds nothing and answers the same",
        min_length=1,
        max_length=MAX_KEY,
    ),
]


@router.post(
    "",
    **documented(
        status=201,
        about="The job was added",
        answer="enqueue",
        example=examples.ADDED,
        headers={"Location": "where the job is", **REPLAYED},
        body="job-request",
        body_example=examples.JOB,
        problems=(409,),
        more={200: {"description": "Another job has its unique key: the id is of that one", **examples.ATTACHED}},
    ),
)
def add_job(
    request: Request, fields: Fields, raw: Raw, stores: Given, visitor: Submitter, key: IdempotencyKey = None
) -> JSONResponse:
    """Add a job, as `queuectl enqueue '{...}'` does."""
    specs = [spec_from_fields(fields, wall_ms(), JobSpec())]
    answered = _enter(stores, visitor, specs, key, _fingerprint(request, raw))
    [entry] = answered.entries
    place = f"{request.scope.get('root_path', '')}/api/v1/jobs/{entry['id']}"
    status = 201 if entry["result"] == Fate.ADDED else 200
    return JSONResponse(entry, status, {"Location": place, **_replayed(answered)})


@router.post(
    "/bulk",
    **documented(
        status=201,
        about="All were added, in the order given",
        answer=listed("jobs", "enqueue"),
        example={"jobs": [examples.ADDED]},
        headers=REPLAYED,
        body={"type": "array", "minItems": 1, "items": ref("job-request")},
        body_example=[examples.JOB],
        more_bodies={LINES[0]: {"schema": {"type": "string"}, "example": '{"command": "true"}\n'}},
        problems=(409,),
    ),
)
def add_jobs(request: Request, raw: Raw, stores: Given, visitor: Submitter, key: IdempotencyKey = None) -> JSONResponse:
    """Add many jobs, all or none: a JSON array of jobs, or one job per line (application/x-ndjson), up to 32 MB.

    Jobs may run after each other by the ids they are given here. The first that is bad is named by its line or place.
    """
    specs = list(_specs(request, raw))
    if not specs:
        raise BadInput("no jobs are given", hint='write e.g. [{"command": "true"}]')
    answered = _enter(stores, visitor, specs, key, _fingerprint(request, raw))
    return JSONResponse({"jobs": answered.entries}, 201, _replayed(answered))


@router.get(
    "",
    **documented(
        answer={
            "type": "object",
            "properties": {
                "jobs": {"type": "array", "items": ref("list")},
                "next": {"type": ["string", "null"], "description": "the cursor of the next page; null on the last"},
                "total": {"type": "integer", "minimum": 0, "description": "how many match, where count was asked for"},
            },
            "required": ["jobs", "next"],
            "additionalProperties": False,
        },
        example={"jobs": [examples.LISTED], "next": "WyJhZGRlZCIsIDAsIDEyLCAxMl0"},
        problems=(404,),
    ),
)
def list_jobs(
    stores: Given,
    visitor: Reader,
    choice: Choice,
    sorting: Sorted,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="at most so many")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the page before", max_length=500)] = None,
    count: Annotated[bool, Query(description="also answer how many match, exactly")] = False,
) -> JSONResponse:
    """List jobs, newest first, a page at a time; with every filter of `queuectl list`."""
    after = read_cursor(cursor, sorting)

    def look(tx: "Tx") -> "tuple[list[Job], int | None]":
        parts = filters(tx, choice)
        total = sum(jobs.count_matching(tx, part) for part in parts) if count else None
        return listing.page(tx, parts, sorting, limit + 1, after), total

    found, total = stores.read(look)
    is_more = len(found) > limit
    shape: Shape = {
        "jobs": [seen_by(visitor, job_shape(job)) for job in found[:limit]],
        "next": cursor_text(sorting, sorting.key_of(found[limit - 1])) if is_more else None,
    }
    return JSONResponse(shape if total is None else {**shape, "total": total})


@router.get("/{id}", **documented(answer="show", example=examples.SHOWN))
def get_job(name: Id, stores: Given, visitor: Reader) -> JSONResponse:
    """Show a job with its runs, what it runs after and why it waits, as `queuectl show --json` does."""
    shape = stores.read(lambda tx: known_shape(look_at(stores.target, tx, job_of(tx, name))))
    return JSONResponse(seen_by(visitor, shape))


@router.get("/{id}/attempts", **documented(answer=listed("runs", "attempt"), example={"runs": [examples.RUN]}))
def list_attempts_of_job(name: Id, stores: Given, _visitor: Reader) -> JSONResponse:
    """List the runs of a job, the newest last; the one under way has no outcome yet."""

    def look(tx: "Tx") -> "list[Shape]":
        runs = attempts.runs_of(tx, job_of(tx, name))
        return [attempt_shape(run) for run in measured(stores.target, tx, runs)]

    return JSONResponse({"runs": stores.read(look)})


@router.get("/{id}/why", **documented(answer="why", example=examples.WHY))
def explain_job(name: Id, stores: Given, _visitor: Reader) -> JSONResponse:
    """Say why a job waits: every gate, open or shut, what would change it, and the place in the line."""
    return JSONResponse(stores.read(lambda tx: standing_shape(standing(tx, job_of(tx, name)))))


@router.get("/{id}/graph", **documented(answer="graph", example=examples.GRAPH))
def graph_job(
    name: Id,
    stores: Given,
    _visitor: Reader,
    side: Annotated[Side, Query(description="what it runs after (up), what runs after it (down), or both")] = Side.BOTH,
    limit: Annotated[int, Query(ge=1, le=MAX_NODES, description="at most so many jobs")] = DEFAULT_NODES,
) -> JSONResponse:
    """Show the jobs that hang together with one, and how."""
    return JSONResponse(stores.read(lambda tx: graph_shape(graph_around(tx, job_of(tx, name), side, limit))))


def _enter(
    stores: "Stores", visitor: "Visitor", specs: "Sequence[JobSpec]", key: str | None, fingerprint: str
) -> Answered:
    if key is None:
        entries = enter(stores.database, specs, who=visitor.name, environ=os.environ)
        return Answered(entries=[entry_shape(entry) for entry in entries], is_replayed=False)
    if not key.isprintable() or not key.isascii() or key.strip() != key:
        raise BadInput("bad Idempotency-Key", hint=f"1 to {MAX_KEY} printable characters of ASCII")
    return enter_once(stores.database, specs, key=key, fingerprint=fingerprint, who=visitor.name, environ=os.environ)


def _replayed(answered: Answered) -> "dict[str, str]":
    return {"Idempotency-Replayed": "true"} if answered.is_replayed else {}


def _fingerprint(request: Request, raw: bytes) -> str:
    return hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + raw).hexdigest()


def _specs(request: Request, raw: bytes) -> "Iterator[JobSpec]":
    """Yield the jobs of a body; the first that is bad is told by its line, or its place from 1."""
    now_ms, base = wall_ms(), JobSpec()
    for where, given in _given(request, raw):
        try:
            if not isinstance(given, dict):
                raise BadInput("a job is a JSON object", hint='write e.g. {"command": "true"}')
            yield spec_from_fields(given, now_ms, base)
        except BadInput as error:
            hint = f"{error.hint}; nothing was added" if error.hint else "nothing was added"
            raise BadInput(f"{where}: {error.message}", hint=hint) from None


def _given(request: Request, raw: bytes) -> "Iterator[tuple[str, object]]":
    media = media_of(request)
    if media == JSON:
        value = parse_json(raw) if raw.strip() else []
        if not isinstance(value, list):
            raise BadInput("the body is to be an array of jobs", hint=f"one job per line is {LINES[0]}")
        yield from ((f"job {number}", each) for number, each in enumerate(value, start=1))
        return
    if media not in LINES:
        hint = f"send Content-Type: {JSON} or {LINES[0]}"
        raise WrongMedia(f"the body is to be JSON, but its Content-Type is {media or 'missing'}", hint=hint)
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            try:
                yield f"line {number}", parse_json(line.strip())
            except (BadRequest, BadInput) as error:
                raise type(error)(f"line {number}: {error.message}", hint="nothing was added") from None
