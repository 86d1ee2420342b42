"""Start, stop and list workers. A supervisor keeps them: it replaces one that dies and stops them in order."""

import os
import sys
import time

from queuectl import clock
from queuectl.actions.fleet import is_living, load_of, state_of, worker_shape
from queuectl.cli.install import INSTALL_EXAMPLES, UNINSTALL_EXAMPLES, add_install_arguments, run_uninstall
from queuectl.cli.install import run_install as install_workers
from queuectl.cli.parser import STANDS, add_verbs
from queuectl.cli.store import open_store, target_of, who
from queuectl.cli.text import moment, note, print_json, table
from queuectl.errors import BadInput, WaitTimedOut
from queuectl.model.duty import Duty, read_duty
from queuectl.model.needs import amount_text
from queuectl.model.units import DURATION_HELP, counted, duration_ms
from queuectl.store import workers
from queuectl.system.names import CLAIM_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queuectl.actions.connect import Target
    from queuectl.actions.fleet import Load
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.lease import Watched
    from queuectl.runtime.log import Log
    from queuectl.runtime.spawn import Started
    from queuectl.runtime.supervisor import Plan
    from queuectl.store.database import Database, Tx
    from queuectl.store.workers import Worker
    from queuectl.system.forking import Forked

MAX_WORKERS = 1000
MAX_SLOTS = 10_000
ALL_LIMIT = 200
POLL_S = 0.05
WORKER_RIGHT = ("PID", "SLOTS")
SAY_EVERY_S = 5.0
HANGS_S = 30.0
RETURN_SECONDS = 60.0
EXAMPLES = """\
  queuectl worker start                      one worker in the foreground; Ctrl-C stops it
  queuectl worker start -n 4 -d              four workers in the background
  queuectl worker start -j 20 --queue mail   twenty commands at once, of queue mail alone
  queuectl worker start --until-idle         leave when nothing is left to do
  queuectl worker list
  queuectl worker restart
  queuectl worker stop
"""
_START_EXAMPLES = """\
  queuectl worker start -n 4 -d
  queuectl worker start -j 20 --queue mail --queue default
  queuectl worker start --until-idle
  queuectl worker start --log-format json
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments; without a verb, the living workers are listed."""
    verbs = add_verbs(
        parser,
        {
            "start": ("start workers; in the foreground unless -d is given", _START_EXAMPLES, run_start),
            "stop": (
                "stop all workers on every host when their jobs end",
                "  queuectl worker stop\n  queuectl worker stop --now",
                run_stop,
            ),
            "restart": (
                "replace all workers on every host by fresh ones when their jobs end, as after an upgrade",
                "  queuectl worker restart\n  queuectl worker restart --now",
                run_restart,
            ),
            "list": ("list the living workers", "  queuectl worker list --json", run_list),
            "install": ("run workers as a unit of your own systemd, from now on", INSTALL_EXAMPLES, run_install),
            "uninstall": ("stop that unit and remove it", UNINSTALL_EXAMPLES, run_uninstall),
        },
        default="list",
    )
    parser.set_defaults(all=False)
    _add_start_options(parser)
    _add_start_options(verbs["start"], stands=True)
    for verb in (verbs["stop"], verbs["restart"]):
        verb.add_argument("--now", action="store_true", help="stop the running commands and hand their jobs back")
        verb.add_argument("--timeout", metavar="DURATION", help=f"wait at most so long: {DURATION_HELP}")
    add_install_arguments(verbs)
    verbs["list"].add_argument("--all", action="store_true", help="supervisors and ended workers, too")


def _add_start_options(parser: "Parser", *, stands: bool = False) -> None:
    def add(*names: str, default: object = None, **words: object) -> None:
        parser.add_argument(*names, default=STANDS if stands else default, **words)  # type: ignore[arg-type]

    add("-n", "--count", metavar="N", default="1", help="worker processes (default: 1)")
    add("-j", "--concurrency", metavar="M", help="commands each runs at once (default: setting max_concurrent_jobs)")
    add("--queue", action="append", metavar="Q[:WEIGHT]", help="only this queue; may be repeated, to share by weight")
    add("--label", action="append", metavar="LABEL", help="what jobs that need it find here; may be repeated")
    add("--resource", action="append", metavar="NAME=N", help="so much for jobs to use, in all: gpu=2; may be repeated")
    add("-d", "--detach", action="store_true", default=False, help="run in the background")
    add("--until-idle", action="store_true", default=False, help="leave when nothing is left to do")
    add("--log-format", choices=("text", "json"), default="text", help="how log lines look")


