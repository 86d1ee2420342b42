"""Following: the output of a job as server-sent events. The following itself is runtime/follow.py's, in a thread."""

import asyncio
import codecs
import json
import os
import re
import threading

from fastapi.responses import StreamingResponse

from queuectl.actions.connect import connect
from queuectl.actions.explain import why_waiting
from queuectl.errors import BadInput, QueuectlError
from queuectl.model.value import Value
from queuectl.runtime.follow import follow
from queuectl.runtime.outputs import STDERR
from queuectl.store import jobs
from queuectl.web.crowd import Crowd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codecs import IncrementalDecoder
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import Send

    from queuectl.actions.connect import Target
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.runtime.outputs import Chunk
    from queuectl.store.database import Database

MOST = 64
"""Each has a thread and a connection of its own."""
MOST_EACH = 32
BEAT_S = 15.0
AHEAD = 32
"""So many events are made before the client has taken them in."""
RETRY_MS = 2000
_PLACE = re.compile(r"(\d{1,15})-(\d{1,18})-(\d{1,18})", re.ASCII)


class Asked(Value):
    """What is followed: a job, from a run on or one run alone, and what was seen of it already."""

    seq: int
    run: int | None
    is_one: bool
    streams: "frozenset[str] | None"
    lines: int | None
    last_event_id: str

    @property
    def place(self) -> tuple[int, int, int] | None:
        """The run, and how much of its output and its stderr was seen."""
        found = _PLACE.fullmatch(self.last_event_id)
        if found is None:
            if self.last_event_id:
                raise BadInput(
                    f"bad Last-Event-ID {self.last_event_id!r}", hint="send the id of the last event as it came"
                )
            return None
        return int(found[1]), int(found[2]), int(found[3])


class Stream(StreamingResponse):
    """A stream that ends with its client, and not when somebody collects the garbage."""

    async def stream_response(self, send: "Send") -> None:
        """Send it, and whatever comes in between, let go of what makes it."""
        try:
            await super().stream_response(send)
        finally:
            await self.body_iterator.aclose()  # type: ignore[attr-defined]


class Followers(Crowd):
    """Those who follow outputs now; of too many the next is turned away."""

    def response(self, target: "Target", asked: Asked, who: str, closing: asyncio.Event) -> StreamingResponse:
        """Return the stream of an output."""
        follower = _Follower(target, asked)
        self.refuse_more(who, "outputs are followed", most=MOST, each=MOST_EACH)
        told = self._told(follower, who, closing)
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        return Stream(told, media_type="text/event-stream", headers=headers)

    async def _told(self, follower: "_Follower", who: str, closing: asyncio.Event) -> "AsyncIterator[str]":
        with self.place(who):  # not before: a client that left at once never comes here
            async for event in follower.events(closing):
                yield event


