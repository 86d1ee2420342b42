"""Settings: every key with its default, form and meaning, and which value is in force."""

from queuectl.errors import BadInput, UnknownName
from queuectl.model.fields import MAX_RETRIES
from queuectl.model.retry import Backoff, BackoffStrategy
from queuectl.model.units import (
    DAY_MS,
    DURATION_HELP,
    SIZE_HELP,
    duration_ms,
    duration_text,
    size_bytes,
    size_text,
)
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    SettingValue = int | float | str

DAY_S = DAY_MS // 1000
ENVIRONMENT_PREFIX = "QUEUECTL_"
NOT_SETTINGS = frozenset({"HOME", "DATABASE_URL", "DEBUG"})
_ALIASES = {"default_max_tries": "max_retries"}


class Setting(Value):
    """One key: how to read it, how to write it, what it is for."""

    key: str
    default: "SettingValue"
    read: "Callable[[str], SettingValue]"
    write: "Callable[[SettingValue], str]"
    meaning: str


class Settings(Value):
    """The values in force; durations are in seconds, sizes in bytes."""

    max_retries: int
    backoff_base: float
    backoff_strategy: str
    max_backoff_seconds: float
    backoff_jitter: float
    job_retry_delay: float
    job_timeout: float
    kill_grace_seconds: float
    stop_timeout: float
    lock_lease_seconds: float
    worker_heartbeat_interval: float
    max_concurrent_jobs: int
    max_output_bytes: int
    output_tail_bytes: int
    retention_completed: float
    retention_cancelled: float
    retention_dead: float
    shell: str

    def value_of(self, key: str) -> "SettingValue":
        """Return a value by its key."""
        value = self.as_dict()[key]
        assert isinstance(value, int | float | str)
        return value

    @property
    def backoff(self) -> Backoff:
        """The backoff for jobs that bring none of their own."""
        return Backoff(
            strategy=BackoffStrategy(self.backoff_strategy),
            base=self.backoff_base,
            max_ms=round(self.max_backoff_seconds * 1000),
            fixed_ms=round(self.job_retry_delay * 1000),
            jitter=self.backoff_jitter,
        )


def _whole(low: int, high: int) -> "Callable[[str], SettingValue]":
    def read(text: str) -> "SettingValue":
        digits = text.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) < 16 and low <= int(digits) <= high):
            raise BadInput(f"bad number {text!r}", hint=f"give a whole number from {low} to {high}")
        return int(digits)

    return read


