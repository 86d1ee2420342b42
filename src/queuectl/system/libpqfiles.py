"""Libpq files: those that a PostgreSQL URL or its variables name, made to mean the same from any folder."""

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETERS = ("passfile", "servicefile", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslrootcert")
_VARIABLES = ("PGSYSCONFDIR", *(f"PG{name.upper()}" for name in _PARAMETERS))
_PARAMETER = re.compile(rf"([?&](?:{'|'.join(_PARAMETERS)})=)([^&]+)")
_TRUSTED_HERE = "system"
"""In place of a file: the certificates that this host trusts."""


def with_whole_paths(url: str) -> str:
    """Return a URL in which each file is named with its folder."""
    return _PARAMETER.sub(_with_whole_path, url)


def whole_variables(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return those variables that name a file without its folder, with it."""
    return {name: os.path.abspath(environ[name]) for name in _VARIABLES if _lacks_folder(environ.get(name, ""))}


def _with_whole_path(found: "re.Match[str]") -> str:
    from urllib.parse import quote, unquote  # most URLs name none

    file = unquote(found[2])
    return found[1] + quote(os.path.abspath(file)) if _lacks_folder(file) else found[0]


def _lacks_folder(file: str) -> bool:
    """Whether it depends on where we stand; a key of an engine, which has a colon, is no file."""
    return bool(file) and not os.path.isabs(file) and file != _TRUSTED_HERE and ":" not in file