class _Follower:
    """Follows one output in a thread and hands its events over, no more at a time than are taken."""

    def __init__(self, target: "Target", asked: Asked) -> None:
        self._target = target
        self._asked = asked
        self._skip = asked.place
        self._room = threading.Semaphore(AHEAD)
        self._is_left = False
        self._events: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def events(self, closing: asyncio.Event) -> "AsyncIterator[str]":
        """Yield events until the job has ended, the client left or the server closes."""
        self._loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        thread = threading.Thread(target=self._follow, args=(reader,), daemon=True, name="follower")
        thread.start()
        ending = self._loop.create_task(closing.wait())
        try:
            yield f"retry: {RETRY_MS}\n\n"
            while not closing.is_set():
                waiting = self._loop.create_task(self._events.get())
                await asyncio.wait({waiting, ending}, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    if not closing.is_set():
                        yield ": beat\n\n"
                    continue
                event = waiting.result()
                if event is None:
                    return
                self._room.release()
                yield event
        finally:
            self._is_left = True
            ending.cancel()
            self._room.release()
            os.close(writer)  # the thread sees the end of the pipe and goes

    def _follow(self, reader: int) -> None:
        database = None
        try:
            database = connect(self._target)
            self._tell_all(database, reader)
        except QueuectlError as error:
            self._say("notice", {"text": error.message})
        finally:
            if database is not None:
                database.close()
            os.close(reader)
            self._put(None)

    def _tell_all(self, database: "Database", reader: int) -> None:
        asked = self._asked
        run, *seen = self._skip or (0, 0, 0)
        begins_with_chosen = asked.is_one or asked.lines is not None
        chunks = follow(
            self._target,
            database,
            asked.seq,
            from_run=run or (asked.run if asked.run is not None and begins_with_chosen else 1),
            until_run=asked.run if asked.is_one else None,
            lines=None if run else asked.lines,
            streams=asked.streams,
            on_wait=lambda job: self._say_wait(database, job),
            on_elsewhere=self._say_elsewhere,
            on_cut=self._say_cut,
            reader_fd=reader,
        )
        teller = _Teller(run, seen)
        try:
            for chunk in chunks:
                for event in teller.events(chunk):
                    self._offer(event)
                if self._is_left:
                    return
        finally:
            chunks.close()  # type: ignore[attr-defined]
        for event in teller.rest():
            self._offer(event)
        self._say_end(database)

    def _say_wait(self, database: "Database", job: "Job") -> None:
        why = database.read(lambda tx: why_waiting(tx, job))
        self._say("wait", {"state": job.state.value, "waits_for": why.reason if why else "its turn"})

    def _say_elsewhere(self, run: "Attempt") -> None:
        self._say("notice", {"text": f"it runs on {run.host}; what it prints is shown when the run ends"})

    def _say_cut(self, run: "Attempt", stream: str) -> None:
        self._say("notice", {"text": f"the whole {stream} of run {run.run} is not on this host; its end follows"})

    def _say_end(self, database: "Database") -> None:
        job = database.read(lambda tx: jobs.get(tx, self._asked.seq))
        shape = {"state": None, "error": "it was deleted"} if job is None else {"state": job.state, "error": job.error}
        self._say("end", shape)

    def _say(self, kind: str, shape: "Mapping[str, object]") -> None:
        self._offer(f"event: {kind}\ndata: {json.dumps(shape)}\n\n")

    def _offer(self, event: str) -> None:
        self._room.acquire()
        if self._is_left:
            self._room.release()
            return
        self._put(event)

    def _put(self, event: str | None) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:
            pass  # the server has closed


class _Teller:
    """Makes events of chunks: whole characters, each event with where it ends, and nothing that was seen already."""

    def __init__(self, run: int, seen: "list[int]") -> None:
        self._run = run
        self._skip = {False: seen[0], True: seen[1]}
        self._given = {False: 0, True: 0}
        self._decoders: dict[bool, IncrementalDecoder] = {}
        self._last: dict[bool, Chunk] = {}

    def events(self, chunk: "Chunk") -> "list[str]":
        """Return the events of a chunk; the first of a run ends the run before."""
        told = []
        if chunk.run != self._run:
            told = self.rest()
            self._run = chunk.run
            self._skip = {False: 0, True: 0}
            self._given = {False: 0, True: 0}
            self._decoders, self._last = {}, {}
        is_stderr = chunk.stream == STDERR
        skipped = min(len(chunk.data), self._skip[is_stderr])
        self._skip[is_stderr] -= skipped
        self._given[is_stderr] += len(chunk.data)
        if is_stderr not in self._decoders:
            self._decoders[is_stderr] = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._last[is_stderr] = chunk
        return [*told, *self._event(chunk, self._decoders[is_stderr].decode(chunk.data[skipped:]))]

    def rest(self) -> "list[str]":
        """Return the events of what stands at the end of a run and is no whole character."""
        return [
            event
            for is_stderr, chunk in self._last.items()
            for event in self._event(chunk, self._decoders[is_stderr].decode(b"", final=True))
        ]

    def _event(self, chunk: "Chunk", text: str) -> "list[str]":
        if not text:
            return []
        shape = {"run": chunk.run, "attempt": chunk.attempt, "stream": chunk.stream, "text": text}
        out, err = (self._given[each] - self._kept_back(each) for each in (False, True))
        return [f"id: {self._run}-{out}-{err}\nevent: output\ndata: {json.dumps(shape)}\n\n"]

    def _kept_back(self, is_stderr: bool) -> int:
        """Return how many bytes of a character that is not whole yet were taken and not told."""
        decoder = self._decoders.get(is_stderr)
        return 0 if decoder is None else len(decoder.getstate()[0])