def _fraction(low: float, high: float) -> "Callable[[str], SettingValue]":
    def read(text: str) -> "SettingValue":
        try:
            number = float(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise BadInput(f"bad number {text!r}", hint=f"give a number from {low:g} to {high:g}")
        return number

    return read


def _duration(low_s: int = 0, high_s: int = 3660 * DAY_S) -> "Callable[[str], SettingValue]":
    def read(text: str) -> "SettingValue":
        seconds = duration_ms(text) / 1000
        if not low_s <= seconds <= high_s:
            span = f"{duration_text(low_s * 1000)} to {duration_text(high_s * 1000)}"
            raise BadInput(f"duration {text!r} is out of range", hint=f"give {span}; write {DURATION_HELP}")
        return seconds

    return read


def _size(low: int, high: int) -> "Callable[[str], SettingValue]":
    def read(text: str) -> "SettingValue":
        size = size_bytes(text)
        if not low <= size <= high:
            raise BadInput(
                f"size {text!r} is out of range",
                hint=f"give {size_text(low)} to {size_text(high)}; write {SIZE_HELP}",
            )
        return size

    return read


def _strategy(text: str) -> "SettingValue":
    if text not in list(BackoffStrategy):
        raise UnknownName.among("backoff strategy", text, list(BackoffStrategy))
    return text


def _path(text: str) -> "SettingValue":
    if not text.startswith("/") or "\0" in text:
        raise BadInput(f"bad shell {text!r}", hint="give an absolute path such as /bin/bash")
    return text


def _duration_form(value: "SettingValue") -> str:
    return "0" if value == 0 else duration_text(round(float(value) * 1000))


def _size_form(value: "SettingValue") -> str:
    return size_text(int(value))


def _number_text(value: "SettingValue") -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _define() -> "dict[str, Setting]":
    count, frac, dur = _whole, _fraction, _duration
    rows: tuple[tuple[str, SettingValue, Callable[[str], SettingValue], Callable[[SettingValue], str], str], ...] = (
        ("max_retries", 3, count(0, MAX_RETRIES), str, "runs after the first until a job is buried"),
        ("backoff_base", 2.0, frac(0, 1_000_000), _number_text, "base ** n seconds of wait after failed run n"),
        ("backoff_strategy", "exponential", _strategy, str, "exponential, linear (base * n), fixed (job_retry_delay)"),
        ("max_backoff_seconds", 300.0, dur(), _number_text, "the longest wait between two runs"),
        ("backoff_jitter", 0.0, frac(0, 1), _number_text, "spread of the wait: 0.2 means 80 % to 120 %"),
        ("job_retry_delay", 2.0, dur(), _number_text, "the wait of the fixed strategy"),
        ("job_timeout", 0.0, dur(), _number_text, "longest run of a job that sets none; 0 = none"),
        ("kill_grace_seconds", 10.0, dur(0, 3600), _number_text, "from SIGTERM to SIGKILL when a command is stopped"),
        ("stop_timeout", 0.0, dur(), _number_text, "longest wait of a stop for running jobs, then hand back; 0 = none"),
        ("lock_lease_seconds", 60.0, dur(5, DAY_S), _number_text, "silence after which a worker afar is given up"),
        ("worker_heartbeat_interval", 5.0, dur(1, 3600), _number_text, "how often a worker says that it lives"),
        ("max_concurrent_jobs", 1, count(1, 10_000), str, "commands one worker runs at once (worker start -j)"),
        ("max_output_bytes", 10 << 20, _size(64 << 10, 1 << 40), _size_form, "output kept of a run: head and tail"),
        ("output_tail_bytes", 16 << 10, _size(1 << 10, 1 << 20), _size_form, "end of the output kept in the database"),
        ("retention_completed", float(7 * DAY_S), dur(), _duration_form, "how long completed jobs stay; 0 = always"),
        ("retention_cancelled", float(7 * DAY_S), dur(), _duration_form, "how long cancelled jobs stay; 0 = always"),
        ("retention_dead", 0.0, dur(), _duration_form, "how long dead jobs stay; 0 = always"),
        ("shell", "/bin/sh", _path, str, "the shell of shell lines"),
    )  # fmt: skip
    return {
        key: Setting(key=key, default=default, read=read, write=write, meaning=meaning)
        for key, default, read, write, meaning in rows
    }


SETTINGS: "dict[str, Setting]" = _define()


def normal_key(name: str) -> str:
    """Return the key a person means (`-` or `_`), without its alias resolved, or raise with the nearest one."""
    key = name.strip().lower().replace("-", "_")
    if key not in SETTINGS and key not in _ALIASES:
        raise UnknownName.among("setting", name, [*SETTINGS, *_ALIASES], hint="see them with: queuectl config list")
    return key


def setting_key(name: str) -> str:
    """Return the setting a name stands for, its alias resolved."""
    key = normal_key(name)
    return _ALIASES.get(key, key)


def parse(name: str, text: str) -> "tuple[str, SettingValue]":
    """Read a key and a value as typed; an alias becomes the setting it stands for."""
    key = normal_key(name)
    try:
        if key == "default_max_tries":
            return "max_retries", int(_whole(1, MAX_RETRIES + 1)(text)) - 1
        return key, SETTINGS[key].read(text)
    except BadInput as error:
        raise BadInput(f"{key}: {error.message}", hint=error.hint) from None


def shown(name: str, value: "SettingValue") -> str:
    """Write a value for people and for storage; `parse` reads it back."""
    key = normal_key(name)
    if key == "default_max_tries":
        return str(int(value) + 1)
    return SETTINGS[key].write(value)


def resolve(stored: "Mapping[str, str]", environ: "Mapping[str, str]") -> "tuple[Settings, dict[str, str]]":
    """Return the settings in force and where each comes from: `environment`, `database` or `default`.

    A value in the database that this program cannot read (written by hand) is an error, never silently a default.
    """
    settings, sources, problems = survey(stored, environ)
    if problems:
        raise problems[0]
    return settings, sources


def setting_shapes(stored: "Mapping[str, str]", environ: "Mapping[str, str]") -> "list[dict[str, str]]":
    """Return every setting as JSON: value, source, default and meaning."""
    now, sources = resolve(stored, environ)
    return [
        {
            "key": key,
            "value": shown(key, now.value_of(key)),
            "source": sources[key],
            "default": shown(key, one.default),
            "meaning": one.meaning,
        }
        for key, one in SETTINGS.items()
    ]


def setting_shape(name: str, stored: "Mapping[str, str]", environ: "Mapping[str, str]") -> "dict[str, str]":
    """Return one setting as JSON, by the name it was asked for."""
    key = setting_key(name)
    now, sources = resolve(stored, environ)
    return {"key": normal_key(name), "value": shown(name, now.value_of(key)), "source": sources[key]}


def survey(
    stored: "Mapping[str, str]", environ: "Mapping[str, str]"
) -> "tuple[Settings, dict[str, str], list[BadInput]]":
    """Return the settings as far as they can be read, where each comes from, and all that is wrong with them.

    Where a value cannot be read, the one below it stands in.
    """
    values: dict[str, SettingValue] = {key: setting.default for key, setting in SETTINGS.items()}
    sources = dict.fromkeys(values, "default")
    problems: list[BadInput] = []
    for key, text in stored.items():
        if key in SETTINGS:
            try:
                values[key], sources[key] = parse(key, text)[1], "database"
            except BadInput as error:
                hint = f"{error.hint}; or forget it: queuectl config unset {key}"
                problems.append(BadInput(f"stored setting {error.message}", hint=hint))
    for name, text in environ.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
            if key in SETTINGS or key in _ALIASES:
                try:
                    key, values[key] = parse(key, text)
                except BadInput as error:
                    problems.append(BadInput(f"environment variable {name}: {error.message}", hint=error.hint))
                else:
                    sources[key] = "environment"
    settings = Settings.of_row([values[key] for key in Settings.FIELDS])
    return settings, sources, [*problems, *_broken_rules(settings)]


def check_together(settings: Settings) -> None:
    """Refuse a combination that breaks a rule."""
    for broken in _broken_rules(settings):
        raise broken


def unknown_variables(environ: "Mapping[str, str]", known: "Iterable[str]" = ()) -> list[UnknownName]:
    """Return an error for each variable that looks like ours and that nothing reads; `known` are others that are."""
    names = [*SETTINGS, *_ALIASES, *(name.lower() for name in NOT_SETTINGS)]
    readable = [f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in names]
    return [
        UnknownName.among("environment variable", name, readable, hint=f"unset {name}, or correct its name")
        for name in sorted(environ)
        if name.startswith(ENVIRONMENT_PREFIX) and name not in readable and name not in known
    ]


def _broken_rules(settings: Settings) -> list[BadInput]:
    broken = []
    needed = 2 * settings.worker_heartbeat_interval + 5
    if settings.lock_lease_seconds < needed:
        broken.append(
            BadInput(
                f"lock_lease_seconds {settings.lock_lease_seconds:g} is too short for worker_heartbeat_interval "
                f"{settings.worker_heartbeat_interval:g}",
                hint=f"the lease must be at least 2 x heartbeat + 5 s = {needed:g} s",
            )
        )
    if settings.output_tail_bytes > settings.max_output_bytes:
        broken.append(
            BadInput(
                f"output_tail_bytes {size_text(settings.output_tail_bytes)} is more than max_output_bytes "
                f"{size_text(settings.max_output_bytes)}",
                hint="keep at least as much output as its tail",
            )
        )
    return broken
