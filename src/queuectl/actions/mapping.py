"""Mapping: adding the jobs of a template, all or none, where their shell quotes as the template's values are quoted."""

import os

from queuectl.actions.connect import settings_of
from queuectl.actions.submit import enter
from queuectl.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.submit import Entry
    from queuectl.model.job import JobSpec
    from queuectl.store.database import Database

# Those in which single quotes keep everything as it is; in fish and csh they do not.
SHELLS = frozenset(
    {"sh", "ash", "bash", "dash", "ksh", "ksh93", "lksh", "mksh", "oksh", "posh", "rbash", "yash", "zsh"}
)


def enter_mapped(
    database: "Database", specs: "Sequence[JobSpec]", *, who: str, environ: "Mapping[str, str]"
) -> "list[Entry]":
    """Write the jobs of one template in one transaction and return what became of each."""
    if specs and specs[0].command is not None and "shell" not in (specs[0].launch or {}):
        check_shell(database.read(lambda tx: settings_of(tx, environ)).shell)
    return enter(database, specs, who=who, environ=environ)


def check_shell(shell: str) -> None:
    """Refuse a shell that quotes in another way: there, a value could be run."""
    name = os.path.basename(shell)
    if name not in SHELLS:
        raise BadInput(
            f"values are quoted for a POSIX shell, and {name!r} is not known as one",
            hint="give --shell /bin/sh, or a program and its arguments: queuectl map -- PROGRAM {}",
        )


def fresh_name() -> str:
    """Return a name that nothing else has, for what the jobs of one template share."""
    return f"map-{os.urandom(4).hex()}"
