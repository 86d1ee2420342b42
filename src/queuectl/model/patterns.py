"""Patterns: regular expressions over ASCII, each compiled when first used.

Not at import, where each costs `queuectl enqueue` a third of a millisecond; nor by `re` itself, which takes a
microsecond each time to find what it has compiled, and a batch asks it some hundred thousand times.
"""

import re
from functools import cache


@cache
def ascii_pattern(text: str) -> "re.Pattern[str]":
    """Return the pattern of a text."""
    return re.compile(text, re.ASCII)
