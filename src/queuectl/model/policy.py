"""Policy: which ends of a run are good, which are worth another try, which only mean `later`. Judged in verdict.py."""

from queuectl.errors import BadInput
from queuectl.model.checks import as_duration, as_items, as_text, as_whole, shown_value
from queuectl.model.fields import ENDS_HELP
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

TIMEOUT = "timeout"
SIGNAL = "signal"
OUT_OF_MEMORY = "out_of_memory"
NOT_STARTED = "not_started"
END_WORDS = (TIMEOUT, SIGNAL, OUT_OF_MEMORY, NOT_STARTED)
"""What a run may end by beside a code or a signal by name."""
MAX_CODE = 255
_SIGNALS = frozenset(
    {
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
        "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM",
        "SIGPROF", "SIGIO", "SIGPWR", "SIGSYS",
    }
)  # fmt: skip


class Policy(Value):
    """How the ends of a job's runs are judged; an end is an exit code as text, a signal's name or one of END_WORDS."""

    retry_on: tuple[str, ...] | None = None
    """Only these ends are tried again; None: all."""
    no_retry_on: tuple[str, ...] = ()
    """These never are."""
    success_codes: tuple[int, ...] = (0,)
    snooze_codes: "dict[str, int]" = {}  # noqa: RUF012 - never written to
    """Exit codes that mean `run me again later`, with the delay in milliseconds; such a run is not charged."""

    @classmethod
    def of_map(cls, parts: "Mapping[str, object]") -> "Policy":
        """Build from what the store holds."""
        lists = {name: tuple(part) for name, part in parts.items() if isinstance(part, list | tuple)}
        return cls(**{**parts, **lists})  # type: ignore[arg-type]

    def may_retry(self, ends: "Collection[str]") -> bool:
        """Whether a run that ended so, by any of these names, is worth another try."""
        if any(end in self.no_retry_on for end in ends):
            return False
        return self.retry_on is None or any(end in self.retry_on for end in ends)


def ends_text(ends: "Sequence[str]") -> str:
    """Write ends of a run in few words: codes in a row as `64-78`."""
    words: list[str] = []
    first = last = -1
    for end in ends:
        if not end.isdigit():
            words.append(end)
            first = last = -1
        elif last >= 0 and int(end) == last + 1:
            last = int(end)
            words[-1] = f"{first}-{last}"
        else:
            first = last = int(end)
            words.append(end)
    return ", ".join(words)


def check_ends(name: str, value: object) -> list[str]:
    """Return ends of a run in one spelling each, or raise."""
    ends: dict[str, None] = {}
    for item in as_items(name, value):
        ends.update(dict.fromkeys(_ends(name, str(item) if type(item) is int else as_text(name, item))))
    return list(ends)


def check_codes(name: str, value: object) -> list[int]:
    """Return exit codes, each once, in order, or raise."""
    codes: set[int] = set()
    for item in as_items(name, value):
        found = _codes(name, str(item)) if type(item) in (int, str) else None
        if found is None:
            raise BadInput(f"{name}: {shown_value(item)} is no exit code", hint=f"give 0 to {MAX_CODE}")
        codes.update(found)
    return sorted(codes)


def check_snooze(name: str, value: object) -> dict[str, int]:
    """Return delays by exit code, of an object or of text such as `99:5m,75:1h`, or raise."""
    items = value if isinstance(value, dict) else dict(_pair(name, item) for item in as_items(name, value))
    found: dict[str, int] = {}
    for code, delay in items.items():
        number = as_whole(f"{name}: exit code", code, 1, MAX_CODE)
        delay_ms = as_duration(f"{name} {number}", delay)
        if delay_ms < 1:
            raise BadInput(f"{name} {number} needs a delay", hint="write e.g. 99:5m")
        found[str(number)] = delay_ms
    return found


def check_policy(parts: "Mapping[str, object]") -> None:
    """Refuse a policy that says two things of the same end."""
    policy = Policy.of_map(parts)
    both = [end for end in policy.retry_on or () if end in policy.no_retry_on]
    if both:
        raise BadInput(f"{both[0]} is in retry_on and in no_retry_on", hint="name each end once")
    for code in policy.snooze_codes:
        if int(code) in policy.success_codes:
            raise BadInput(f"exit code {code} is a success and a snooze", hint="name each code once")
    for name, ends in (("retry_on", policy.retry_on or ()), ("no_retry_on", policy.no_retry_on)):
        for code in policy.snooze_codes:
            if code in ends:
                raise BadInput(f"exit code {code} is a snooze and in {name}", hint="name each code once")
        if "0" in ends and 0 in policy.success_codes:
            raise BadInput(f"exit code 0 is a success and in {name}", hint="if it is none: --success-codes without 0")


def _pair(name: str, item: object) -> tuple[str, str]:
    code, colon, delay = as_text(name, item).partition(":")
    if not colon:
        raise BadInput(f"{name} {shown_value(item)} has no delay", hint="write CODE:DURATION, e.g. 99:5m")
    return code.strip(), delay.strip()


def _ends(name: str, word: str) -> list[str]:
    codes = _codes(name, word)
    if codes is not None:
        return [str(code) for code in codes]
    plain = word.lower().replace("-", "_")
    if plain in ("oom", OUT_OF_MEMORY):
        return [OUT_OF_MEMORY]
    if plain in END_WORDS:
        return [plain]
    if word.upper() in _SIGNALS:
        return [word.upper()]
    raise BadInput(f"{name}: {shown_value(word)} is no end of a run", hint=f"give {ENDS_HELP}")


def _codes(name: str, word: str) -> list[int] | None:
    """Read an exit code or a range of them; None means it is neither."""
    low, dash, high = word.partition("-")
    if not low.isdigit() or not low.isascii() or (dash and not (high.isdigit() and high.isascii())):
        return None
    first, last = (as_whole(f"{name}: exit code", part, 0, MAX_CODE) for part in (low, high or low))
    if last < first:
        raise BadInput(f"{name}: the range {word} is upside down", hint=f"write {last}-{first}")
    return list(range(first, last + 1))
