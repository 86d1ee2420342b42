"""The systemd unit that runs workers, as text. Pure. A test holds examples/queuectl.service to the same words."""

from queuectl.errors import BadInput
from queuectl.model.value import Value

MARK = "# Written by queuectl worker install; remove it with: queuectl worker uninstall"

# What a supervisor needs of systemd, whoever writes the unit.
SUPERVISED = """\
# A stop (SIGTERM) lets running jobs end; those that take longer than this are stopped and handed back, to run again
# later, without being charged for it.
Environment=QUEUECTL_STOP_TIMEOUT=5m
# More than that time and kill_grace_seconds (10 s) together: systemd must not be first. If it is, nothing is lost
# either, but jobs count as lost instead of handed back.
TimeoutStopSec=6min
# SIGTERM to the supervisor alone. Commands live in the same control group and must not be signalled behind its back;
# what is left at the end gets SIGKILL, which includes what commands left running in the background.
KillMode=mixed
# When one command eats all memory and the kernel ends it, that is the failure of a job, not of all workers.
OOMPolicy=continue
# Leaves the groups below this one to queuectl, so that --memory holds for a command and all that it starts.
Delegate=memory

Restart=on-failure
RestartSec=5
"""


class Unit(Value):
    """What to run, with which variables; `env_file` holds those that nobody else may read."""

    name: str
    argv: tuple[str, ...]
    variables: "dict[str, str]"
    env_file: str | None

    @property
    def text(self) -> str:
        """The unit file."""
        given = [f"Environment={_quoted(f'{name}={value}')}" for name, value in self.variables.items()]
        if self.env_file is not None:
            given.append(f"EnvironmentFile={_one_line(self.env_file).replace('%', '%%')}")
        # systemd takes no program with a quote in its path, and fills variables in everywhere but there.
        is_plain = not any(char in self.argv[0] for char in "\"'\\")
        program, *rest = self.argv if is_plain else ("/usr/bin/env", *self.argv)
        words = [_quoted(program), *(_quoted(word).replace("$", "$$") for word in rest)]
        return "\n".join(
            (
                MARK,
                "",
                "[Unit]",
                "Description=queuectl workers",
                "# A database that is not there yet is tried again by Restart= below, for ever.",
                "StartLimitIntervalSec=0",
                "",
                "[Service]",
                "Type=exec",
                *given,
                f"ExecStart={' '.join(words)}",
                "",
                SUPERVISED,
                "[Install]",
                "WantedBy=default.target",
                "",
            )
        )


def unit_name(name: str | None) -> str:
    """Return the name of the unit: the one of this user, or one of several."""
    return "queuectl.service" if name is None else f"queuectl-{name}.service"


def _quoted(text: str) -> str:
    """Write a word so that systemd reads it as it is: no blank splits it, no specifier fills it in."""
    escaped = _one_line(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if any(char in escaped for char in " \t\"'\\;") else escaped


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise BadInput(f"{text!r} cannot stand in a unit of systemd", hint="use a path without control characters")
    return text
