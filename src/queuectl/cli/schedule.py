"""Look after schedules: jobs that come again and again, by a cron line in a time zone or every so often.

Every `queuectl worker start` fires them, also when all of its slots are busy; each instant is fired once, however many
of them there are. What happens at instants nobody was there for, or while an earlier job is not over, is for --misfire
and --overlap to say.
"""

import sys
from itertools import islice

from queuectl.actions import scheduling
from queuectl.cli import schedulejob, timetable
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json, safe
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.asked import ASKED
from queuectl.model.checks import as_whole, check_name
from queuectl.model.cron import CRON_HELP, FIELD_COUNT, check_cron, check_zone
from queuectl.model.rhythm import Rhythm, check_every
from queuectl.model.schedule import DEFAULT_CAP, MAX_CAP, Misfire, Overlap, check_schedule_name
from queuectl.model.scheduleshapes import schedule_changes_shape, schedule_shape
from queuectl.model.units import DURATION_HELP, SECOND_MS, TIME_HELP
from queuectl.store import schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.cli.parser import Args, Parser, Run
    from queuectl.model.schedule import Schedule
    from queuectl.store.database import Database, Tx
    from queuectl.store.schedules import LastFire

    Fields = dict[str, object]

TAKES_WORDS = True
VERB_ALIASES = {"rm": "remove", "delete": "remove", "ls": "list"}
EXAMPLES = """\
  queuectl schedule add nightly '30 2 * * *' --tz Europe/Oslo -- ./backup.sh --all
  queuectl schedule add beat --every 10m './beat.sh'
  queuectl schedule list
  queuectl schedule show nightly
  queuectl schedule preview '*/5 * * * mon-fri' 3
  queuectl schedule run nightly
  queuectl schedule edit nightly '@daily' --overlap skip
  queuectl schedule pause nightly
  queuectl schedule resume nightly
  queuectl schedule remove nightly
"""
_ADD_EXAMPLES = f"""\
  queuectl schedule add nightly '30 2 * * *' './backup.sh --all'
  queuectl schedule add report '@weekly' --tz Europe/Oslo --queue mail --timeout 1h -- ./report.sh
  queuectl schedule add beat --every 10m --jitter 30s --overlap skip './beat.sh'
  queuectl schedule add json '0 * * * *' '{{"command": "./poll.sh", "priority": 5}}'

A cron line is {CRON_HELP}.
The job is what enqueue takes: a shell line, JSON, or words after --, with all of its options.
"""
_EDIT_EXAMPLES = """\
  queuectl schedule edit nightly '0 3 * * *'
  queuectl schedule edit nightly --every 1h --command './fixed.sh'
  queuectl schedule edit nightly --timeout none --tag slow --misfire all -- ./backup.sh --all

What is not named stays. The word none takes a field of the job back. Jobs that were fired stay as they are.
"""
_PREVIEW_EXAMPLES = """\
  queuectl schedule preview nightly
  queuectl schedule preview nightly 20
  queuectl schedule preview '30 2 * * *' 5 --tz Europe/Oslo
  queuectl schedule preview --every 90m 3
"""
MOST_PREVIEWED = 10_000
PREVIEWED = 5
A_NAME = "schedule name"
FIRES_SHOWN = 10


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(parser, _verbs(), default="list")
    for name in ("show", "pause", "resume", "remove"):
        verbs[name].add_argument("ids", nargs="+", metavar="NAME", help="a schedule")
    for name in ("add", "run", "edit"):
        verbs[name].add_argument("name", metavar="NAME", help="the schedule")
    verbs["show"].add_argument("--fires", metavar="N", default=str(FIRES_SHOWN), help="so many of its newest fires")
    verbs[
        "add"
    ].usage = "queuectl schedule add NAME ['LINE' | --every DURATION] [options] ('shell line' | -- program ...)"
    verbs["add"].add_argument("ids", nargs="*", metavar="WORD", help="the cron line, unless --every is given; the job")
    verbs["edit"].usage = "queuectl schedule edit NAME ['LINE'] [options] [-- program [argument ...]]"
    verbs["edit"].add_argument("ids", nargs="*", metavar="LINE", help="another cron line")
    for name in ("add", "edit"):
        _add_rules(verbs[name])
        schedulejob.add_options(verbs[name])
    schedulejob.add_takings_back(verbs["edit"])
    verbs["preview"].usage = "queuectl schedule preview (NAME | 'LINE' | --every DURATION) [N] [options]"
    verbs["preview"].add_argument("ids", nargs="*", metavar="NAME", help="a schedule, or a cron line; how many")
    verbs["preview"].add_argument("--every", metavar="DURATION", help=f"a period, counted from now: {DURATION_HELP}")
    verbs["preview"].add_argument("--tz", metavar="ZONE", help="the zone of a line or a period (default: yours)")