def run_start(args: "Args") -> int:
    """Start workers and, unless detached, stay with them."""
    count, slots, duty = _read_start_options(args)
    target = target_of(args)
    if target.sqlite_path is not None:
        target.home.make()
        target.home.refuse_network_disk()
    from queuectl.runtime.log import Log
    from queuectl.runtime.reserve import fork_workers
    from queuectl.runtime.supervisor import Plan, persistently

    reserve = [] if args.detach else fork_workers(target, count, log_to_file=False)
    log = Log("supervisor", form=args.log_format, file=None)
    default_slots = persistently(lambda: _default_slots(args), log)  # also with -j: bad settings are refused here
    slots = slots or default_slots

    plan = Plan(
        count=count,
        slots=slots,
        duty=duty,
        until_idle=args.until_idle,
        log_form=args.log_format,
        log_to_file=args.detach,
    )
    if not args.detach:
        return _stay(target, plan, log, reserve, as_json=args.json)
    from queuectl.runtime.detached import start_detached

    words = start_detached(target, plan)
    if args.json:
        print_json(words)
    else:
        print(f"{counted(count, 'worker')} running in the background (supervisor pid {words['pid']})")
        note(f"log: {target.home.worker_log}; stop them with: queuectl worker stop")
    return 0


def run_install(args: "Args") -> int:
    """Have systemd start such workers."""
    count, slots, duty = _read_start_options(args)
    return install_workers(args, count=count, slots=slots, duty=duty)


def run_stop(args: "Args") -> int:
    """Tell the workers that live now to stop, wait for them, and say what is waited for."""
    from queuectl.actions import control  # brings every verb, and a start waits for none of them

    timeout_s = None if args.timeout is None else duration_ms(args.timeout) / 1000
    database = open_store(args)
    living = _living(database)
    told = [worker.id for worker in living]
    if told:
        control.stop_workers(database, told, stop=workers.NOW if args.now else workers.DRAIN, who=who())
    if CLAIM_VARIABLE in os.environ:
        timeout_s = 0.0  # inside a job: the worker waits for this very command
    try:
        remaining = _wait_for_end(database, told, timeout_s)
    except KeyboardInterrupt:
        note("the workers were told, and stop when their jobs end")
        raise
    stopped = sum(worker.kind == workers.WORKER for worker in living) - len(remaining)
    if args.json:
        print_json({"stopped": stopped, "remaining": [worker.id for worker in remaining]})
    elif not told:
        print("no worker is running")
    elif stopped or CLAIM_VARIABLE not in os.environ:
        print(f"{counted(stopped, 'worker')} stopped")
    if remaining and CLAIM_VARIABLE in os.environ:
        note(f"{counted(len(remaining), 'worker')} told to stop; not waited for, since this is a job itself")
    elif remaining:
        names = ", ".join(f"{worker.id[:6]} (pid {worker.pid} on {worker.host})" for worker in remaining[:5])
        hint = "they were told, and stop when their jobs end; or: queuectl worker stop --now"
        if args.now:
            hint = "they were told; one that hangs can be ended with kill -9, and its jobs run again"
        raise WaitTimedOut(f"{counted(len(remaining), 'worker')} still alive: {names}", hint=hint)
    return 0


def run_restart(args: "Args") -> int:
    """Tell the supervisors that live now to start over with fresh workers, and wait until those are at work."""
    from queuectl.actions import control

    timeout_s = None if args.timeout is None else duration_ms(args.timeout) / 1000
    database = open_store(args)
    living = _living(database)
    before = [worker for worker in living if worker.kind == workers.SUPERVISOR]
    # One that is just starting over has no worker yet, and will have one at least.
    count = max(len(before), sum(worker.supervisor_id in {one.id for one in before} for worker in living))
    if before:
        stop = workers.NOW if args.now else workers.DRAIN
        control.stop_workers(database, [worker.id for worker in living], stop=stop, who=who(), restart=True)
    is_waiting = (
        bool(before) and CLAIM_VARIABLE not in os.environ
    )  # inside a job: the worker waits for this very command
    if is_waiting:
        _wait_for_return(database, living, before, count, timeout_s)
    if args.json:
        print_json({"restarted": count if is_waiting else 0, "told": count})
    elif not before:
        note("no worker is running; start one: queuectl worker start -d")
    elif is_waiting:
        print(f"{counted(count, 'worker')} restarted")
    else:
        note(f"{counted(count, 'worker')} told to restart; not waited for, since this is a job itself")
    return 0


