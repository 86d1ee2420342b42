"""Install: workers as a unit of the user's systemd, and taking it away again. Nothing in the store changes."""

import os
import sys

from queuectl.actions.connect import URL_VARIABLE, point_at
from queuectl.errors import BadInput, NotFound, QueuectlError, Refused
from queuectl.model.unit import MARK, Unit, unit_name
from queuectl.model.urls import without_password
from queuectl.model.value import Value
from queuectl.system import systemd
from queuectl.system.paths import whole_path
from queuectl.system.systemd import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.connect import Target
    from queuectl.model.duty import Duty

PASS_FILE_VARIABLE = "PGPASSFILE"
_CONTROL = ("systemctl", "--user")


class Installed(Value):
    """What became of a unit: the file, and what systemd was told."""

    name: str
    path: str
    text: str
    change: str
    """`written`, `replaced`, `same`, `removed` or `none` (nothing was done)."""
    steps: tuple[Step, ...]

    @property
    def is_whole(self) -> bool:
        """Whether everything was done that was to be done."""
        return self.change != "none" and all(step.is_done for step in self.steps)

    @property
    def left(self) -> "list[tuple[str, ...]]":
        """The commands that are left to do by hand; a unit without its file can be stopped, but not disabled."""
        return [
            step.argv
            for step in self.steps
            if step.is_done is None or (step.is_done is False and self.change != "removed")
        ]


def worker_unit(
    target: "Target",
    *,
    count: int,
    slots: int | None,
    duty: "Duty",
    name: str | None,
    env_file: str | None,
    environ: "Mapping[str, str]",
) -> Unit:
    """Return the unit that runs such workers on a store; a password never stands in it."""
    words = ["worker", "start", "-n", str(count)]
    words += [] if slots is None else ["-j", str(slots)]
    words += duty.words
    variables = point_at(target, {key: environ[key] for key in (PASS_FILE_VARIABLE,) if environ.get(key)})
    env_file = None if env_file is None else whole_path(os.path.expanduser(env_file))
    held = set() if env_file is None else _names_in(env_file)
    url = variables.get(URL_VARIABLE, "")
    if url != without_password(url) and URL_VARIABLE not in held:
        raise BadInput(
            "the database URL holds a password, and a unit can be read by others",
            hint=f"put {URL_VARIABLE}=... into a file of mode 0600 and give it with --env-file FILE",
        )
    kept = {key: value for key, value in variables.items() if key != URL_VARIABLE or key not in held}
    return Unit(name=unit_name(name), argv=(*_program(), *words), variables=kept, env_file=env_file)


def plan_install(unit: Unit, *, linger: bool) -> Installed:
    """Say what an installation would do, and do nothing."""
    steps = tuple(Step(argv=argv, is_done=None) for argv in _install_commands(unit.name, linger=linger))
    return Installed(name=unit.name, path=_path(unit.name), text=unit.text, change="none", steps=steps)


def install(unit: Unit, *, force: bool, linger: bool) -> Installed:
    """Write the unit and have systemd start it, now and at each start; a unit that differs is replaced only by force.

    Where systemd cannot be reached the unit is written all the same, and the steps say what is left to do.
    """
    path = _path(unit.name)
    found = systemd.read_unit(path)
    if found is not None and found != unit.text and not force:
        raise Refused(
            f"{path} exists and differs",
            hint="see what would be written with --dry-run, replace it with --force, or choose another --name",
        )
    change = "written" if found is None else "same" if found == unit.text else "replaced"
    if change != "same":
        try:
            systemd.write_unit(path, unit.text)
        except OSError as error:
            raise QueuectlError(f"cannot write {path}: {error.strerror}", hint="nothing was done") from None
    commands = _install_commands(unit.name, linger=linger, is_replacing=change == "replaced")
    return Installed(name=unit.name, path=path, text=unit.text, change=change, steps=tuple(systemd.run_steps(commands)))


def find_installed(name: str | None, *, force: bool) -> Installed:
    """Return the unit as it stands, or raise: none, or (without force) one that queuectl did not write."""
    unit, path = unit_name(name), _path(unit_name(name))
    text = systemd.read_unit(path)
    if text is None:
        raise NotFound(f"no unit {path}", hint="workers that you started yourself: queuectl worker stop")
    if not text.startswith(MARK) and not force:
        raise Refused(f"{path} was not written by queuectl", hint="remove it all the same with --force")
    return Installed(name=unit, path=path, text=text, change="none", steps=())


def uninstall(name: str | None, *, force: bool) -> Installed:
    """Stop the unit, which waits for running jobs, disable it and remove its file.

    Where systemd cannot be reached the file is removed all the same, and the steps say what is left to do.
    """
    found = find_installed(name, force=force)
    unit, path = found.name, found.path
    stop = systemd.run_step((*_CONTROL, "disable", "--now", unit))
    reload = (*_CONTROL, "daemon-reload")
    if not stop.is_done and systemd.run_step(reload).is_done:
        # systemd is there and could not stop it: without its file the unit could hardly be stopped at all.
        return found.replace(steps=(stop,))
    try:
        systemd.remove_unit(path)
    except OSError as error:
        raise QueuectlError(f"cannot remove {path}: {error.strerror}") from None
    if stop.is_done:
        return found.replace(change="removed", steps=(stop, systemd.run_step(reload)))
    later = ((*_CONTROL, "stop", unit), reload)
    return found.replace(change="removed", steps=(stop, *(Step(argv=argv, is_done=None) for argv in later)))


def _install_commands(name: str, *, linger: bool, is_replacing: bool = False) -> "list[tuple[str, ...]]":
    commands: list[tuple[str, ...]] = [(*_CONTROL, "daemon-reload"), (*_CONTROL, "enable", "--now", name)]
    if is_replacing:  # the workers of the old unit finish their jobs first; that is not waited for
        commands.append((*_CONTROL, "restart", "--no-block", name))
    if linger:
        commands.append(("loginctl", "enable-linger"))
    return commands


def _path(unit: str) -> str:
    return os.path.join(systemd.units_folder(), unit)


def _program() -> tuple[str, ...]:
    """Return how to start this very program, whatever the PATH is."""
    beside = os.path.join(os.path.dirname(sys.executable), "queuectl")
    called = os.path.abspath(sys.argv[0])
    for path in (beside, called):
        if os.path.basename(path) == "queuectl" and os.path.isfile(path) and os.access(path, os.X_OK):
            return (path,)
    return (sys.executable, "-m", "queuectl")


def _names_in(path: str) -> set[str]:
    """Return the variables a file sets, or raise when it cannot be used or others can read it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            lines = file.read().splitlines()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", hint="write NAME=VALUE lines into it") from None
    if mode & 0o077:
        raise BadInput(f"{path} can be read by others (mode {mode:04o})", hint=f"chmod 600 {path}")
    return {line.partition("=")[0].strip() for line in lines if "=" in line and not line.lstrip().startswith("#")}
