"""Moving jobs between stores: what the tests of export and import share."""

import json

from queuectl.actions.exporting import export
from queuectl.actions.importing import Imported, import_lines
from queuectl.actions.landing import Rules
from queuectl.store import jobs
from queuectl.store.database import Database

AS_IT_IS = Rules()
RENUMBER = Rules(renumber=True)
SKIP = Rules(skip_existing=True)


def lines_of(db: Database, wanted: jobs.Filter | None = None) -> list[bytes]:
    """Return what an export writes, line by line."""
    lines: list[bytes] = []
    export(db, wanted, lambda shape: lines.append(json.dumps(shape, ensure_ascii=False).encode() + b"\n"))
    return lines


def bring(db: Database, lines: list[bytes], rules: Rules = AS_IT_IS) -> Imported:
    return import_lines(db, lines, rules=rules, who="me")
