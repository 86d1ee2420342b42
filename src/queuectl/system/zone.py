"""Zone: the name of the time zone this host, or the person at it, is in."""

import os

LOCALTIME = "/etc/localtime"
TIMEZONE = "/etc/timezone"
_FOLDER = "/zoneinfo/"


def zone_names() -> list[str]:
    """Return what this host says its zone is called, the best first; nothing where it does not say."""
    found = [os.environ.get("TZ", "").removeprefix(":"), _linked(), _written()]
    return [name for name in dict.fromkeys(found) if name]


def _linked() -> str:
    """Return what the file of the local time is a link to."""
    return os.path.realpath(LOCALTIME).partition(_FOLDER)[2] if os.path.islink(LOCALTIME) else ""


def _written() -> str:
    try:
        with open(TIMEZONE, encoding="utf-8") as file:
            return file.read(200).strip()
    except (OSError, UnicodeDecodeError):
        return ""
