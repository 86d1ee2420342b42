"""Bring the database to this program's schema. SQLite does it by itself; a shared PostgreSQL waits for you."""

from queuectl.actions.connect import migrate_store
from queuectl.cli.store import target_of
from queuectl.cli.text import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl migrate
  QUEUECTL_DATABASE_URL=postgresql://queue@db/queue queuectl migrate
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Migrate and say from where to where."""
    before, after = migrate_store(target_of(args))
    if args.json:
        print_json({"from": before, "to": after})
    else:
        print(f"schema {after}, nothing to do" if before == after else f"schema {before} -> {after}")
    return 0
