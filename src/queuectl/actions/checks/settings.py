"""Checks of settings: values that cannot be read, that break a rule, or that do not fit this host."""

import os

from queuectl.model.finding import error, ok, warning
from queuectl.model.lease import Lease
from queuectl.model.units import duration_text, rough_size_text
from queuectl.settings import SETTINGS, unknown_variables
from queuectl.system.disk import space_of
from queuectl.system.names import COMMAND_VARIABLES, PRIVATE_VARIABLES, SECRET_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding
    from queuectl.settings import Settings

RETENTIONS = ("retention_completed", "retention_cancelled", "retention_dead")


def settings(case: "Case") -> "Iterator[Finding]":
    """Whether every setting can be read, and all of them fit together."""
    found = case.surveyed[1]
    for problem in found:
        yield error(problem.message, problem.hint or "see: queuectl config list")
    unknown = [key for key in (case.fleet.stored if case.has_tables else {}) if key not in SETTINGS]
    for key in unknown:
        yield warning(f"stored setting {key!r} is unknown to this program", "upgrade queuectl on this host")
    doubts = list(judge_settings(case.settings, is_local=case.target.sqlite_path is not None))
    yield from doubts
    if not (found or unknown or doubts):
        yield ok("every setting can be read, and they fit together")


def judge_settings(settings: "Settings", *, is_local: bool) -> "Iterator[Finding]":
    """Judge what is allowed, and hardly meant."""
    lease = Lease(lease_s=settings.lock_lease_seconds, grace_s=settings.kill_grace_seconds)
    grace = lease.kill_after_s - lease.stop_after_s
    if not is_local and grace < settings.kill_grace_seconds:
        yield warning(
            f"kill_grace_seconds {settings.kill_grace_seconds:g} does not fit into lock_lease_seconds "
            f"{settings.lock_lease_seconds:g}: a worker that is cut off leaves its commands {grace:g} s",
            f"a lease of {4 * settings.kill_grace_seconds:g} or more: "
            f"queuectl config set lock_lease_seconds {4 * settings.kill_grace_seconds:g}",
        )
    for key in RETENTIONS:
        kept = float(settings.value_of(key))
        if 0 < kept < settings.max_backoff_seconds:
            yield warning(
                f"{key} {_span(kept)} is shorter than max_backoff_seconds {_span(settings.max_backoff_seconds)}: "
                "jobs are gone before others of their batch are tried again",
                f"queuectl config unset {key}",
            )
    if settings.backoff_strategy == "exponential" and settings.backoff_base < 1:
        yield warning(
            f"backoff_base {settings.backoff_base:g} with the exponential strategy: each wait is shorter than the last",
            "queuectl config set backoff_base 2",
        )
    if settings.backoff_strategy == "fixed" and settings.job_retry_delay > settings.max_backoff_seconds:
        yield warning(
            f"job_retry_delay {_span(settings.job_retry_delay)} is cut to max_backoff_seconds "
            f"{_span(settings.max_backoff_seconds)}",
            f"queuectl config set max_backoff_seconds {settings.job_retry_delay:g}",
        )


def shell(case: "Case") -> "Iterator[Finding]":
    """Whether the shell of shell lines can be run."""
    path = case.settings.shell
    if os.path.isfile(path) and os.access(path, os.X_OK):
        yield ok(f"{path} can be run")
    else:
        why = "is not executable" if os.path.isfile(path) else "does not exist"
        yield error(f"shell {path} {why} on this host: no shell line can run", "queuectl config unset shell")


def output_room(case: "Case") -> "Iterator[Finding]":
    """Whether the output that running commands may keep fits on the disk."""
    settings = case.settings
    slots = settings.max_concurrent_jobs
    if case.has_tables:
        slots = max(slots, sum(worker.slots for worker in case.living))
    most = settings.max_output_bytes * slots
    free = space_of(case.target.home.logs).free_bytes
    said = (
        f"{slots} at once may keep {rough_size_text(most)} of output (max_output_bytes "
        f"{rough_size_text(settings.max_output_bytes)}); {rough_size_text(free)} are free"
    )
    if most > free:
        yield warning(said, "queuectl config set max_output_bytes to less, or make room")
    else:
        yield ok(said)


def environment(case: "Case") -> "Iterator[Finding]":
    """Whether variables that look like ours are read by nobody."""
    secrets = [name for name in case.environ if name.startswith(SECRET_PREFIX)]
    found = unknown_variables(case.environ, known=(*COMMAND_VARIABLES, *PRIVATE_VARIABLES, *secrets))
    for unknown in found:
        yield warning(unknown.message, unknown.hint)
    if not found:
        yield ok("every QUEUECTL_ variable is known")


def _span(seconds: float) -> str:
    return duration_text(round(seconds * 1000))
