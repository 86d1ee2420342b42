"""Output over REST: what a run printed, whole or in part. How it is followed while it comes is in following.py."""

import re
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from queuectl.errors import BadInput, NotFound, UnknownName
from queuectl.runtime.outputs import OUTPUT, STDERR, STDOUT, kept_of, not_split, pick_run, so_far_of, streams_of
from queuectl.store import attempts
from queuectl.system.output import NOT_WRITTEN
from queuectl.system.standing import Standing, whole_of
from queuectl.web.given import Given, closing_of
from queuectl.web.problems import BadRange
from queuectl.web.rest.choosing import Id, job_of
from queuectl.web.rest.documenting import documented
from queuectl.web.rest.following import Asked, Followers
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.web.stores import Stores

WHOLE, TAIL, SO_FAR = "whole", "tail", "so-far"
SNIFFED = 64 << 10
MAX_NUMBER = 1_000_000_000
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)

router = APIRouter(prefix="/jobs", tags=["jobs"])
followers = Followers()
Number = Annotated[int | None, Query(ge=1, le=MAX_NUMBER)]


_TEXT = {"schema": {"type": "string"}, "example": "a.png: no such picture\n"}
_BINARY = {"schema": {"type": "string", "format": "binary"}, "example": "\\u0089PNG"}
_PARTS = {"text/plain": _TEXT, "application/octet-stream": _BINARY}
_EVENTS = {
    "schema": {"type": "string"},
    "example": 'id: 1-5-0\nevent: output\ndata: {"run": 1, "attempt": 1, "stream": "output", "text": "a.png"}\n\n',
}


@router.get(
    "/{id}/output",
    **documented(
        about="What the run printed; with follow a stream of events",
        answer={"type": "string"},
        example="a.png: no such picture\n",
        media="text/plain",
        headers={
            "Queuectl-Output": "`whole`, `so-far` of a run under way, or `tail` where only the end is to be had here",
            "Accept-Ranges": "`bytes`",
        },
        problems=(409, 416),
        more_answers={"application/octet-stream": _BINARY, "text/event-stream": _EVENTS},
        more={206: {"description": "The part that was asked for", "content": _PARTS}},
    ),
)
def get_output_of_job(
    request: Request,
    name: Id,
    stores: Given,
    visitor: Reader,
    run: Annotated[Number, Query(description="of this run; by default the newest")] = None,
    attempt: Annotated[Number, Query(description="of the newest run with this attempt number")] = None,
    stream: Annotated[
        str | None, Query(description="stdout or stderr, of a job that keeps them apart", examples=["stderr"])
    ] = None,
    download: Annotated[bool, Query(description="as a file to save")] = False,
    follow: Annotated[
        bool, Query(description="all runs as they print, as server-sent events, until the job ended")
    ] = False,
    lines: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="with follow: begin with the last lines of the newest run")
    ] = None,
    range_: Annotated[str | None, Header(alias="Range", description="bytes=FROM-TO")] = None,
    if_range: Annotated[str | None, Header(include_in_schema=False)] = None,
    last_event_id: Annotated[str, Header(description="with follow: go on behind this event", max_length=80)] = "",
) -> Response:
    """Return what a run of a job printed, or follow it while it runs.

    With `follow`, events are `output` (run, attempt, stream, text), `wait` (what it waits for), `notice`, and `end`
    (the state it ended in). Their ids say where each ends: a client that comes back with Last-Event-ID misses nothing.
    """
    if lines is not None and not follow:
        raise BadInput("lines is for follow", hint="ask for a part with Range: bytes=-4096")
    wanted = _streams(stream)
    job, chosen = stores.read(lambda tx: _chosen(tx, name, run, attempt, is_followed=follow))
    if follow:
        if wanted is not None and not (job.split_output if chosen is None else chosen.is_split):
            raise not_split(job)
        asked = Asked(
            seq=job.seq,
            run=None if chosen is None else chosen.run,
            is_one=run is not None or attempt is not None,
            streams=wanted,
            lines=lines,
            last_event_id=last_event_id,
        )
        return followers.response(stores.target, asked, visitor.name, closing_of(request))
    assert chosen is not None
    printed, extent = _printed(stores, job, chosen, wanted)
    name = f"{job.id}-run{chosen.run}.log" if download else ""
    return _answer(printed, extent, None if if_range else range_, name)


def _streams(stream: str | None) -> "frozenset[str] | None":
    if stream is None or stream == OUTPUT:
        return None
    if stream not in (STDOUT, STDERR):
        raise UnknownName.among("stream", stream, [STDOUT, STDERR])
    return frozenset({stream})


def _chosen(
    tx: "Tx", name: str, run: int | None, attempt: int | None, *, is_followed: bool
) -> "tuple[Job, Attempt | None]":
    job = job_of(tx, name)
    if run is not None and attempt is not None:
        raise BadInput("give either attempt or run")
    runs = attempts.runs_of(tx, job)
    if run is not None or attempt is not None:
        return job, pick_run(job, runs, attempt=attempt, run=run)
    if not runs and not is_followed:
        raise NotFound(f"job {job.id} is {job.state} and has not run yet", hint="follow it with: ?follow=true")
    return job, runs[-1] if runs else None


def _printed(stores: "Stores", job: "Job", run: "Attempt", wanted: "frozenset[str] | None") -> tuple[Standing, str]:
    """Return what a run printed, from its file where this host has it, and how much of all of it that is."""
    printed, extent = Standing(()), WHOLE if run.finished_at is not None else SO_FAR
    for stream in streams_of(job, run, wanted):
        if run.finished_at is None:
            printed += so_far_of(stores.target, stores.database, run, stream)
            continue
        kept = kept_of(stores.target, stores.database, run, stream)
        is_there = kept.file is not None and not kept.tail.startswith(NOT_WRITTEN)
        if not is_there and kept.total_bytes > len(kept.tail):
            extent = TAIL
        printed += whole_of(kept)
    return printed, extent


def _answer(printed: Standing, extent: str, asked: str | None, name: str) -> Response:
    """Return all of an output, or the part that is asked for; with a name it is a file to save."""
    size = printed.size
    part = _part(asked, size)
    headers = {
        "Accept-Ranges": "bytes",
        "Queuectl-Output": extent,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    if name:
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
    start, end = part or (0, size)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    status = 200 if part is None else 206
    return StreamingResponse(printed.read(start, end), status, headers, media_type=_media(printed))


def _part(asked: str | None, size: int) -> tuple[int, int] | None:
    """Return from where to where is asked for; None means all of it, as where several parts, or none, are named."""
    found = None if asked is None else _RANGE.fullmatch(asked.strip())
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found[1], found[2]
    if not first:
        if not size and int(last):
            return None  # the end of nothing is nothing, and no error: readers of a log begin with its end
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise BadRange(f"there is nothing in {asked!r}: the output has {size} bytes", size=size)
    return start, end


def _media(printed: Standing) -> str:
    """Return text where the beginning is text, else octets."""
    begin = b"".join(printed.read(0, SNIFFED))
    try:
        begin.decode()
    except UnicodeDecodeError as error:
        if error.start < len(begin) - 3 or error.reason != "unexpected end of data":
            return "application/octet-stream"
    return "text/plain; charset=utf-8"
