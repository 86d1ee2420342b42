"""Home: where things lie, who may read them, and which disks are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queuectl.errors import StoreUnreachable
from queuectl.system import home as home_module
from queuectl.system.home import Home, log_path, remove_logs, script_path, setup_lock, stderr_path
from tests.program import wait_for

SETTER_UP = """
import sys
from queuectl.system.home import Home, setup_lock

with setup_lock(Home(root=sys.argv[1])):
    print("in", flush=True)
    sys.stdin.readline()
"""


def test_a_new_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(root=str(tmp_path / "deep" / "home"))

    home.make()

    assert [os.stat(path).st_mode & 0o777 for path in (home.root, home.run, home.logs)] == [0o700] * 3


def test_a_home_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home").chmod(0o755)

    Home(root=str(tmp_path / "home")).make()

    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "home" / "logs").is_dir()


def test_a_home_that_cannot_be_made_says_which_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnreachable) as raised:
        Home(root=str(tmp_path / "file" / "home")).make()

    assert str(tmp_path / "file") in raised.value.message
    assert "QUEUECTL_HOME" in str(raised.value.hint)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_disk_is_refused_with_the_line_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = [("/", "ext4"), (str(tmp_path), kind), (str(tmp_path / "homes"), "ext4")]
    monkeypatch.setattr(home_module, "_mounts", lambda: iter(mounts))

    with pytest.raises(StoreUnreachable) as raised:
        Home(root=str(tmp_path / "home")).refuse_network_disk()

    assert kind in raised.value.message
    assert "export QUEUECTL_HOME=" in str(raised.value.hint)


def test_a_local_disk_below_a_network_disk_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = [("/", "nfs4"), (str(tmp_path / "home"), "ext4")]
    monkeypatch.setattr(home_module, "_mounts", lambda: iter(mounts))

    Home(root=str(tmp_path / "home")).refuse_network_disk()


def test_a_link_to_a_network_disk_is_seen_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "remote").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "remote")
    monkeypatch.setattr(home_module, "_mounts", lambda: iter([("/", "ext4"), (str(tmp_path / "remote"), "nfs")]))

    with pytest.raises(StoreUnreachable, match="network file system"):
        Home(root=str(tmp_path / "home")).refuse_network_disk()


def test_the_disks_of_this_host_can_be_read() -> None:
    assert "/" in {mount for mount, _ in home_module._mounts()}


def test_logs_are_named_by_number_a_thousand_to_a_folder() -> None:
    home = Home(root="/q")

    assert log_path(home, 7, 1) == "/q/logs/0/7.1.log"
    assert log_path(home, 12_345, 3) == "/q/logs/12/12345.3.log"
    assert script_path(home, 7, 1) == "/q/run/7.1.sh"


def test_a_store_with_a_folder_keeps_its_files_apart() -> None:
    home = Home(root="/q", folder="postgresql-1f")

    assert log_path(home, 7, 1) == "/q/logs/postgresql-1f/0/7.1.log"
    assert stderr_path(home, 12_345, 3) == "/q/logs/postgresql-1f/12/12345.3.err.log"
    assert script_path(home, 7, 1) == "/q/run/postgresql-1f.7.1.sh"


@pytest.mark.parametrize("folder", ["", "postgresql-1f"])
def test_only_files_of_this_store_are_removed(tmp_path: Path, folder: str) -> None:
    home = Home(root=str(tmp_path), folder=folder)
    names = ["0/1.1.log", "postgresql-1f/0/1.1.log", "postgresql-2e/0/1.1.log", "../run/0/1.1.log", "../queue.db"]
    paths = [Path(home.logs, name) for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("output")

    remove_logs(home, [*names, str(tmp_path / "queue.db")])

    own = names.index(os.path.join(folder, "0/1.1.log"))
    assert [path.exists() for path in paths] == [number != own for number in range(len(names))]


def test_one_process_at_a_time_sets_a_home_up(tmp_path: Path) -> None:
    home = Home(root=str(tmp_path / "home"))
    home.make()
    with setup_lock(home):
        other = subprocess.Popen(
            [sys.executable, "-c", SETTER_UP, home.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        wait_for(lambda: is_waiting_for_a_lock(other.pid) or None, "the other to wait")

    said, _ = other.communicate("\n", timeout=60)

    assert said == "in\n"


def test_a_home_that_cannot_be_written_to_is_not_a_traceback(tmp_path: Path) -> None:
    home = Home(root=str(tmp_path / "never made"))

    with pytest.raises(StoreUnreachable, match="cannot write"), setup_lock(home):
        pass


def is_waiting_for_a_lock(pid: int) -> bool:
    lines = Path("/proc/locks").read_text().splitlines()
    return any("-> FLOCK" in line and str(pid) in line.split() for line in lines)
