"""Doctor: looks at a store and at this host, and says what is wrong and how to mend it. It changes nothing."""

from queuectl.actions.checks import database, fleet, home, program, schedules, settings, waiting
from queuectl.actions.checks.case import Case
from queuectl.errors import QueuectlError, StoreError
from queuectl.model.finding import Finding, Level, error
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from queuectl.actions.connect import Target

# What must be there for a check: nothing; a store that is a file; that file, or a server, open; and our tables in it.
ALWAYS, LOCAL, FILE, SERVER, TABLES = "always", "local", "file", "server", "tables"


class Check(Value):
    """One thing to look at: its name, what must be there for it, and the function that looks."""

    name: str
    needs: str
    look: "Callable[[Case], Iterator[Finding]]"

    @property
    def about(self) -> str:
        """What it asks, in a sentence."""
        return (self.look.__doc__ or "").strip()


CHECKS = tuple(
    Check(name=name, needs=needs, look=look)
    for name, needs, look in (
        ("home", ALWAYS, home.home),
        ("private", ALWAYS, home.private),
        ("disk", ALWAYS, home.disk),
        ("store", ALWAYS, database.store),
        ("file-system", LOCAL, home.file_system),
        ("integrity", FILE, database.integrity),
        ("wal", FILE, database.wal),
        ("journal", FILE, database.journal),
        ("size", FILE, database.size),
        ("server", SERVER, database.server),
        ("notify", SERVER, database.notify),
        ("transactions", SERVER, database.transactions),
        ("connections", SERVER, database.connections),
        ("dead-rows", SERVER, database.dead_rows),
        ("clock", TABLES, database.clocks),
        ("workers", TABLES, fleet.workers),
        ("dead-workers", TABLES, fleet.dead_workers),
        ("hung-workers", TABLES, fleet.hung_workers),
        ("silent-workers", TABLES, fleet.silent_workers),
        ("versions", TABLES, fleet.versions),
        ("orphans", TABLES, fleet.orphans),
        ("stuck", TABLES, fleet.stuck),
        ("processes", TABLES, fleet.processes),
        ("paused", TABLES, fleet.paused),
        ("unserved", TABLES, fleet.unserved),
        ("unservable", TABLES, waiting.unservable),
        ("narrow-queues", TABLES, waiting.narrow),
        ("missing-limits", TABLES, waiting.missing_limits),
        ("closed-limits", TABLES, waiting.closed_limits),
        ("dependencies", TABLES, waiting.dependencies),
        ("schedules", TABLES, schedules.schedules),
        ("leftovers", ALWAYS, home.leftovers),
        ("settings", ALWAYS, settings.settings),
        ("shell", ALWAYS, settings.shell),
        ("output-room", ALWAYS, settings.output_room),
        ("environment", ALWAYS, settings.environment),
        ("program", ALWAYS, program.program),
        ("inotify", ALWAYS, program.inotify),
        ("open-files", ALWAYS, program.open_files),
    )
)


def examine(target: "Target", environ: "Mapping[str, str]", *, is_deep: bool = False) -> list[Finding]:
    """Run every check that applies and return what they found, in order; one that fails is a finding itself."""
    case = Case(target, environ, is_deep=is_deep)
    try:
        return [finding for check in CHECKS if _applies(check, case) for finding in _looked(check, case)]
    finally:
        case.close()


def has_error(findings: "list[Finding]") -> bool:
    """Whether anything keeps jobs from being run or kept."""
    return any(finding.level is Level.ERROR for finding in findings)


def _applies(check: Check, case: Case) -> bool:
    is_local, is_open = case.target.sqlite_path is not None, case.database is not None and case.trouble is None
    return {
        ALWAYS: True,
        LOCAL: is_local,
        FILE: is_local and is_open,
        SERVER: not is_local and is_open,
        TABLES: is_open and case.has_tables,
    }[check.needs]


def _looked(check: Check, case: Case) -> "list[Finding]":
    try:
        return [finding.replace(check=check.name) for finding in check.look(case)]
    except StoreError as failed:
        case.trouble = failed  # what else needs the store would only say the same, each after a wait
        found = error(f"could not look: {failed.message}", failed.hint)
    except QueuectlError as failed:
        found = error(f"could not look: {failed.message}", failed.hint)
    except OSError as failed:
        found = error(f"could not look: {failed}", "look at that file and its permissions")
    except Exception as failed:  # noqa: BLE001 - whatever broke one check must not keep the others from being told
        found = error(f"could not look: {type(failed).__name__}: {failed}", "please report it")
    return [found.replace(check=check.name)]
