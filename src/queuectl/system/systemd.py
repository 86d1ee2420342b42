"""systemd of this user: where its units lie, and telling it about them."""

import os
import subprocess

from queuectl.model.value import Value

SECONDS = 600.0  # a stop waits for running jobs, up to TimeoutStopSec


class Step(Value):
    """One command, and what came of it; `is_done` None: it was not tried, since one before it failed."""

    argv: tuple[str, ...]
    is_done: bool | None
    said: str = ""


def units_folder() -> str:
    """Return where the units of this user lie."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    root = config if os.path.isabs(config) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(root, "systemd", "user")


def read_unit(path: str) -> str | None:
    """Return the text of a unit, or None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_unit(path: str, text: str) -> None:
    """Write a unit, whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    draft = f"{path}.{os.getpid()}.new"
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        if os.path.exists(draft):
            os.unlink(draft)
        raise


def remove_unit(path: str) -> None:
    """Remove a unit, and the link that starts it with the user's session where systemd left it."""
    folder, name = os.path.split(path)
    link = os.path.join(folder, "default.target.wants", name)
    if os.path.islink(link):
        os.unlink(link)
    os.unlink(path)


def run_steps(commands: "list[tuple[str, ...]]") -> list[Step]:
    """Run commands one after the other; after one that fails, none is tried."""
    steps: list[Step] = []
    for argv in commands:
        is_going_on = all(step.is_done for step in steps)
        steps.append(run_step(argv) if is_going_on else Step(argv=argv, is_done=None))
    return steps


def run_step(argv: "tuple[str, ...]") -> Step:
    """Run one command of systemd and wait for it."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except FileNotFoundError:
        return Step(argv=argv, is_done=False, said=f"there is no {argv[0]} here")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Step(argv=argv, is_done=False, said=str(error))
    said = (done.stderr or done.stdout).strip()
    return Step(argv=argv, is_done=done.returncode == 0, said="" if done.returncode == 0 else said or "it failed")