def run_list(args: "Args") -> int:
    """Print workers."""
    if args.count != "1" or args.concurrency or args.queue or args.detach or args.until_idle:
        raise BadInput("a list takes no options of a start", hint="to start workers: queuectl worker start")

    def look(tx: "Tx") -> "tuple[list[Worker], Load, int]":
        rows = workers.newest(tx, ALL_LIMIT) if args.all else workers.live(tx)
        if not args.all:
            rows = [row for row in rows if row.kind == workers.WORKER and is_living(row, tx.dialect)]
        return rows, load_of(tx, rows), tx.now

    database = open_store(args)
    rows, load, now = database.read(look)
    if args.json:
        for worker in rows:
            print_json(worker_shape(worker, load, database.dialect))
    elif rows:
        states = {row.id: state_of(row, database.dialect) for row in rows} if args.all else None
        headers, cells = workers_table(rows, load, now, states)
        table(headers, cells, right=WORKER_RIGHT)
    else:
        note("no worker is running; start one: queuectl worker start -d")
    return 0


def workers_table(
    rows: "Sequence[Worker]", load: "Load", now: int, states: "Mapping[str, str] | None" = None
) -> "tuple[tuple[str, ...], list[tuple[str, ...]]]":
    """Return headers and a row per worker; kind and state where those are given, what they have where any has."""
    columns: dict[str, Callable[[Worker], str]] = {
        "WORKER": lambda one: one.id[:6],
        **({"KIND": lambda one: one.kind, "STATE": lambda one: states[one.id]} if states else {}),
        "PID": lambda one: str(one.pid),
        "HOST": lambda one: one.host,
        "QUEUES": _queues_text,
        **({"LABELS": lambda one: ",".join(one.supply.labels) or "-"} if any(one.labels for one in rows) else {}),
        **({"RESOURCES": lambda one: _resources_text(one, load)} if any(one.resources for one in rows) else {}),
        "SLOTS": lambda one: str(one.slots),
        "JOBS": lambda one: _jobs_text(one, load),
        "HEARTBEAT": lambda one: moment(one.beat_at, now),
    }
    return tuple(columns), [tuple(cell(one) for cell in columns.values()) for one in rows]


def _jobs_text(worker: "Worker", load: "Load") -> str:
    jobs = load.held.get(worker.id, [])
    shown = " ".join(jobs[:8]) + (f" and {len(jobs) - 8} more" if len(jobs) > 8 else "")
    if worker.stop is not None and worker.state == workers.LIVE:
        shown = f"{shown} (stopping)".strip()
    return shown or "-"


def _resources_text(worker: "Worker", load: "Load") -> str:
    """Say how much is taken of what it shares with the workers of its start: `gpu=1/2`."""
    taken = load.used.get(worker.id, {})
    return (
        ",".join(
            f"{name}={amount_text(taken.get(name, 0))}/{amount_text(total)}"
            for name, total in worker.supply.resources.items()
        )
        or "-"
    )


def _queues_text(worker: "Worker") -> str:
    """Name the queues of a worker; one that `queuectl run` started serves none, but a single job."""
    queues, weights = worker.queue_list, worker.weight_map
    if queues is None:
        return "all"
    return ",".join(f"{name}:{weights[name]}" if name in weights else name for name in queues) or "(one job)"


def _stay(target: "Target", plan: "Plan", log: "Log", reserve: "Sequence[Forked]", *, as_json: bool) -> int:
    """Run the supervisor in this process."""
    from queuectl.runtime.supervisor import Supervisor, persistently

    def ready(started: "list[Started]") -> None:
        if as_json:
            print_json({"pid": os.getpid(), "workers": [{"id": one.worker_id, "pid": one.pid} for one in started]})
            sys.stdout.flush()
        elif started:
            log.info(
                "ready",
                f"{counted(len(started), 'worker')} running in the foreground; Ctrl-C stops when the jobs end",
            )

    supervisor = persistently(lambda: Supervisor(target, plan, log, ready, reserve), log)
    try:
        supervisor.run()
    finally:
        log.close()
    return supervisor.exit_code


