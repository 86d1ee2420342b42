"""Error groups: errors that say the same but for numbers, paths and quoted words. Pure; counting is in store/."""

import re
from functools import lru_cache

from queuectl.model.exitwords import exit_words
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.stats import Span

NO_ERROR = "no error on record"
MAX_NAME = 200
# How a run ended is what sets groups apart: this much of an error is kept as it is.
_ESSENCE = re.compile(r"exit code -?\d+|killed by \w+|asked to run again later \(exit code \d+\)")
_VARYING = re.compile(
    r"""
      (?P<quoted> '[^'\n]*' | "[^"\n]*" )
    | (?P<path> (?<![\w.]) ~?(?:/[^\s:;,'")\]]+)+ )
    | (?P<number> \b 0x[0-9a-f]+ \b
        | \b [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} \b
        | \b (?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,} \b
        | \d+ (?: [.:]\d+ )* )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STANDS_FOR = {"quoted": "'...'", "path": "/...", "number": "N"}


@lru_cache(maxsize=4096)
def group_name(error: str | None) -> str:
    """Return the name of the group an error belongs to: its text, with what varies from job to job replaced."""
    if not error:
        return NO_ERROR
    kept = _ESSENCE.match(error)
    begin = kept.end() if kept else 0
    rest = _VARYING.sub(lambda found: _STANDS_FOR[str(found.lastgroup)], error[begin:])
    return " ".join((error[:begin] + rest).split())[:MAX_NAME] or NO_ERROR


class ErrorGroup(Value):
    """Dead jobs whose errors say the same."""

    name: str
    count: int
    first_at: int
    last_at: int
    """When the first and the last of them died."""
    queues: "Mapping[str, int]"
    """How many are in each queue, most first."""
    samples: tuple[str, ...]
    """The ids of some of them, the latest death first."""
    span: "Span"
    deaths: tuple[int, ...]
    """How many died within each bucket of the span."""
    errors: tuple[str, ...]
    """Every text that was found, as it is; empty for jobs that have none."""

    @property
    def means(self) -> str:
        """What such an end means, where that is well known."""
        return exit_words(self.name)


class FailureGroup(Value):
    """Runs that failed and say the same."""

    name: str
    count: int
    last_at: int
    sample: str
    """The id of the job whose run failed last."""
    error: str
    """What that one said, as it is."""
    span: "Span"
    """When they ended."""
