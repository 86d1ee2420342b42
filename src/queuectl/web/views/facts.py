"""Facts: what there is to say of a job beside its state, in the words of the command line; nothing that is empty."""

from queuectl.model.after import parent_text
from queuectl.model.fields import INSTANT_VARIABLE, SCHEDULE_VARIABLE
from queuectl.model.limits import LIMIT, MUTEX, key_words, names_in
from queuectl.model.needs import Needs, read_needs, units_text
from queuectl.model.policy import ends_text
from queuectl.model.shapes import job_shape
from queuectl.model.units import duration_text, rough_size_text
from queuectl.model.value import Value
from queuectl.model.visible import shown_value
from queuectl.web.words import took

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.edges import Link

LINKS = 20


class Fact(Value):
    """Something that is so of a job; `at` is when, and `query` finds the jobs of which it is so, too."""

    name: str
    text: str = ""
    at: int | None = None
    query: tuple[str, str] | None = None
    is_code: bool = False


def facts(job: "Job", runs: "Sequence[Attempt]", after: "Sequence[Link]") -> list[Fact]:
    """Return what there is to say of a job."""
    return [
        fact
        for part in (_place(job), _times(job), _ends(job), _process(job), _ties(job, after), _cost(runs))
        for fact in part
        if fact.text or fact.at is not None
    ]


def variables(job: "Job") -> list[tuple[str, str]]:
    """Return the variables of a job as people may see them; those the worker fills have no value here."""
    launch = job.launch_options
    own = [(name, shown_value(name, value)) for name, value in job.env_map.items()]
    return own + [(name, "(secret: its worker fills it)") for name in (launch.secrets if launch else ())]


def _place(job: "Job") -> "Iterator[Fact]":
    yield Fact(name="Queue", text=job.queue, query=("queue", job.queue))
    yield Fact(name="Priority", text=str(job.priority))
    yield Fact(name="Attempts", text=f"{job.attempts}/{job.max_retries}")
    yield Fact(name="Lost runs", text=str(job.losses) if job.losses else "")
    for tag in job.tag_list:
        yield Fact(name="Tag", text=tag, query=("tag", tag))
    if job.group_name is not None:
        yield Fact(name="Group", text=job.group_name, query=("group", job.group_name))
    env = job.env_map
    if SCHEDULE_VARIABLE in env:
        yield Fact(name="Schedule", text=f"{env[SCHEDULE_VARIABLE]}, for {env.get(INSTANT_VARIABLE, 'no instant')}")
    yield Fact(name="Unique key", text=job.unique_key or "", is_code=True)
    yield Fact(name="Unique for", text=duration_text(job.unique_for_ms) if job.unique_for_ms else "")


def _times(job: "Job") -> "Iterator[Fact]":
    yield Fact(name="Added", at=job.created_at)
    yield Fact(name="Runs at", at=job.run_at if job.finished_at is None and job.worker_id is None else None)
    yield Fact(name="Started", at=job.started_at)
    yield Fact(name="Finished", at=job.finished_at)
    yield Fact(name="Held since", at=job.held_at)
    yield Fact(name="Timeout", text=_duration(job.timeout_ms))
    yield Fact(name="Deadline", text="" if job.deadline_ms is None else f"{duration_text(job.deadline_ms)} in all")
    yield Fact(name="Deadline is", at=job.deadline_at)


def _duration(ms: int | None) -> str:
    if ms is None:
        return "by the setting job_timeout"
    return duration_text(ms) if ms else "none"


def _ends(job: "Job") -> "Iterator[Fact]":
    backoff = job_shape(job)["backoff"]
    if isinstance(backoff, dict):
        yield Fact(name="Backoff", text=", ".join(f"{name} {value}" for name, value in backoff.items()))
    policy = job.own_policy
    if policy is None:
        return
    yield Fact(name="Retry on", text=ends_text(policy.retry_on or ()))
    yield Fact(name="No retry on", text=ends_text(policy.no_retry_on))
    if policy.success_codes != (0,):
        yield Fact(name="Success on", text=ends_text([str(code) for code in policy.success_codes]))
    snoozes = (f"{code} for {duration_text(delay_ms)}" for code, delay_ms in policy.snooze_codes.items())
    yield Fact(name="Snooze on", text=", ".join(snoozes))


def _process(job: "Job") -> "Iterator[Fact]":
    yield Fact(name="Folder", text=job.cwd or "/", is_code=True)
    yield Fact(name="Output", text="stdout and stderr apart" if job.split_output else "")
    needs = read_needs(job.needs or "")
    yield Fact(name="Needs", text=", ".join(needs.labels))
    yield Fact(name="Uses", text=Needs(use=needs.use).words)
    yield Fact(name="Mutex", text=", ".join(names_in(job.limit_list, MUTEX)))
    yield Fact(name="Limits", text=", ".join(names_in(job.limit_list, LIMIT)))
    yield Fact(name="Parked for", text="" if job.parked_for is None else key_words(job.parked_for))
    yield Fact(name="Has", text=units_text(job.unit_map))
    launch = job.launch_options
    if launch is not None:
        yield Fact(name="Process", text=", ".join(f"{name} {text}" for name, text in launch.texts.items()))
        yield Fact(name="Reads", text=launch.stdin_file or ("what is kept with the job" if launch.has_input else ""))


def _ties(job: "Job", after: "Sequence[Link]") -> "Iterator[Fact]":
    named = ", ".join(parent_text(link.kind, link.id) for link in after[:LINKS])
    more = f" and {len(after) - LINKS:,} more" if len(after) > LINKS else ""
    yield Fact(name="Runs after", text=named + more)
    yield Fact(name="If they fail", text=job.on_dead or "")


def _cost(runs: "Sequence[Attempt]") -> "Iterator[Fact]":
    if not runs:
        return
    last = runs[-1]
    yield Fact(name="Host", text=last.host)
    yield Fact(name="Worker", text=last.worker_id[:6], is_code=True)
    yield Fact(name="CPU", text="" if last.cpu_ms is None else took(last.cpu_ms))
    peak = last.peak_memory_bytes
    yield Fact(name="Peak memory", text="" if peak is None else rough_size_text(peak))
