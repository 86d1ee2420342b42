"""The schema of each dialect is a reviewed file beside this one: whoever changes a migration changes it too.

To write the files anew after a change that is meant: UPDATE_SNAPSHOTS=1 make test ARGS=tests/store/test_schema.py
"""

import os
import re
from pathlib import Path

import pytest

from queuectl.model.attempt import Attempt
from queuectl.model.job import Job
from queuectl.model.queue import Queue
from queuectl.model.value import Value
from queuectl.store import migrate
from queuectl.store.audit import Act
from queuectl.store.database import Database, Tx
from queuectl.store.workers import Worker

DERIVED = {"attempts": ["result"]}
"""Columns that follow from others, and are there for an index."""
HERE = Path(__file__).parent
MIGRATION = re.compile(r"(\d{4})_([a-z_]+)\.(sqlite|postgres)\.sql")

_SQLITE = """
    SELECT sql
      FROM sqlite_schema
     WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
     ORDER BY tbl_name, type DESC, name
"""
_POSTGRES_TABLES = """
    SELECT table_name
      FROM information_schema.tables
     WHERE table_schema = 'queuectl'
     ORDER BY table_name
"""
_POSTGRES_COLUMNS = """
    SELECT column_name, upper(data_type),
           CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END,
           CASE is_identity WHEN 'YES' THEN ' GENERATED ' || identity_generation || ' AS IDENTITY' ELSE '' END,
           coalesce(' DEFAULT ' || column_default, '')
      FROM information_schema.columns
     WHERE table_schema = 'queuectl' AND table_name = :table
     ORDER BY ordinal_position
"""
_POSTGRES_CONSTRAINTS = """
    SELECT pg_get_constraintdef(oid)
      FROM pg_constraint
     WHERE conrelid = CAST(:table AS regclass) AND contype <> 'n'
     ORDER BY contype, pg_get_constraintdef(oid) COLLATE "C"
"""
_POSTGRES_INDEXES = """
    SELECT indexdef
      FROM pg_indexes
     WHERE schemaname = 'queuectl' AND tablename = :table AND indexname NOT LIKE '%_pkey'
     ORDER BY indexname
"""
_POSTGRES_TRIGGERS = """
    SELECT pg_get_triggerdef(oid)
      FROM pg_trigger
     WHERE tgrelid = CAST(:table AS regclass) AND NOT tgisinternal
     ORDER BY tgname
"""


def test_the_schema_is_the_reviewed_one(db: Database) -> None:
    path = HERE / f"schema.{db.dialect.name}.sql"

    schema = db.read(dump)

    if "UPDATE_SNAPSHOTS" in os.environ:
        path.write_text(schema)
    assert schema == path.read_text(), (
        f"the schema is not the one in {path}; if that is meant, write it anew and review the difference: "
        "UPDATE_SNAPSHOTS=1 make test ARGS=tests/store/test_schema.py"
    )


def test_both_dialects_have_the_same_tables_and_columns(db: Database) -> None:
    other = "postgres" if db.dialect.name == "sqlite" else "sqlite"

    own = columns(db.read(dump))

    theirs = columns((HERE / f"schema.{other}.sql").read_text())
    own.pop("schema_version", None)  # SQLite has its version in the file's header
    theirs.pop("schema_version", None)
    assert own == theirs


@pytest.mark.parametrize(
    "table, value", [("jobs", Job), ("attempts", Attempt), ("workers", Worker), ("queues", Queue), ("audit", Act)]
)
def test_the_columns_of_a_table_are_the_fields_of_its_value(db: Database, table: str, value: type[Value]) -> None:
    assert columns(db.read(dump))[table] == [*value.FIELDS, *DERIVED.get(table, [])]


def test_the_newest_migration_is_the_version_of_the_program() -> None:
    versions = [int(found[1]) for found in migrations()]

    assert max(versions) == migrate.LATEST
    assert sorted(set(versions)) == list(range(1, migrate.LATEST + 1))


def test_every_migration_exists_for_both_dialects() -> None:
    steps = {(found[1], found[2]) for found in migrations()}

    files = {(found[1], found[2], found[3]) for found in migrations()}

    assert files == {(*step, dialect) for step in steps for dialect in ("sqlite", "postgres")}


def migrations() -> list[re.Match[str]]:
    """Return the migrations; each file in the folder must be named as one."""
    found = [MIGRATION.fullmatch(name) for name in sorted(os.listdir(migrate.FOLDER)) if not name.startswith("__")]
    assert None not in found
    return [match for match in found if match is not None]


def dump(tx: Tx) -> str:
    """Return the schema as text that a person can review."""
    if tx.dialect.name == "sqlite":
        return "".join(f"{_one_column_a_line(str(row[0]))};\n\n" for row in tx.rows(_SQLITE))
    return "\n".join(_postgres_table(tx, str(row[0])) for row in tx.rows(_POSTGRES_TABLES))


def _one_column_a_line(sql: str) -> str:
    """Put a column that ALTER TABLE added where a person would write it: SQLite adds it to the end of the text."""
    added = re.sub(r"\n?, (?=[a-z_]+ [A-Z])", ",\n    ", sql) if sql.startswith("CREATE TABLE") else sql
    return re.sub(r"(?<=[^\n])\)( WITHOUT ROWID)?$", r"\n)\1", added) if added != sql else sql


def columns(schema: str) -> dict[str, list[str]]:
    """Return the columns of each table of a dumped schema, in order."""
    found: dict[str, list[str]] = {}
    for name, body in re.findall(r"CREATE TABLE (\w+) \(\n(.*?)\n\)", schema, re.DOTALL):
        found[name] = re.findall(r"^    ([a-z_]+) +[A-Z]", body, re.MULTILINE)
    return found


def _postgres_table(tx: Tx, table: str) -> str:
    rows = tx.rows(_POSTGRES_COLUMNS, {"table": table})
    lines = [f"{row[0]!s:<18}{''.join(str(part) for part in row[1:])}" for row in rows]
    lines += [str(row[0]) for row in tx.rows(_POSTGRES_CONSTRAINTS, {"table": table})]
    body = ",\n".join(f"    {line}" for line in lines)
    indexes = "".join(f"{row[0]!s};\n" for row in tx.rows(_POSTGRES_INDEXES, {"table": table}))
    triggers = "".join(f"{row[0]!s};\n" for row in tx.rows(_POSTGRES_TRIGGERS, {"table": table}))
    return f"CREATE TABLE {table} (\n{body}\n);\n{indexes}{triggers}"
