"""Landing: the jobs of another store, written into this one. What they wait for is in rejoining.py."""

from queuectl.actions.rejoining import Rejoining
from queuectl.errors import Refused
from queuectl.model.attempt import Attempt
from queuectl.model.job import Job
from queuectl.model.limits import LIMIT, names_in
from queuectl.model.linechecks import MAX_NUMBER
from queuectl.model.states import FINAL, State
from queuectl.model.transfer import Extras
from queuectl.model.value import Value
from queuectl.store import adding, attempts, groups, inputs, jobs, queues, unique_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from queuectl.store.database import Tx

    Spooled = Job | Attempt | Extras

NAMED = 5


class Rules(Value):
    """What to do with jobs whose number, id or key is taken, and with settings."""

    renumber: bool = False
    """Give every job a fresh number; ids people gave, and unique keys, must be free all the same."""
    skip_existing: bool = False
    """Pass by a job that is there already: one of its id, one that has its unique key, or the same one under its
    number where it has no id.

    A job with an id whose number alone is taken gets a fresh number; one without an id refuses the whole file.
    """
    settings: bool = False
    """Store the settings of the file also where the store has some of its own."""


class Places(Value):
    """What becomes of the jobs of one chunk whose place is taken, by their number in the file."""

    there: "dict[int, int]"
    """Passed by; the number of the job that is there."""
    moved: frozenset[int]
    """Given a fresh number."""
    clashes: tuple[str, ...]
    """Why the others refuse the whole file, one sentence each."""


def places_of(tx: "Tx", chunk: "list[Spooled]", rules: Rules) -> Places:
    """Find which jobs of a chunk find their number, their id or their key taken."""
    copies = _jobs_of(chunk)
    by_id = adding.numbers_of(tx, [job.given_id for job in copies if job.given_id is not None])
    by_key = unique_keys.holders(tx, [job.unique_key for job in copies if job.unique_key and job.state not in FINAL])
    holders = {} if rules.renumber else {job.seq: job for job in jobs.by_seqs(tx, [job.seq for job in copies])}
    there, moved, clashes = {}, set(), []
    for job in copies:
        holder = holders.get(job.seq)
        is_same = holder is not None and _is_same(job, holder)
        keeper = by_key.get(job.unique_key or "") if job.state not in FINAL else None
        if job.given_id not in by_id and holder is None and keeper is None:
            continue
        if rules.skip_existing and job.given_id in by_id:
            there[job.seq] = by_id[job.given_id]
        elif rules.skip_existing and is_same:
            there[job.seq] = job.seq
        elif rules.skip_existing and keeper is not None:
            there[job.seq] = keeper
        elif rules.skip_existing and job.given_id is not None:
            moved.add(job.seq)
        elif job.given_id not in by_id and holder is None:
            clashes.append(f"the key {job.unique_key!r} is taken (by job {keeper})")
        else:
            clashes.append(_clash(job, None if job.given_id in by_id else holder))
    return Places(there=there, moved=frozenset(moved), clashes=tuple(clashes))


def _is_same(job: Job, other: Job) -> bool:
    """Whether two jobs of one number are one: numbers are given out by every store anew, so they tell nothing."""

    def marks(each: Job) -> object:
        return each.given_id, each.created_at, each.command, each.argv_list

    return marks(job) == marks(other)


def _clash(job: Job, holder: Job | None) -> str:
    if holder is None:
        return f"id {job.given_id!r} is taken"
    if _is_same(job, holder):
        return f"job {job.seq} is there already"
    by = "another job" if holder.given_id is None else f"job {holder.given_id!r}"
    return f"number {job.seq} is taken (by {by})"


def _jobs_of(chunk: "list[Spooled]") -> list[Job]:
    return [each for each in chunk if isinstance(each, Job)]


