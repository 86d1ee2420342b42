"""Settle and claim: what a worker writes. One transaction ends the last jobs and takes the next."""

from queuectl import clock
from queuectl.actions.connect import working_settings
from queuectl.actions.endings import follow, has_ties, hold_groups
from queuectl.model.attempt import Report
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.model.verdict import SUCCESS, Outcome, judge
from queuectl.store import attempts, claims, completing, config, jobs, moves, parking, plain_claims
from queuectl.store.lanes import all_lanes, narrow_queues
from queuectl.store.outset import outset, question
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import Claim, Job
    from queuectl.store.database import Database, Tx
    from queuectl.store.dialect import Row

WAKING = frozenset({State.PENDING, State.SCHEDULED, State.FAILED})
NOTHING = claims.Taken()
REHEARSALS = 12


class Holder(Value):
    """The worker that claims and settles: who and what it may take, where, or for which one job."""

    taker: Taker
    host: str
    only: int | None = None

    @property
    def worker_id(self) -> str:
        """Who it is."""
        return self.taker.worker_id


class Step(Value):
    """What one turn of a worker brought."""

    is_alive: bool
    stop: str = ""
    settled: "tuple[Job, ...]" = ()
    lost: "tuple[Claim, ...]" = ()
    claimed: "tuple[Claim, ...]" = ()
    next_run_at: int | None = None
    """When the next job is due that may not run yet: by its time, or by the rate of its queue."""
    is_cut_short: bool = False
    """Whether something may be left that was out of reach for a moment: look again soon."""
    stored: "Mapping[str, str] | None" = None
    """The settings of the store, where they were asked for."""
    now: int = 0


def settle_and_claim(
    database: "Database",
    holder: Holder,
    ended: "Sequence[tuple[Claim, Report]]",
    free: int,
    environ: "Mapping[str, str]",
    *,
    is_idle: bool = True,
    with_settings: bool = False,
    returned: "Sequence[Claim]" = (),
    ahead: int = 0,
) -> Step:
    """Settle the runs that ended and take up to `free` ready jobs, all in one transaction.

    `is_idle` says that the worker will run nothing but what it takes now, `returned` are claims that were never begun,
    `ahead` is how many more jobs to take than can begin at once. A worker that was told to stop settles but takes
    nothing; one that was given up for dead writes nothing at all.
    """

    def work(tx: "Tx") -> Step:
        found = outset(tx, holder.worker_id)
        if found is None:
            return Step(is_alive=False, lost=tuple(claim for claim, _ in ended), now=tx.now)
        kept = [(claim, Report(outcome=Outcome.handed_back())) for claim in put_back(tx, returned)]
        settled, lost = _settle(tx, holder, [*ended, *kept], environ)
        taken, next_run_at = NOTHING, None
        if free + ahead > 0 and not found.stop:
            is_due = found.is_due or any(job.state in WAKING for job in settled)
            moved = moves.make_due(tx) if is_due else 0
            taken = _claim(tx, holder, free, found.lanes, is_idle=is_idle, ahead=ahead)
            if len(taken.claims) < free:
                next_run_at = _first(jobs.next_run_at(tx), taken.opens_at)
            if moved > len(taken.claims):
                tx.wake()  # more became ready than this worker takes
            if taken.buried:
                follow(tx, taken.buried)
        _announce(tx, settled, taken)
        return Step(
            is_alive=True,
            stop=found.stop,
            settled=tuple(settled),
            lost=tuple(lost),
            claimed=taken.claims,
            next_run_at=next_run_at,
            is_cut_short=taken.is_cut_short,
            stored=config.stored(tx) if with_settings else None,
            now=tx.now,
        )

    return database.write(work, question(database.dialect, holder.worker_id))


def rehearse(database: "Database", holder: Holder, slots: int) -> None:
    """Claim from nowhere until a server has its plans for it: whoever adds the next job should not wait for them.

    psycopg has a statement prepared when it has seen it five times, and the server keeps a plan after five more.
    """
    if database.dialect.is_local:
        return

    def work(tx: "Tx") -> None:
        if outset(tx, holder.worker_id) is not None:
            plain_claims.rehearse(tx, holder.worker_id, slots)

    for _ in range(REHEARSALS):
        database.write(work, question(database.dialect, holder.worker_id))


def is_drained(database: "Database", holder: Holder) -> bool:
    """Whether nothing the holder may take is ready, runs anywhere, or waits for a retry.

    One that is there for a single job stays until that has ended: its time may come, or another may hand it back.
    """
    if holder.only is not None:
        job = database.read(lambda tx: jobs.get(tx, holder.only or 0))
        return job is None or job.state in FINAL

    def look(tx: "Tx") -> bool:
        served = [lane.id for lane in all_lanes(tx) if lane.paused_at is None and holder.taker.serves(lane)]
        return not jobs.has_unfinished(tx, served)

    return database.read(look)


