"""Visible: text as people may look at it: what would steer a terminal or turn a line round is shown, not obeyed."""

import re

HIDDEN = "•••"
_SECRET = r"secret|token|passw|passphrase|pwd|credential|api_?key|access_?key|private|auth|cookie|session"


def safe(text: str, *, kept: str = "") -> str:
    """Show control characters instead of obeying them, but for those kept: a command or name may hold sequences."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else _escaped(char) for char in text)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds what not everybody should see, as its name tells."""
    return re.search(_SECRET, name, re.IGNORECASE) is not None


def shown_value(name: str, value: str) -> str:
    """Return the value of a variable as people may see it: hidden by its name, or without the password of a URL."""
    if is_secret_name(name):
        return HIDDEN
    return re.sub(r"(?<=://)([^/\s:@]*):[^/\s@]+@", rf"\1:{HIDDEN}@", value)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if char not in "\n\t" else {"\n": "\\n", "\t": "\\t"}[char]
