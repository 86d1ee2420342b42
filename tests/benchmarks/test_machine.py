"""The machine: on which file system a folder is, and which commit a source tree."""

import re
import subprocess
from pathlib import Path

from benchmarks.machine import commit, file_system_of

MOUNTS = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmpfiles xfs rw 0 0\n"


def test_the_innermost_mount_that_holds_a_folder_counts() -> None:
    assert file_system_of("/tmp", MOUNTS) == "tmpfs"
    assert file_system_of("/tmp/queue", MOUNTS) == "tmpfs"
    assert file_system_of("/tmpfile", MOUNTS) == "ext4"


def test_a_tree_that_differs_from_its_commit_says_so(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert commit(tmp_path) == ""

    git = ["git", "-C", str(tmp_path), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    clean = commit(tmp_path)
    (tmp_path / "src" / "new.py").touch()

    assert re.fullmatch(r"[0-9a-f]{12}", clean)
    assert commit(tmp_path) == f"{clean} with changes"