def put_back(tx: "Tx", returned: "Sequence[Claim]") -> "list[Claim]":
    """Put jobs that were never begun back in the line; return those that could not be: cancelled meanwhile, or lost."""
    if returned:
        tx.wake()
    return [claim for claim in sorted(returned, key=lambda claim: claim.job.seq) if not moves.put_back(tx, claim)]


def can_wait(claim: "Claim", report: "Report") -> bool:
    """Whether nothing follows from the end of a run but that it is on record: a note of it will do for a moment."""
    return report.is_short_success and is_free(claim.job)


def is_free(job: "Job") -> bool:
    """Whether nobody waits for what it holds or for its end, and success is what it is for any other."""
    return job.limits is None and job.policy is None and not has_ties(job)


def _claim(tx: "Tx", holder: Holder, free: int, lanes: "list[Row]", *, is_idle: bool, ahead: int) -> claims.Taken:
    if holder.only is not None:
        return claims.claim_only(tx, holder.worker_id, holder.only) if is_idle else NOTHING
    return claims.claim(tx, holder.taker, free, lanes, is_idle=is_idle, ahead=ahead)


def _first(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _announce(tx: "Tx", settled: "Sequence[Job]", taken: claims.Taken) -> None:
    if settled:
        _wake_for_room(tx, settled, taken)
    if settled or taken.claims:
        tx.tell()


def _wake_for_room(tx: "Tx", settled: "Sequence[Job]", taken: claims.Taken) -> None:
    """Tell others when a queue that lets only so many run, or a resource, has more room than this worker takes."""
    narrow = narrow_queues(tx) if taken.narrow is None else taken.narrow
    if not narrow and not any(job.needs for job in settled):
        return
    rooms: dict[str, int] = {}
    for job, by in (*((job, 1) for job in settled), *((claim.job, -1) for claim in taken.claims)):
        for gate in (*((job.queue,) if job.queue in narrow else ()), *((f"needs:{job.needs}",) if job.needs else ())):
            rooms[gate] = rooms.get(gate, 0) + by
    if any(room > 0 for room in rooms.values()):
        tx.wake()


def _settle(
    tx: "Tx", holder: Holder, ended: "Sequence[tuple[Claim, Report]]", environ: "Mapping[str, str]"
) -> "tuple[list[Job], list[Claim]]":
    settled: list[Job] = []
    lost: list[Claim] = []
    if not ended:
        return settled, lost
    if limited := [claim.job for claim, _ in ended if claim.job.limits is not None]:
        tx.lock(key for job in limited for key in job.limit_list)
    if grouped := {claim.job.group_name for claim, _ in ended if claim.job.group_name is not None}:
        hold_groups(tx, grouped)
    if len(ended) > 1:
        ended = sorted(ended, key=lambda pair: pair[0].job.seq)  # one order for all: no deadlocks
    if len(short := [pair for pair in ended if can_wait(*pair)]) > 1:
        now, now_s = tx.now, clock.boot_s()
        own = [attempts.own_of(claim, report, now, now_s) for claim, report in short]
        shared = attempts.shared_of(attempts.record_of(*short[0], holder.host, now, now_s))
        settled = completing.complete_many(tx, [claim for claim, _ in short], own, shared)
        done = {job.seq for job in settled}
        ended = [pair for pair in ended if pair[0].job.seq not in done]
    for claim, report in ended:
        job = settle(tx, claim, report, holder.host, environ)
        if job is None:
            lost.append(claim)
            continue
        settled.append(job)
        if job.state in WAKING:
            tx.wake()  # this worker may be busy when the retry is due; an idle one must know of it
    return settled, lost


def settle(tx: "Tx", claim: "Claim", report: "Report", host: str, environ: "Mapping[str, str]") -> "Job | None":
    """Judge one run, write verdict and attempt, and let go who waited for what it held.

    None means the claim was lost and nothing was touched.
    """
    policy = claim.job.own_policy
    if policy is not None:
        report = report.replace(outcome=report.outcome.under(policy))
    outcome = report.outcome
    if claim.job.limits is not None:
        tx.lock(claim.job.limit_list)  # before: a claim that finds the limit full now must see this job end, or be seen
    if outcome.is_success:
        verdict = SUCCESS
    else:
        fresh = jobs.get_for_update(tx, claim.job.seq)  # somebody may have asked to cancel it meanwhile
        if fresh is None:
            return None
        backoff = fresh.own_backoff(working_settings(tx, environ).backoff)
        import random  # takes longer to import than a run that does well to settle

        left_ms = None if fresh.deadline_at is None else fresh.deadline_at - tx.now
        verdict = judge(fresh, outcome, backoff, random.random(), left_ms)
    record = attempts.record_of(claim, report, host, tx.now, clock.boot_s())
    after = moves.settle(tx, claim, verdict, outcome.exit_code, record)
    if after is not None:
        if after.limits is not None:
            parking.release(tx, after.limit_list)
        if has_ties(after):
            follow(tx, (after,))
    return after
