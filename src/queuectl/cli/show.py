"""Show jobs: their state, their runs, why they wait, and what ended those that failed.

MEMORY of a run is the peak the kernel accounted; it is never less than the size of the worker that started it. OUTPUT
is what it printed, so far if it is under way on this host; STDERR has a column of its own with --split-output.
"""

import json

from queuectl.actions.explain import mending_edit
from queuectl.actions.selection import Selection, numbers
from queuectl.cli.selection import add_names
from queuectl.cli.store import connect, target_of
from queuectl.cli.text import facts, moment, print_json, safe, short, table, when
from queuectl.model.after import EdgeState, parent_text
from queuectl.model.fields import INSTANT_VARIABLE, SCHEDULE_VARIABLE
from queuectl.model.graph import GONE
from queuectl.model.limits import LIMIT, MUTEX, names_in
from queuectl.model.needs import Needs, read_needs, units_text
from queuectl.model.policy import ends_text
from queuectl.model.shapes import job_shape
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.units import counted, duration_text, rough_duration_text, rough_size_text
from queuectl.runtime.known import Known, known_shape, look_at, schedule_of
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.edges import Link

OUTPUT_LINES = 5
LINE_WIDTH = 200
LINKS = 5
"""How many of those it runs after, and of those that run after it, are shown."""
EXAMPLES = """\
  queuectl show 12
  queuectl show last
  queuectl show 3-5 job1
  queuectl show job1 --json
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_names(parser, nargs="+")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print everything that is known of the jobs."""
    return show(args, args.ids)


def show(args: "Args", names: "Sequence[str]") -> int:
    """Print everything that is known of some jobs, in the order named; those of a range oldest first."""

    target = target_of(args)

    def look(tx: "Tx") -> list[Known]:
        seqs = [seq for name in names for seq in numbers(tx, Selection(names=(name,)))]
        return [look_at(target, tx, job) for job in jobs.by_seqs(tx, list(dict.fromkeys(seqs)))]

    for place, known in enumerate(connect(target).read(look)):
        if args.json:
            print_json(known_shape(known))
        else:
            print("\n" * bool(place), end="")
            _print(known)
    return 0


def _print(known: Known) -> None:
    facts(_facts(known))
    if known.runs:
        print()
        print_runs(known.runs, known.now)
    ended = [run for run in known.runs if run.finished_at is not None]
    if ended and known.job.state in (State.DEAD, State.FAILED):
        _print_end_of_output(known.job, ended[-1])


def _print_end_of_output(job: "Job", run: "Attempt") -> None:
    """Print the last lines of what a run printed: of its errors, where they were kept apart."""
    tail = run.stderr_tail or run.output_tail
    lines = tail.decode(errors="replace").splitlines()
    if not lines:
        return
    shown = lines[-OUTPUT_LINES:]
    print(f"\nLast {counted(len(shown), 'line')} of the output of run {run.run}; all of it: queuectl logs {job.id}")
    for line in shown:
        print(f"  {short(line, LINE_WIDTH)}")


def print_runs(runs: "list[Attempt]", now: int) -> None:
    """Print the runs of a job as a table; hosts have a column when there was more than one, stderr when kept apart."""
    headers = ["RUN", "ATTEMPT", "OUTCOME", "EXIT", "STARTED", "TOOK", "CPU", "MEMORY", "OUTPUT"]
    rows = [
        [
            str(run.run),
            str(run.attempt),
            run.outcome.value if run.outcome else "running",
            "-" if run.exit_code is None else str(run.exit_code),
            moment(run.started_at, now),
            rough_duration_text((run.finished_at or now) - run.started_at),
            "-" if run.cpu_ms is None else f"{run.cpu_ms}ms",
            "-" if run.peak_memory_bytes is None else rough_size_text(run.peak_memory_bytes),
            rough_size_text(run.output_bytes),
        ]
        for run in runs
    ]
    if any(run.is_split for run in runs):
        headers.append("STDERR")
        sizes = ("-" if run.stderr_bytes is None else rough_size_text(run.stderr_bytes) for run in runs)
        rows = [[*row, size] for row, size in zip(rows, sizes, strict=True)]
    if len({run.host for run in runs}) > 1:
        headers.append("HOST")
        rows = [[*row, run.host] for row, run in zip(rows, runs, strict=True)]
    table(headers, rows)


