"""A systemd that only writes down what it is told: real ones do not run in containers."""

import os
from pathlib import Path

import pytest

SCRIPT = """\
#!/bin/sh
echo "${0##*/} $*" >>"{folder}/calls"
if [ -e "{folder}/failure" ] && case "$*" in *"$(cat "{folder}/only")"*) ;; *) false ;; esac; then
    cat "{folder}/failure" >&2
    exit 1
fi
"""


class Recorder:
    """A systemctl and a loginctl first on the PATH, and a folder for the units of nobody."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder / "systemd"
        self._folder.mkdir()
        for name in ("systemctl", "loginctl"):
            path = self._folder / name
            path.write_text(SCRIPT.replace("{folder}", str(self._folder)))
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{self._folder}:{os.environ['PATH']}")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self._folder / "config"))

    def unit(self, name: str) -> Path:
        """Return where a unit of this name lies."""
        return self._folder / "config" / "systemd" / "user" / name

    def fail(self, words: str, only: str = "") -> None:
        """Fail from now on, with these words; only calls that hold some others, where given."""
        (self._folder / "failure").write_text(words)
        (self._folder / "only").write_text(only)

    def calls(self) -> list[str]:
        """Return what was called, in order."""
        path = self._folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def forget(self) -> None:
        """Forget the calls so far."""
        (self._folder / "calls").unlink()