def _verbs() -> "Mapping[str, tuple[str, str, Run]]":
    """Return what each verb does, its examples, and the function behind it."""
    return {
        "add": ("add a schedule", _ADD_EXAMPLES, run_add),
        "list": (
            "list schedules: when each comes next, and what came of the last time",
            "  queuectl schedule list",
            run_list,
        ),
        "show": ("show all that is known of schedules", "  queuectl schedule show nightly", run_show),
        "preview": ("show when a schedule, a cron line or a period comes next", _PREVIEW_EXAMPLES, run_preview),
        "run": (
            "fire a schedule now; its next instant comes all the same",
            "  queuectl schedule run nightly",
            run_run,
        ),
        "edit": ("change a schedule, or the job it fires", _EDIT_EXAMPLES, run_edit),
        "pause": ("let schedules rest; their jobs go on", "  queuectl schedule pause nightly beat", run_pause),
        "resume": (
            "let schedules go on; what came while they rested is left out",
            "  queuectl schedule resume nightly beat",
            run_resume,
        ),
        "remove": (
            "remove schedules; their jobs stay (also: rm)",
            "  queuectl schedule remove nightly beat",
            run_remove,
        ),
    }


def _add_rules(parser: "Parser") -> None:
    parser.add_argument("--every", metavar="DURATION", help=f"come every so often: {DURATION_HELP}")
    parser.add_argument("--start", metavar="TIME", help=f"count --every from this time (default: now): {TIME_HELP}")
    parser.add_argument("--tz", metavar="ZONE", help="the zone of the cron line, e.g. Europe/Oslo (default: yours)")
    parser.add_argument(
        "--misfire",
        metavar="RULE",
        help=f"instants nobody was there for: {', '.join(Misfire)} (default: once; one job for all of them)",
    )
    parser.add_argument(
        "--misfire-cap",
        metavar="N",
        help=f"at most so many jobs for missed instants, the newest (default: {DEFAULT_CAP}, at most {MAX_CAP})",
    )
    parser.add_argument(
        "--overlap",
        metavar="RULE",
        help=f"instants while an earlier job is not over: {', '.join(Overlap)} (default: allow)",
    )
    parser.add_argument("--jitter", metavar="DURATION", help="let each instant wait up to so long, always the same")


def run_add(args: "Args") -> int:
    """Add a schedule and say when it comes first."""
    name = check_schedule_name(args.name)
    asked = _asked(args)
    if args.every is None and args.ids:
        asked["cron"] = args.ids.pop(0)
    elif args.every is not None and len(args.ids) > 1 and _is_like_cron(args.ids[0]):
        raise BadInput("give either a cron line or --every", hint="leave out one of them")
    if args.every is None and "cron" not in asked:
        raise BadInput("when? give a cron line or --every", hint="e.g. '*/5 * * * *', '@daily', or --every 10m")
    if "cron" in asked:
        check_cron("cron line", asked["cron"])  # first: a line that was not quoted is the likely mistake
    job = schedulejob.job_of_words(args)
    database = open_store(args)
    schedule = scheduling.add(database, name, asked, job, who=who())
    if args.json:
        print_json(schedule_shape(schedule))
        return 0
    print(f"{name}: {timetable.next_words(schedule, wall_ms())}")
    if sys.stderr.isatty():
        _warn(database)
    return 0


def run_list(args: "Args") -> int:
    """Print every schedule."""

    def look(tx: "Tx") -> "tuple[list[tuple[Schedule, LastFire | None]], int]":
        known = schedules.all_schedules(tx)
        return [(each, next(iter(schedules.fires(tx, each.name, 1)), None)) for each in known], tx.now

    known, now = open_store(args).read(look)
    timetable.print_list(known, now, as_json=args.json)
    return 0


def run_show(args: "Args") -> int:
    """Print all that is known of schedules."""
    names = [check_name(A_NAME, name) for name in args.ids]
    most = as_whole("--fires", args.fires, 0, schedules.KEPT_FIRES)

    def look(tx: "Tx") -> "tuple[list[tuple[Schedule, list[LastFire]]], int]":
        known = [scheduling.found(tx, name) for name in dict.fromkeys(names)]
        return [(each, schedules.fires(tx, each.name, most)) for each in known], tx.now

    known, now = open_store(args).read(look)
    for place, (schedule, fires) in enumerate(known):
        print("\n" * (bool(place) and not args.json), end="")
        timetable.print_one(schedule, fires, now, as_json=args.json)
    return 0