class Landing:
    """Writes jobs and runs chunk by chunk; a run goes where its job went. What they wait for is written last."""

    def __init__(
        self, tx: "Tx", rules: Rules, *, is_empty: bool, new_groups: "Collection[str]", parents: frozenset[int]
    ) -> None:
        self._tx = tx
        self._rules = rules
        self._is_empty = is_empty
        self._new_groups = new_groups
        """Groups that came in with this file, and so have counted their jobs."""
        self._lanes: dict[tuple[str, str], int] = {}
        self._number: int | None = None
        self._state = State.PENDING
        self._key: str | None = None
        self._joined: dict[str, list[int]] = {}
        self._rejoining = Rejoining(tx, parents)
        self.jobs = self.runs = self.skipped = self.moved = self.waiting_again = self.first_seq = self.last_seq = 0
        self.skipped_ids: list[str] = []
        self.limit_names: set[str] = set()

    @property
    def held(self) -> list[str]:
        """The jobs that are held because some of those they waited for did not come."""
        return self._rejoining.held

    def write(self, chunk: "list[Spooled]") -> None:
        """Write one chunk; the first runs in it, or what stands beside a job, may belong to the last job before it."""
        copies, places = self._kept(chunk)
        numbers = self._numbers(copies, places.moved)
        placed = {job.seq: self._placed(job, numbers[job.seq]) for job in copies}
        self._rejoining.note({**numbers, **places.there})
        if copies:
            adding.insert_as_they_are(self._tx, list(placed.values()))
        kept_runs: list[Attempt] = []
        kept_inputs: list[tuple[int, bytes]] = []
        for each in chunk:
            if isinstance(each, Job):
                self._begin(placed.get(each.seq))
            elif self._number is not None and isinstance(each, Extras):
                self._put_beside(each)
                if each.input is not None:
                    kept_inputs.append((self._number, each.input))
            elif self._number is not None and isinstance(each, Attempt):
                kept_runs.append(_moved_run(each, self._number))
        if kept_runs:
            attempts.insert_as_they_are(self._tx, kept_runs)
        if kept_inputs:
            inputs.insert(self._tx, kept_inputs)
        self.jobs += len(copies)
        self.runs += len(kept_runs)
        if copies:
            self.first_seq = min(self.first_seq or MAX_NUMBER, *numbers.values())
            self.last_seq = max(self.last_seq, *numbers.values())

    def finish(self) -> None:
        """Write who waits for whom, and let follow what comes of it, once all jobs are there."""
        for name, (number, unfinished) in sorted(self._joined.items()):
            groups.take_in(self._tx, name, number, is_open=unfinished > 0)
        self._rejoining.write()

    def _begin(self, job: Job | None) -> None:
        """Go on with a job that was written, or with one that was passed by."""
        self._number = None if job is None else job.seq
        if job is None:
            return
        self._state, self._key = State(job.state), job.unique_key
        if job.group_name is not None and job.group_name not in self._new_groups:
            counted = self._joined.setdefault(job.group_name, [0, 0])
            counted[0] += 1
            counted[1] += self._state not in FINAL

    def _put_beside(self, extras: Extras) -> None:
        """Tie a job that was written to those it runs after, and give it the key it had."""
        assert self._number is not None
        if extras.after:
            self._rejoining.add(self._number, extras.after)
        is_held = self._state not in FINAL
        if self._key is None or not (is_held or extras.unique_until is not None):
            return
        until = extras.unique_until
        has_it = unique_keys.take_as_it_was(self._tx, self._key, self._number, is_held=is_held, expires_at=until)
        if is_held and not has_it:
            raise Refused(f"the key {self._key!r} is taken, since just now", hint="import again; nothing was written")

    def _kept(self, chunk: "list[Spooled]") -> tuple[list[Job], Places]:
        """Return the jobs that come in, and what becomes of those whose place is taken."""
        copies = _jobs_of(chunk)
        if self._is_empty:
            return copies, Places(there={}, moved=frozenset(), clashes=())
        places = places_of(self._tx, chunk, self._rules)
        if places.clashes:
            raise Refused(f"{places.clashes[0]}, since just now", hint="import again; nothing was written")
        passed = [job.id for job in copies if job.seq in places.there]
        self.skipped += len(passed)
        self.skipped_ids += passed[: NAMED - len(self.skipped_ids)]
        self.moved += len(places.moved)
        return [job for job in copies if job.seq not in places.there], places

    def _numbers(self, copies: list[Job], moved: frozenset[int]) -> dict[int, int]:
        """Return the number each job gets, by its number in the file."""
        fresh = [job.seq for job in copies if self._rules.renumber or job.seq in moved]
        numbers = {job.seq: job.seq for job in copies}
        if fresh:
            numbers.update(zip(fresh, self._tx.dialect.reserve_seqs(len(fresh)), strict=True))
        return numbers

    def _placed(self, job: Job, number: int) -> Job:
        lane = (job.queue, job.needs or "")
        if lane not in self._lanes:
            self._lanes[lane] = queues.lane_of(self._tx, *lane)
        if job.state not in FINAL:
            self.limit_names.update(names_in(job.limit_list, LIMIT))
        placed = job.replace(seq=number, lane_id=self._lanes[lane], state=job.state.value)
        if job.parked_for is not None:
            # Ready, and not parked: whoever held its limit may not be here to let it go. A claim parks it if need be.
            return placed.replace(state=State.PENDING.value, parked_for=None)
        if job.state is not State.PROCESSING:
            return placed
        stopped = placed.replace(worker_id=None, cancel_requested=0, units=None, updated_at=self._tx.now)
        if job.cancel_requested:  # as a rescue does: what somebody wanted stopped is not begun again
            now = self._tx.now
            self._rejoining.ended.append(number)
            return stopped.replace(state=State.CANCELLED.value, finished_at=now, error="cancelled while running")
        self.waiting_again += 1
        return stopped.replace(state=State.PENDING.value)


def _moved_run(run: Attempt, number: int) -> Attempt:
    """Return a run under the number of its job here; output files are named by number, so a new one has none."""
    outcome = None if run.outcome is None else run.outcome.value
    if number == run.job_seq:
        return run.replace(outcome=outcome)
    return run.replace(outcome=outcome, job_seq=number, output_file=None, stderr_file=None)
