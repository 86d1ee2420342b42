"""Exit words: what well-known ends of commands mean, for people. Pure; how an end is noted is in verdict.py."""

import re

_END = re.compile(r"exit code (\d+)\b|killed by SIG(\w+)", re.ASCII)
_KILLED = "something ended it by force; often the kernel, when memory ran out"
_CODES = {
    124: "timeout(1) stopped it: it took too long",
    126: "the command was found, but cannot be executed",
    127: "the command was not found",
    255: "ssh and others end so when they could not even begin",
}
_BEYOND = 128
"""A shell that ran a command which a signal ended adds this to the number of the signal."""
_SIGNALS = {
    1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE",
    14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ",
}  # fmt: skip
_SIGNAL_WORDS = {
    "HUP": "its terminal went away",
    "INT": "somebody interrupted it",
    "ILL": "it is made for another processor, or broken",
    "ABRT": "it gave up by itself: an assertion failed, or it ran out of memory",
    "BUS": "it reached for memory, or a part of a file, that is not there",
    "FPE": "it divided by zero",
    "KILL": _KILLED,
    "SEGV": "it reached for memory that is not its own: a fault in the program",
    "PIPE": "whoever read its output was gone",
    "TERM": "something asked it to stop",
    "XCPU": "it used up its processor time",
    "XFSZ": "a file grew beyond its limit",
}


def exit_words(error: str | None) -> str:
    """Say what the end that an error begins with means; nothing where it means what the program wants it to."""
    found = _END.match(error or "")
    if found is None:
        return ""
    if found[2]:
        return _SIGNAL_WORDS.get(found[2], "")
    code = int(found[1])
    if code in _CODES:
        return _CODES[code]
    name = _SIGNALS.get(code - _BEYOND)
    if name is None:
        return ""
    words = _SIGNAL_WORDS.get(name)
    return f"SIG{name} ended what the shell ran" + (f": {words}" if words else "")