def _default_slots(args: "Args") -> int:
    from queuectl.actions.connect import settings_of

    return open_store(args).read(lambda tx: settings_of(tx, os.environ)).max_concurrent_jobs


def _living(database: "Database") -> "list[Worker]":
    return [worker for worker in database.read(workers.live) if is_living(worker, database.dialect)]


def _wait_for_end(
    database: "Database", told: "Sequence[str]", timeout_s: float | None, verb: str = "stop"
) -> "list[Worker]":
    """Wait until those told have ended; return the workers that have not within the time."""
    from queuectl.model.lease import Silence

    begun = said = time.monotonic()
    silence = Silence()
    while True:
        looked = clock.boot_s()
        living = [worker for worker in _living(database) if worker.id in told]
        # One on a host that is gone will never end; those who could give it up may have been told to stop, too.
        silent = silence.look(looked, clock.boot_s(), [_watched(worker) for worker in living])
        remaining = [worker for worker in living if worker.id not in silent]
        now = time.monotonic()
        if not remaining or (timeout_s is not None and now - begun >= timeout_s):
            return [worker for worker in remaining if worker.kind == workers.WORKER]
        if now - said >= SAY_EVERY_S:
            said = now
            held = database.read(workers.jobs_held)
            running = [job for worker in remaining for job in held.get(worker.id, [])]
            note(_waiting_text(running, remaining, verb, now - begun))
        time.sleep(POLL_S)


def _waiting_text(running: "Sequence[str]", remaining: "Sequence[Worker]", verb: str, waited_s: float) -> str:
    if running and any(worker.stop != workers.NOW for worker in remaining):
        what, them = ("job", "it") if len(running) == 1 else ("jobs", "them")
        return f"waiting for {what} {' '.join(running[:10])} to end; stop {them} with: queuectl worker {verb} --now"
    names = ", ".join(
        f"{'supervisor' if worker.kind == workers.SUPERVISOR else f'worker {worker.id[:6]}'} (pid {worker.pid} on "
        f"{worker.host})"
        for worker in remaining[:5]
    )
    hung = "; one that hangs can be ended with kill -9, and its jobs run again" if waited_s >= HANGS_S else ""
    return f"waiting for {names} to leave{hung}"


def _watched(worker: "Worker") -> "Watched":
    from queuectl.model.lease import Watched

    return Watched(key=worker.id, token=worker.beats, lease_s=worker.lease_ms / 1000)


def _wait_for_return(
    database: "Database", told: "Sequence[Worker]", supervisors: "Sequence[Worker]", count: int, timeout_s: float | None
) -> None:
    """Wait until those told have ended and their supervisors are back, each in its old process, with fresh workers."""
    begun = time.monotonic()
    ids = [worker.id for worker in told]
    places = {(worker.host, worker.pid): worker.started_at for worker in supervisors}
    remaining = _wait_for_end(database, ids, timeout_s, "restart")
    left_s = RETURN_SECONDS if timeout_s is None else max(0.0, timeout_s - (time.monotonic() - begun))
    until = time.monotonic() + left_s
    while not remaining:
        rows = database.read(lambda tx: workers.newest(tx, ALL_LIMIT + 2 * len(ids)))
        fresh = [worker for worker in rows if worker.id not in ids]
        supervisors = [worker for worker in fresh if worker.kind == workers.SUPERVISOR]
        back = {one.id for one in supervisors if one.started_at > places.get((one.host, one.pid), one.started_at)}
        # One that was to stay until idle may have found nothing to do, and left again.
        at_work = sum(w.supervisor_id in back and (w.beats > 0 or w.state != workers.LIVE) for w in fresh)
        if len(back) >= len(places) and at_work >= count:
            return
        if time.monotonic() >= until:
            break
        time.sleep(POLL_S)
    hint = "they were told, and start over when their jobs end; see: queuectl worker list --all"
    raise WaitTimedOut("not all workers are back yet", hint=hint)


def _read_start_options(args: "Args") -> "tuple[int, int | None, Duty]":
    """Read how many workers, how many commands each (None: the setting), and what they serve."""
    count = _number("--count", args.count, MAX_WORKERS)
    slots = None if args.concurrency is None else _number("--concurrency", args.concurrency, MAX_SLOTS)
    return count, slots, read_duty(args.queue, args.label or (), args.resource or ())


def _number(flag: str, text: str, high: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= high):
        raise BadInput(f"bad {flag} {text!r}", hint=f"give a whole number from 1 to {high}")
    return int(text)
