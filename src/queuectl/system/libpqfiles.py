"""Libpq files: those that a PostgreSQL URL or its variables name, made to mean the same from any folder."""

import os
import re

from queuectl.model.urls import FILE_PARAMETERS
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES = {f"PG{name.upper()}": name for name in FILE_PARAMETERS} | {"PGSYSCONFDIR": ""}
"""Which of the parameters a variable stands for; the last one is the folder of a file that no parameter names."""
_PARAMETER = re.compile(rf"([?&](?P<name>{'|'.join(FILE_PARAMETERS)})=)(?P<file>[^&]+)")
_TRUSTED_HERE = ("sslrootcert", "system")
"""In place of a file: the certificates that this host trusts."""
_MAY_BE_KEY_OF_ENGINE = "sslkey"


def with_whole_paths(url: str) -> str:
    """Return a URL in which each file is named with its folder."""
    address, mark, parameters = url.partition("?")
    return address + _PARAMETER.sub(_with_whole_path, mark + parameters)


def whole_variables(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return those variables that name a file without its folder, with it."""
    return {
        variable: whole_path(environ[variable])
        for variable, name in _VARIABLES.items()
        if _lacks_folder(name, environ.get(variable, ""))
    }


def _with_whole_path(found: "re.Match[str]") -> str:
    from urllib.parse import quote, unquote_to_bytes  # most URLs name none

    file = os.fsdecode(unquote_to_bytes(os.fsencode(found["file"])))  # the name of a file need not be UTF-8
    return found[1] + quote(os.fsencode(whole_path(file))) if _lacks_folder(found["name"], file) else found[0]


def _lacks_folder(name: str, file: str) -> bool:
    """Whether it depends on where we stand; a key with a colon is one of an engine, and no file."""
    if (name, file) == _TRUSTED_HERE or (name == _MAY_BE_KEY_OF_ENGINE and ":" in file):
        return False
    return bool(file) and not os.path.isabs(file)
