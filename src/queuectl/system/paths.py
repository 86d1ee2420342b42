"""Paths: a file that is named without its folder, meant as from where we stand."""

import os

from queuectl.errors import BadInput


def whole_path(path: str) -> str:
    """Return a path that means the same from any folder, or raise where we stand in one that is gone."""
    try:
        return os.path.abspath(path)
    except OSError:
        raise BadInput(
            f"{path!r} cannot be found: the current folder does not exist any more",
            hint="cd elsewhere, or write the whole path",
        ) from None
