"""The rules of the source tree: who imports whom, and what may be said only in one place.

A rule takes a module and yields its offences. Each one is run over src/ and shown to find what it forbids.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

BASE = {"errors", "clock"}
MIDDLE = BASE | {"model", "settings"}
MAY_IMPORT = {
    "__init__": {"api", "errors", "model"},
    "errors": set(),
    "clock": set(),
    "schemas": set(),
    "model": BASE,
    "settings": {"errors", "model"},
    "store": MIDDLE,
    "system": MIDDLE,
    "actions": MIDDLE | {"store", "system"},
    "runtime": MIDDLE | {"store", "system", "actions"},
    "api": MIDDLE | {"store", "system", "actions", "runtime"},
    "cli": MIDDLE | {"store", "system", "actions", "runtime"},
    "web": MIDDLE | {"schemas", "store", "system", "actions", "runtime"},
    "__main__": {"cli"},
}

# The one command that starts the web face; no other may know it, so that no other pays for importing it.
STARTS_THE_SERVER = "queuectl.cli.serve"

PROCESS_NAMES = re.compile(
    r"(subprocess|signal|_posixsubprocess)(\.|$)"
    r"|os\.(kill|killpg|fork|forkpty|system|popen|posix_spawnp?|(spawn|exec)[vl]p?e?)$"
)
WALL_CLOCKS = re.compile(r"time\.time(_ns)?$|datetime\.(datetime\.(now|utcnow|today)|date\.today)$")
ANY_CLOCK = re.compile(WALL_CLOCKS.pattern + r"|time\.(monotonic|perf_counter|clock_gettime)(_ns)?$")
VAGUE_NAME = re.compile(r"(manager|service|helper)s?$", re.IGNORECASE)
SQL = re.compile(
    r"""\s*(
        SELECT\s | INSERT\s+(OR\s+\w+\s+)?INTO\s | UPDATE\s+\w+\s | DELETE\s+FROM\s | WITH\s+\w+.*\sAS\s
      | (CREATE|ALTER|DROP)\s+(OR\s|TEMP|UNIQUE|TABLE|INDEX|VIEW|TRIGGER|TYPE|SCHEMA|DATABASE|FUNCTION)
      | PRAGMA\s+\w | COPY\s+\w+\s | (LISTEN|NOTIFY)\s+\w
      | (BEGIN|COMMIT|ROLLBACK)\s*(IMMEDIATE|TRANSACTION|;|$)
    )""",
    re.VERBOSE | re.DOTALL,
)
INSERTS_JOBS = re.compile(r"(INSERT\s+(OR\s+\w+\s+)?INTO|COPY)\s+jobs\b")
SETS_STATE = re.compile(
    r"(UPDATE\s+(?P<table>\w+)\s+((AS\s+)?(?!SET\b)\w+\s+)?)?"
    r"\bSET\s(?P<columns>.*?)(?=\b(WHERE|FROM|RETURNING)\b|$)",
    re.DOTALL,
)

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 50
LONGER = {
    "queuectl.runtime.worker",
    "queuectl.store.jobs",
    "queuectl.store.sqlite",
}
"""Files that are yet to be split; none is to be added."""


@dataclass(frozen=True)
class Module:
    """A source file by its dotted name; a package's own file is called `package.__init__`."""

    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @property
    def layer(self) -> str:
        """The part of queuectl it belongs to: `store` for queuectl.store.jobs."""
        return self.name.split(".")[1]

    @cached_property
    def imports(self) -> list[tuple[int, str, str]]:
        """Each imported thing with its line, its full name and the name it gets here."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(node.lineno, each.name, each.asname or each.name) for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                package = self._package_of(node)
                found += [(node.lineno, f"{package}.{each.name}", each.asname or each.name) for each in node.names]
        return found

    def _package_of(self, node: ast.ImportFrom) -> str:
        above = self.name.split(".")[: -node.level] if node.level else []
        return ".".join([*above, *([node.module] if node.module else [])])

    @cached_property
    def uses(self) -> list[tuple[int, str]]:
        """Each imported or dotted name used, spelled in full whatever it is called here."""
        real_names = {local: full for _, full, local in self.imports}
        found = [(line, full) for line, full, _ in self.imports]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                head, _, rest = ast.unparse(node).partition(".")
                found.append((node.lineno, f"{real_names.get(head, head)}.{rest}"))
        return found

    @cached_property
    def texts(self) -> list[tuple[int, str]]:
        """Each string that is not a docstring; what an f-string fills in reads `x`."""
        documentation = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Expr)}
        found = []
        pieces = set()
        for node in ast.walk(self.tree):  # parents come before their children
            if isinstance(node, ast.JoinedStr):
                pieces |= {id(piece) for piece in node.values}
                found.append((node.lineno, "".join(_piece_text(piece) for piece in node.values)))
            elif isinstance(node, ast.Constant) and id(node) not in documentation | pieces:
                found += [(node.lineno, node.value)] if isinstance(node.value, str) else []
        return found


def _piece_text(piece: ast.expr) -> str:
    return str(piece.value) if isinstance(piece, ast.Constant) else "x"


Rule = Callable[[Module], Iterator[str]]


def imports_follow_the_layers(module: Module) -> Iterator[str]:
    if module.layer not in MAY_IMPORT:
        yield f"1: {module.layer} has no place in MAY_IMPORT"
        return
    literals = [(line, text, "") for line, text in module.texts if re.fullmatch(r"queuectl(\.\w+)+", text)]
    for line, imported, _ in module.imports + literals:
        top, _, rest = imported.partition(".")
        layer = rest.split(".")[0]
        if top != "queuectl" or layer == module.layer or layer not in MAY_IMPORT:
            continue
        if layer == "web" and module.name == STARTS_THE_SERVER:
            continue
        if layer not in MAY_IMPORT[module.layer]:
            yield f"{line}: {module.layer} may not import {imported}"


def processes_are_the_business_of_system(module: Module) -> Iterator[str]:
    if module.layer != "system":
        yield from (f"{line}: {name}" for line, name in module.uses if PROCESS_NAMES.match(name))


def sql_is_the_business_of_store(module: Module) -> Iterator[str]:
    if module.layer != "store":
        yield from (f"{line}: {text[:60]!r}" for line, text in module.texts if SQL.match(text))


def each_driver_has_one_home(module: Module) -> Iterator[str]:
    homes = {
        "psycopg": ("queuectl.store.postgres", "queuectl.store.postgres_connection", "queuectl.store.psycopg_start"),
        "apsw": ("queuectl.store.sqlite",),
        "sqlite3": (),
        "cronsim": ("queuectl.model.cron",),
    }
    for line, imported, _ in module.imports:
        driver = imported.split(".")[0]
        if module.name not in homes.get(driver, (module.name,)):
            yield f"{line}: {driver} is imported in {' and '.join(homes[driver]) or 'no file'} only"


def only_web_is_async(module: Module) -> Iterator[str]:
    if module.layer == "web":
        return
    yield from (f"{line}: {name}" for line, name, _ in module.imports if name.split(".")[0] == "asyncio")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.AsyncFunctionDef):
            yield f"{node.lineno}: async def {node.name}"


def names_say_what_a_thing_does(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        if part in {"util", "utils"} or VAGUE_NAME.search(part):
            yield f"1: a module named {part}"
    for node in ast.walk(module.tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if VAGUE_NAME.search(name):
                    yield f"{node.lineno}: {name}"


def the_first_line_says_what_lives_here(module: Module) -> Iterator[str]:
    if ast.get_docstring(module.tree) is None or module.tree.body[0].lineno != 1:
        yield "1: no docstring on the first line"


def only_clock_reads_the_time(module: Module) -> Iterator[str]:
    forbidden = ANY_CLOCK if module.layer == "model" else WALL_CLOCKS
    if module.layer != "clock":
        yield from (f"{line}: {name}" for line, name in module.uses if forbidden.match(name))


def only_insert_claims_and_moves_write_the_state(module: Module) -> Iterator[str]:
    may_update = module.name in {"queuectl.store.moves", "queuectl.store.completing", "queuectl.store.plain_claims"}
    may_insert = module.name == "queuectl.store.jobs"
    for line, text in module.texts:
        if not may_update and sets_job_state(text):
            yield f"{line}: sets jobs.state"
        if not may_insert and INSERTS_JOBS.search(text):
            yield f"{line}: inserts jobs"


def sets_job_state(text: str) -> bool:
    """Tell whether SQL text sets jobs.state; a SET whose table is not in the text counts as one of jobs."""
    if re.search(r"\bSET\s*\([^()]*\bstate\b", text):
        return True
    while True:
        # Innermost brackets first, so that the WHERE of a subquery does not end the SET around it.
        innermost = re.findall(r"\(([^()]*)\)", text)
        if any(_sets_job_state_plainly(each) for each in innermost):
            return True
        if not innermost:
            return _sets_job_state_plainly(text)
        text = re.sub(r"\([^()]*\)", " ", text)


def _sets_job_state_plainly(text: str) -> bool:
    return any(
        found["table"] in {None, "jobs"} and re.search(r"\bstate\s*=", found["columns"])
        for found in SETS_STATE.finditer(text)
    )


def public_signatures_do_not_say_any(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or re.match(r"_(?!_)", node.name):
            continue
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        annotations = [each.annotation for each in arguments if each] + [node.returns]
        if any(re.search(r"\bAny\b", ast.unparse(each)) for each in annotations if each):
            yield f"{node.lineno}: {node.name}"


def a_file_tells_one_story(module: Module) -> Iterator[str]:
    lines = len(module.source.splitlines())
    if lines > MOST_LINES and module.name not in LONGER:
        yield f"1: {lines} lines, and {MOST_LINES} is the most"


def a_function_fits_on_a_page(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield f"{node.lineno}: {node.name} has {lines} lines, and {MOST_LINES_OF_A_FUNCTION} is the most"


def offences(rule: Rule) -> list[str]:
    """List what a rule finds in src/."""
    found = []
    for path in sorted(SOURCE.glob("queuectl/**/*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found += [f"{name}:{offence}" for offence in rule(Module(name, path.read_text()))]
    return found


def test_imports_follow_the_layers() -> None:
    assert offences(imports_follow_the_layers) == []


def test_only_system_starts_and_signals_processes() -> None:
    assert offences(processes_are_the_business_of_system) == []


def test_only_store_speaks_sql() -> None:
    assert offences(sql_is_the_business_of_store) == []


def test_each_database_driver_is_imported_in_one_module() -> None:
    assert offences(each_driver_has_one_home) == []


def test_only_web_is_async() -> None:
    assert offences(only_web_is_async) == []


def test_nothing_is_named_manager_service_helper_or_utils() -> None:
    assert offences(names_say_what_a_thing_does) == []


def test_every_module_begins_with_a_docstring() -> None:
    assert offences(the_first_line_says_what_lives_here) == []


def test_only_the_clock_reads_the_time_of_day_and_the_model_reads_no_clock() -> None:
    assert offences(only_clock_reads_the_time) == []


def test_only_moves_claims_and_the_insert_write_the_state_of_a_job() -> None:
    assert offences(only_insert_claims_and_moves_write_the_state) == []


def test_no_public_signature_says_any() -> None:
    assert offences(public_signatures_do_not_say_any) == []


def test_no_file_is_longer_than_one_story() -> None:
    assert offences(a_file_tells_one_story) == []


def test_no_function_is_longer_than_a_page() -> None:
    assert offences(a_function_fits_on_a_page) == []


FORBIDDEN: list[tuple[Rule, str, str]] = [
    (imports_follow_the_layers, "queuectl.errors", "import queuectl.clock"),
    (imports_follow_the_layers, "queuectl.model.job", "from queuectl.settings import Settings"),
    (imports_follow_the_layers, "queuectl.settings", "from queuectl.store import config"),
    (imports_follow_the_layers, "queuectl.store.jobs", "from queuectl.system.host import boot_id"),
    (imports_follow_the_layers, "queuectl.store.jobs", "from queuectl import system"),
    (imports_follow_the_layers, "queuectl.store.jobs", "from ..system import host"),
    (imports_follow_the_layers, "queuectl.store.__init__", "from .. import system"),
    (imports_follow_the_layers, "queuectl.system.wake", "def f():\n    import queuectl.store.jobs"),
    (imports_follow_the_layers, "queuectl.actions.settle", "import queuectl.runtime.worker"),
    (imports_follow_the_layers, "queuectl.runtime.worker", "from queuectl.cli import main"),
    (imports_follow_the_layers, "queuectl.cli.main", "import queuectl.web.app"),
    (imports_follow_the_layers, "queuectl.cli.main", "import_module('queuectl.web.app')"),
    (imports_follow_the_layers, "queuectl.cli.serve", "from queuectl.api import queue"),
    (imports_follow_the_layers, "queuectl.web.app", "from queuectl.cli.main import entry"),
    (imports_follow_the_layers, "queuectl.extra", ""),
    (processes_are_the_business_of_system, "queuectl.runtime.worker", "import subprocess"),
    (processes_are_the_business_of_system, "queuectl.runtime.worker", "from subprocess import Popen"),
    (processes_are_the_business_of_system, "queuectl.cli.worker", "import signal"),
    (processes_are_the_business_of_system, "queuectl.actions.rescue", "import os\nos.kill(1, 9)"),
    (processes_are_the_business_of_system, "queuectl.actions.rescue", "import os as o\no.killpg(1, 9)"),
    (processes_are_the_business_of_system, "queuectl.actions.rescue", "from os import kill as end"),
    (
        processes_are_the_business_of_system,
        "queuectl.runtime.worker",
        "import os\nos.posix_spawn('x', [], {})",
    ),
    (processes_are_the_business_of_system, "queuectl.runtime.worker", "import os\nos.fork()"),
    (sql_is_the_business_of_store, "queuectl.cli.list", "read('SELECT * FROM jobs')"),
    (sql_is_the_business_of_store, "queuectl.cli.list", "read(f'SELECT * FROM {table}')"),
    (sql_is_the_business_of_store, "queuectl.actions.submit", "q = '''\n  INSERT INTO audit VALUES (1)'''"),
    (sql_is_the_business_of_store, "queuectl.actions.submit", "q = 'UPDATE queues SET paused = 1'"),
    (sql_is_the_business_of_store, "queuectl.actions.submit", "q = 'DELETE FROM jobs'"),
    (sql_is_the_business_of_store, "queuectl.actions.submit", "q = 'CREATE TABLE x (y)'"),
    (sql_is_the_business_of_store, "queuectl.runtime.worker", "q = 'PRAGMA data_version'"),
    (sql_is_the_business_of_store, "queuectl.runtime.worker", "q = 'BEGIN IMMEDIATE'"),
    (each_driver_has_one_home, "queuectl.store.database", "import psycopg"),
    (each_driver_has_one_home, "queuectl.store.sqlite", "from psycopg import errors"),
    (each_driver_has_one_home, "queuectl.store.postgres", "import apsw"),
    (each_driver_has_one_home, "queuectl.store.sqlite", "import sqlite3"),
    (each_driver_has_one_home, "queuectl.model.schedule", "from cronsim import CronSim"),
    (only_web_is_async, "queuectl.runtime.loop", "import asyncio"),
    (only_web_is_async, "queuectl.runtime.loop", "async def poll(): pass"),
    (names_say_what_a_thing_does, "queuectl.store.jobs", "class JobManager: pass"),
    (names_say_what_a_thing_does, "queuectl.store.jobs", "class JobService: pass"),
    (names_say_what_a_thing_does, "queuectl.store.jobs", "def claim_helper(): pass"),
    (names_say_what_a_thing_does, "queuectl.store.helpers", ""),
    (names_say_what_a_thing_does, "queuectl.utils", ""),
    (the_first_line_says_what_lives_here, "queuectl.clock", ""),
    (the_first_line_says_what_lives_here, "queuectl.clock", "import time"),
    (the_first_line_says_what_lives_here, "queuectl.clock", "# A comment.\n'''What lives here.'''"),
    (only_clock_reads_the_time, "queuectl.runtime.loop", "import time\ntime.time()"),
    (only_clock_reads_the_time, "queuectl.runtime.loop", "from time import time_ns"),
    (only_clock_reads_the_time, "queuectl.cli.list", "from datetime import datetime as d\nd.now(tz)"),
    (only_clock_reads_the_time, "queuectl.cli.list", "import datetime\ndatetime.datetime.utcnow()"),
    (only_clock_reads_the_time, "queuectl.model.cron", "import datetime\ndatetime.date.today()"),
    (only_clock_reads_the_time, "queuectl.model.retry", "import time\ntime.monotonic()"),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.jobs", "q = 'UPDATE jobs SET state = 1'"),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.queues", "q = 'INSERT INTO jobs (id)'"),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.moves", "q = 'INSERT INTO jobs (id)'"),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.queues",
        "q = 'COPY jobs (id) FROM STDIN'",
    ),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.workers",
        "q = 'WITH x AS (UPDATE jobs AS j\\n SET run = 1, state = 2 WHERE id = 1) SELECT 1'",
    ),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.workers",
        "q = 'UPDATE jobs SET run = (SELECT 1 WHERE 1), state = 2'",
    ),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.attempts", "q = f'{head} SET state = 1'"),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.attempts",
        "q = 'SET (run, state) = (1, 2)'",
    ),
    (public_signatures_do_not_say_any, "queuectl.store.jobs", "def read(row: dict[str, Any]) -> None: ..."),
    (public_signatures_do_not_say_any, "queuectl.store.jobs", "def read() -> typing.Any: ..."),
    (public_signatures_do_not_say_any, "queuectl.store.jobs", "def read(*rows: Any) -> None: ..."),
    (a_file_tells_one_story, "queuectl.store.audit", "x = 1\n" * (MOST_LINES + 1)),
    (a_function_fits_on_a_page, "queuectl.store.audit", "def f():\n" + "    x = 1\n" * MOST_LINES_OF_A_FUNCTION),
]

ALLOWED: list[tuple[Rule, str, str]] = [
    (imports_follow_the_layers, "queuectl.store.jobs", "from queuectl import __version__, errors"),
    (imports_follow_the_layers, "queuectl.store.jobs", "from queuectl.settings import Settings"),
    (imports_follow_the_layers, "queuectl.store.jobs", "import queuectl.store.moves"),
    (imports_follow_the_layers, "queuectl.settings", "from queuectl.model import units"),
    (imports_follow_the_layers, "queuectl.cli.main", "from queuectl.runtime import supervisor"),
    (imports_follow_the_layers, "queuectl.cli.serve", "from queuectl.web.app import make_app"),
    (imports_follow_the_layers, "queuectl.__main__", "from queuectl.cli.main import entry"),
    (processes_are_the_business_of_system, "queuectl.system.process", "import os, signal\nos.kill(1, 9)"),
    (processes_are_the_business_of_system, "queuectl.cli.main", "import os\nos.path.join(os.getcwd())"),
    (processes_are_the_business_of_system, "queuectl.runtime.runner", "child.kill()"),
    (sql_is_the_business_of_store, "queuectl.store.jobs", "q = 'SELECT 1'"),
    (sql_is_the_business_of_store, "queuectl.cli.dlq", "help = 'Delete from the queue, or Select a job'"),
    (sql_is_the_business_of_store, "queuectl.cli.dlq", "'''\nSELECT in a docstring'''"),
    (sql_is_the_business_of_store, "queuectl.cli.dlq", "heading = 'UPDATED'"),
    (each_driver_has_one_home, "queuectl.store.postgres", "from psycopg import errors"),
    (each_driver_has_one_home, "queuectl.store.sqlite", "import apsw.ext"),
    (only_web_is_async, "queuectl.web.app", "import asyncio\nasync def get(): pass"),
    (names_say_what_a_thing_does, "queuectl.store.jobs", "from contextlib import AbstractContextManager"),
    (the_first_line_says_what_lives_here, "queuectl.clock", '"""What lives here."""'),
    (only_clock_reads_the_time, "queuectl.clock", "import time\ntime.time()"),
    (only_clock_reads_the_time, "queuectl.system.liveness", "import time\ntime.monotonic()"),
    (only_clock_reads_the_time, "queuectl.cli.list", "from queuectl import clock\nclock.now()"),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.moves", "q = 'UPDATE jobs SET state = 1'"),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.plain_claims",
        "q = 'UPDATE jobs SET state = 1'",
    ),
    (only_insert_claims_and_moves_write_the_state, "queuectl.store.jobs", "q = 'INSERT INTO jobs (state)'"),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.jobs",
        "q = 'UPDATE jobs SET cancel_requested = 1 WHERE state = 2'",
    ),
    (
        only_insert_claims_and_moves_write_the_state,
        "queuectl.store.workers",
        "q = 'UPDATE workers SET state = 1'",
    ),
    (public_signatures_do_not_say_any, "queuectl.store.jobs", "def _read(row: Any) -> None: ..."),
    (a_file_tells_one_story, "queuectl.store.audit", "x = 1\n" * MOST_LINES),
    (a_function_fits_on_a_page, "queuectl.store.audit", "def f():\n" + "    x = 1\n" * (MOST_LINES_OF_A_FUNCTION - 1)),
]


@pytest.mark.parametrize("rule, module, source", FORBIDDEN)
def test_a_rule_finds_what_it_forbids(rule: Rule, module: str, source: str) -> None:
    assert list(rule(Module(module, source))) != []


@pytest.mark.parametrize("rule, module, source", ALLOWED)
def test_a_rule_leaves_alone_what_it_allows(rule: Rule, module: str, source: str) -> None:
    assert list(rule(Module(module, source))) == []
