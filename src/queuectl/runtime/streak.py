"""Streak: plain short jobs in hand that one call begins one after the other; their worker waits for it."""

import time

from queuectl.actions.settle import is_free
from queuectl.model.attempt import Report
from queuectl.runtime.environment import own_variables
from queuectl.runtime.runner import PUMP_AFTER_MS, PUMP_AFTER_S, Runner
from queuectl.runtime.wording import FILE_COMMAND_BYTES, longest_run, words_of
from queuectl.system import launch as quick
from queuectl.system.process import CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Claim
    from queuectl.runtime.launchpad import Launchpad
    from queuectl.runtime.loop import Loop
    from queuectl.settings import Settings
    from queuectl.system.home import Home
    from queuectl.system.launch import Command
    from queuectl.system.variables import Variables


def run_through(
    claims: "Sequence[Claim]",
    home: "Home",
    settings: "Settings",
    variables: "Variables",
    pad: "Launchpad",
    loop: "Loop",
    until_s: float,
) -> "tuple[list[tuple[Claim, Report]], Runner | None]":
    """Run the first of some jobs, as many as can begin until a boot-time moment; return those noted, and the last.

    The last is one that did not do well within a moment, so that its end is not noted; it has a runner. Nothing of both
    means that not even the first could be begun so.
    """
    commands = _commands_of(claims, home, settings, variables)
    if not commands:
        return [], None
    first = claims[0].job.seq
    began = time.monotonic()
    kills_before = pad.kills.before_start(began)
    noted, last = quick.launch(
        commands,
        pad.signals,
        pad.devnull,
        pad.lock.notes_for_row(first),
        loop.fileno(),
        PUMP_AFTER_MS,
        until_s,
        settings.output_tail_bytes,
    )
    runner = None
    if last is not None:
        runner = Runner(claims[len(noted)], home, settings, pad, loop)
        runner.go_on(last, began, kills_before)
    pad.lock.noted_over(first, None if runner is None else runner.claim.job.seq)
    return [(claim, Report.of_success(*each)) for claim, each in zip(claims, noted, strict=False)], runner


def _commands_of(
    claims: "Sequence[Claim]", home: "Home", settings: "Settings", variables: "Variables"
) -> "list[Command]":
    """Return what begins the first of some jobs, up to one that takes more than a streak gives it."""
    commands: list[Command] = []
    for claim in claims if quick.is_compiled() else ():
        command = _command_of(claim, home, settings, variables)
        if command is None:
            break
        commands.append(command)
    return commands


def _command_of(claim: "Claim", home: "Home", settings: "Settings", variables: "Variables") -> "Command | None":
    """Return what begins a job in a streak; None for one that takes more."""
    job = claim.job
    if job.launch is not None or job.split_output or not is_free(job):
        return None
    if job.command is not None and len(job.command) >= FILE_COMMAND_BYTES // 4:  # it may need a file
        return None
    timeout_s, _ = longest_run(job, settings.job_timeout)
    if 0 < timeout_s < PUMP_AFTER_S:
        return None
    try:
        argv, _ = words_of(job, settings.shell, home)
        own = own_variables(job, claim.mark)
    except CannotStart:
        return None
    if "/" not in "".join(argv[:1]):  # to be looked for
        return None
    return job.seq, job.run, argv, variables.blocks(own, has_others_names=job.env is not None), job.cwd or "/"