def run_preview(args: "Args") -> int:
    """Print when a schedule, or a line or period that belongs to none, comes next."""
    words = list(args.ids)
    meant = words.pop(0) if args.every is None and words else None
    if args.every is None and meant is None:
        raise BadInput("preview of what?", hint="give a schedule, a quoted cron line, or --every")
    count = as_whole("N", words.pop(0) if words else str(PREVIEWED), 1, MOST_PREVIEWED)
    if words:
        raise BadInput(f"unexpected word {words[0]!r}", hint="quote the cron line")
    schedule, now = None, wall_ms()
    if meant is None or meant.startswith("@") or " " in meant.strip():
        rhythm = _rhythm_of_words(args, meant, now)
    else:
        name = check_name(A_NAME, meant)
        if args.tz is not None:
            raise BadInput(f"schedule {name} has its own zone", hint="--tz is for a cron line; quote it as one word")
        schedule, now = open_store(args).read(lambda tx: (scheduling.found(tx, name), tx.now))
        rhythm = schedule.rhythm
    timetable.print_instants(schedule, rhythm, islice(rhythm.instants(now), count), as_json=args.json)
    if schedule is not None and schedule.paused_at is not None and not args.json:
        note(f"{schedule.name} is paused: nothing comes before: queuectl schedule resume {schedule.name}")
    return 0


def _rhythm_of_words(args: "Args", line: str | None, now: int) -> Rhythm:
    zone = scheduling.local_zone() if args.tz is None else check_zone("zone", args.tz)
    if line is not None:
        return Rhythm(cron=check_cron("cron line", line), tz=zone)
    return Rhythm(every_ms=check_every("every", args.every), anchor=now // SECOND_MS * SECOND_MS, tz=zone)


def run_run(args: "Args") -> int:
    """Fire a schedule now and print the id of the job."""
    name = check_name(A_NAME, args.name)
    seq = scheduling.run_now(open_store(args), name, who=who())
    if args.json:
        print_json({"name": name, "job": seq})
    else:
        print(seq)
    return 0


def run_edit(args: "Args") -> int:
    """Change a schedule and say what is different."""
    name = check_name(A_NAME, args.name)
    asked = _asked(args)
    if len(args.ids) > 1:
        raise BadInput(
            f"unexpected word {args.ids[1]!r}", hint="quote the cron line; give the command with --command or after --"
        )
    if args.ids:
        asked["cron"] = args.ids[0]
    changes = schedulejob.changes_of_flags(args)
    if not asked and not changes and not (args.unset_env or args.untag or args.no_tags or args.env or args.tag):
        raise BadInput("nothing to change", hint="say what: e.g. '0 3 * * *', --overlap skip, --command './fixed.sh'")

    def change(before: "Schedule") -> "tuple[Fields, Fields]":
        return asked, {**changes, **schedulejob.additions(args, before.fields)}

    before, after = scheduling.edit(open_store(args), name, change, who=who())
    changed = schedule_changes_shape(before, after)
    if args.json:
        print_json({"name": name, "changes": changed})
        return 0
    for line in timetable.differences(before, after):
        print(safe(f"{name}: {line}"))
    if not changed:
        print(f"{name}: is so already")
    return 0


def run_pause(args: "Args") -> int:
    """Let schedules rest."""
    done = scheduling.pause(open_store(args), _names(args), who=who())
    return _say_each(args, done, {"paused": True}, "paused", "is paused already")


def run_resume(args: "Args") -> int:
    """Let schedules go on."""
    done = scheduling.resume(open_store(args), _names(args), who=who())
    return _say_each(args, done, {"paused": False}, "goes on", "is not paused")


def run_remove(args: "Args") -> int:
    """Remove schedules."""
    done = scheduling.remove(open_store(args), _names(args), who=who())
    return _say_each(args, done, {"removed": True}, "removed; its jobs stay", "")


def _say_each(args: "Args", done: "Sequence[str]", fact: "Fields", did: str, did_not: str) -> int:
    for name in dict.fromkeys(args.ids):
        if args.json:
            print_json({"name": name, **fact, "changed": name in done})
        else:
            print(f"{name}: {did if name in done else did_not}")
    return 0


def _is_like_cron(word: str) -> bool:
    return word.startswith("@") or (len(word.split()) == FIELD_COUNT and word[:1] in "*0123456789")


def _names(args: "Args") -> list[str]:
    return [check_name(A_NAME, name) for name in args.ids]


def _asked(args: "Args") -> "Fields":
    given = {name: getattr(args, name, None) for name in ASKED}
    return {name: value for name, value in given.items() if value is not None}


def _warn(database: "Database") -> None:
    """Say that nobody is there to fire it."""
    from queuectl.store import workers

    if not any(worker.kind == workers.SUPERVISOR for worker in database.read(workers.live)):
        note("warning: no worker is running; start one with: queuectl worker start -d")
