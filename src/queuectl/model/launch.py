"""Launch: how the command of a job is to be started, beyond its words, folder and variables."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Launch(Value):
    """What a job asks of the process that runs it; None leaves it as the worker has it."""

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    nofile: int | None = None
    file_size_bytes: int | None = None
    nice: int | None = None
    umask: int | None = None
    shell: str | None = None
    stdin_file: str | None = None
    secrets: tuple[str, ...] = ()
    """Variables whose values the worker finds when it runs the command; no value is ever stored."""
    has_input: bool = False
    """Whether what it reads on standard input is kept in the store."""

    @property
    def is_plain(self) -> bool:
        """Whether the process can be started without being prepared first."""
        parts = (self.memory_bytes, self.cpu_seconds, self.nofile, self.file_size_bytes, self.nice, self.umask)
        return all(part is None for part in parts)

    @property
    def texts(self) -> "dict[str, str]":
        """What the process is prepared with, by the names `enqueue` has for it, as people write it."""
        from queuectl.model.units import size_text

        parts = {
            "memory": None if self.memory_bytes is None else size_text(self.memory_bytes),
            "cpu-seconds": None if self.cpu_seconds is None else f"{self.cpu_seconds}s",
            "nofile": self.nofile,
            "file-size": None if self.file_size_bytes is None else size_text(self.file_size_bytes),
            "nice": self.nice,
            "umask": None if self.umask is None else f"{self.umask:03o}",
            "shell": self.shell,
        }
        return {name: str(part) for name, part in parts.items() if part is not None}

    @classmethod
    def of_map(cls, parts: "Mapping[str, object]") -> "Launch":
        """Build from what the store holds."""
        secrets = parts.get("secrets", ())
        return cls(**{**parts, "secrets": tuple(secrets) if isinstance(secrets, list) else ()})  # type: ignore[arg-type]