def _facts(known: Known) -> "Iterator[tuple[str, str]]":
    """Yield what there is to say of a job; what is empty is left out."""
    job, now = known.job, known.now
    why = known.cause
    yield "Job", job.id if job.given_id is None else f"{job.id} (number {job.seq})"
    yield "State", f"{job.state}, being cancelled" if job.cancel_requested else job.state.value
    yield from _given("Waits for", known.wait and known.wait.reason)
    yield from _given("To change it", known.wait and known.wait.remedy)
    yield from _given("Cause", why)
    yield from _given("To mend it", _remedy_of(known))
    schedule = schedule_of(job)
    yield from _given("Schedule", schedule and f"{schedule['name']}, for {schedule['instant']}")
    yield "Command", safe(job.line)
    yield "Queue", f"{job.queue}, priority {job.priority}"
    yield "Attempts", f"{job.attempts}/{job.max_retries}"
    yield from _given("Lost runs", str(job.losses) if job.losses else None)
    yield from _given("Error", None if why else job.error)
    yield from _given("Exit code", None if job.exit_code is None else str(job.exit_code))
    yield "Added", when(job.created_at, now)
    if job.state in WAITING_FOR_TIME:
        yield "Runs at", when(job.run_at, now)
    yield from _given("Started", job.started_at and when(job.started_at, now))
    yield from _given("Finished", job.finished_at and when(job.finished_at, now))
    if job.timeout_ms is not None:
        yield "Timeout", duration_text(job.timeout_ms) if job.timeout_ms else "none"
    yield from _given(
        "Backoff", None if job.backoff is None else json.dumps(job_shape(job)["backoff"]).strip("{}").replace('"', "")
    )
    yield from _policy_facts(job, now)
    yield "Folder", safe(job.cwd or "/")
    for name, value in job.env_map.items():
        if schedule is not None and name in (SCHEDULE_VARIABLE, INSTANT_VARIABLE):
            continue  # said above
        yield "Variable", safe(f"{name}={value}")
    yield from _given("Secrets", ", ".join(job.launch_options.secrets) if job.launch_options else None)
    yield from _given("Tags", ", ".join(job.tag_list))
    yield from _given("Group", job.group_name)
    yield from _given("Unique key", job.unique_key)
    yield from _given("Unique for", job.unique_for_ms and duration_text(job.unique_for_ms))
    yield from _link_facts(known)
    yield from _asked(job)
    yield from _given("Worker", job.worker_id)
    yield from _given("Has", units_text(job.unit_map))


def _link_facts(known: Known) -> "Iterator[tuple[str, str]]":
    """Yield what a job runs after, what has become of that, and what runs after it; of many the first."""
    for link in known.after[:LINKS]:
        yield "Runs after", safe(_link_text(link))
    yield from _more("Runs after", len(known.after), f"{known.job.id} --up")
    yield from _given("If they fail", known.job.on_dead)
    for link in known.dependents[:LINKS]:
        yield "Then runs", safe(_link_text(link))
    yield from _more("Then runs", known.dependents_count, f"{known.job.id} --down")


def _more(name: str, count: int, words: str) -> "Iterator[tuple[str, str]]":
    if count > LINKS:
        yield name, f"and {count - LINKS:,} more; see: queuectl graph {words}"


def _link_text(link: "Link") -> str:
    """Name a job with its state, and say what has become of the dependency where that does not follow from it."""
    state, edge_state = link.job_state, link.edge_state
    if state is None:
        return f"{parent_text(link.kind, link.id)} ({GONE}, {edge_state})"
    is_plain = edge_state is (EdgeState.WAITING if state not in FINAL else EdgeState.SATISFIED)
    return f"{parent_text(link.kind, link.id)} ({state}{'' if is_plain else f', {edge_state}'})"


def _asked(job: "Job") -> "Iterator[tuple[str, str]]":
    """Yield what a job asks of its worker, of other jobs and of the process that runs it."""
    needs = read_needs(job.needs or "")
    yield from _given("Needs", ", ".join(needs.labels))
    yield from _given("Uses", Needs(use=needs.use).words)
    yield from _given("Mutex", ", ".join(names_in(job.limit_list, MUTEX)))
    yield from _given("Limits", ", ".join(names_in(job.limit_list, LIMIT)))
    options = job.launch_options
    if options is None:
        return
    yield from _given("Process", ", ".join(f"{name} {text}" for name, text in options.texts.items()))
    yield from _given("Reads", options.stdin_file or ("what is kept with the job" if options.has_input else None))


def _policy_facts(job: "Job", now: int) -> "Iterator[tuple[str, str]]":
    """Yield what a job says of its time in all and of the ends of its runs."""
    if job.deadline_ms is not None:
        yield "Deadline", f"{duration_text(job.deadline_ms)} in all, until {when(job.deadline_at, now)}"
    policy = job.own_policy
    if policy is None:
        return
    yield from _given("Retry on", ends_text(policy.retry_on or ()))
    yield from _given("No retry on", ends_text(policy.no_retry_on))
    if policy.success_codes != (0,):
        yield "Success on", ends_text([str(code) for code in policy.success_codes])
    snoozes = (f"{code} for {duration_text(delay_ms)}" for code, delay_ms in policy.snooze_codes.items())
    yield from _given("Snooze on", ", ".join(snoozes))


def _remedy_of(known: Known) -> str | None:
    job = known.job
    if job.state is not State.DEAD:
        return known.comes_back
    if edit := mending_edit(job, known.runs):
        return f"queuectl retry {job.id} (first: queuectl edit {job.id} {edit})"
    mended = "--command '...'" if job.argv is None else "-- program argument ..."
    return f"queuectl retry {job.id} (first, if the command is wrong: queuectl edit {job.id} {mended})"


def _given(name: str, value: object) -> "Iterator[tuple[str, str]]":
    if value:
        yield name, safe(str(value))
