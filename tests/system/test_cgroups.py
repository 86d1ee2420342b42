"""Control groups: where they may be made, what is written into them, and that none is left.

The kernel is played by controlgroups.py. The last test takes the kernel itself, where a place was handed over.
"""

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl.model.launch import Launch
from queuectl.system import cgroups, prepare
from queuectl.system.cgroups import V1, V2, Groups, Place
from queuectl.system.process import spawn
from tests.system.controlgroups import FILES, Kernel
from tests.system.groups import handed_over

MakeKernel = Callable[[int], Kernel]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeKernel:
    """A hierarchy of a version."""
    return lambda version: Kernel(tmp_path / "cgroup", version, monkeypatch)


@pytest.fixture(params=[1, 2])
def place(request: pytest.FixtureRequest, kernel: MakeKernel) -> Place:
    """A group that was handed over, of each version."""
    top = kernel(request.param).top
    return Place(path=str(top), version={1: V1, 2: V2}[request.param])


def below(place: Place) -> list[str]:
    return sorted(each.name for each in Path(place.path).iterdir() if each.is_dir())


class TestPlaces:
    """Where groups may be made."""

    def test_version_1_below_the_own_group_when_it_was_handed_over(self, kernel: MakeKernel) -> None:
        own = kernel(1).live_in("/system.slice/queuectl.service", is_delegated=True)

        assert cgroups.find_place() == Place(path=str(own), version=V1)

    @pytest.mark.parametrize("version", [1, 2])
    def test_never_in_a_group_that_somebody_else_manages(self, kernel: MakeKernel, version: int) -> None:
        own = kernel(version).live_in("/runner/job-7")

        cgroups.move_aside()

        assert cgroups.find_place() is None
        assert sorted(os.listdir(own)) == sorted(FILES[version])
        assert (own / "cgroup.procs").read_text() == f"{os.getpid()}\n"

    def test_version_1_at_the_top(self, kernel: MakeKernel) -> None:
        top = kernel(1).live_in("/")

        assert cgroups.find_place() == Place(path=str(top), version=V1)

    def test_version_2_at_the_top_only_where_memory_is_passed_on_already(self, kernel: MakeKernel) -> None:
        top = kernel(2).live_in("/")
        before = cgroups.find_place()

        (top / "cgroup.subtree_control").write_text("cpu memory\n")

        assert before is None
        assert cgroups.find_place() == Place(path=str(top), version=V2)

    def test_version_2_beside_the_group_the_supervisor_moved_into(self, kernel: MakeKernel) -> None:
        host = kernel(2)
        unit = host.live_in("/queuectl.service", is_delegated=True)
        before = cgroups.find_place()

        cgroups.move_aside()
        moved = (unit / cgroups.MAIN / "cgroup.procs").read_text()
        (unit / "cgroup.procs").write_text("")  # as the kernel would
        host.live_in(f"/queuectl.service/{cgroups.MAIN}")

        assert (before, moved) == (None, str(os.getpid()))
        assert (unit / "cgroup.subtree_control").read_text() == "+memory"
        assert cgroups.find_place() == Place(path=str(unit), version=V2)

    def test_version_2_beside_the_subgroup_of_a_unit(self, kernel: MakeKernel) -> None:
        host = kernel(2)
        unit = host.live_in("/queuectl.service/inner").parent
        host.delegated.add(str(unit))

        assert cgroups.find_place() == Place(path=str(unit), version=V2)
        assert (unit / "cgroup.subtree_control").read_text() == "+memory"

    def test_nobody_else_is_moved(self, kernel: MakeKernel) -> None:
        unit = kernel(2).live_in("/queuectl.service", is_delegated=True)
        (unit / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")

        cgroups.move_aside()

        assert not (unit / cgroups.MAIN).exists()

    def test_version_2_without_the_memory_controller(self, kernel: MakeKernel) -> None:
        unit = kernel(2).live_in("/queuectl.service", is_delegated=True)
        (unit / "cgroup.controllers").write_text("cpu pids\n")

        cgroups.move_aside()

        assert not (unit / cgroups.MAIN).exists()

    def test_a_host_that_mounts_none(self, kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel(2).live_in("/queuectl.service", is_delegated=True)
        monkeypatch.setattr(cgroups, "MOUNTS", "/no/such/file")

        assert cgroups.find_place() is None

    def test_the_mark_of_a_group_that_was_handed_over_is_an_attribute(self, tmp_path: Path) -> None:
        before = cgroups.is_handed_over(str(tmp_path))
        try:
            os.setxattr(tmp_path, "user.delegate", b"1")
        except OSError as error:
            pytest.skip(f"no attributes in {tmp_path}: {error.strerror}")

        assert (before, cgroups.is_handed_over(str(tmp_path))) == (False, True)


class TestGroups:
    """What one worker makes there."""

    def test_a_run_has_a_group_with_its_limit_and_no_swap(self, place: Place) -> None:
        groups = Groups(place, "w1")

        group = groups.make("3.1", 5 << 20)

        assert group.path == f"{place.path}/queuectl.w1/3.1"
        names = ("memory.max", "memory.swap.max") if place.version is V2 else FILES[1][1:3]
        seen = [Path(group.path, name).read_text() for name in names]
        assert seen == ([str(5 << 20), "0"] if place.version is V2 else [str(5 << 20)] * 2)
        if place.version is V2:
            assert Path(place.path, "queuectl.w1", "cgroup.subtree_control").read_text() == "+memory"
        groups.drop(group)
        groups.close()

    def test_the_kernel_says_how_many_it_killed(self, place: Place) -> None:
        groups = Groups(place, "w1")
        group = groups.make("3.1", 5 << 20)
        before = group.kills()

        text = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n" if place.version is V1 else "max 9\noom 3\noom_kill 2\n"
        Path(group.path, place.version.kills).write_text(text)

        assert (before, group.kills()) == (0, 2)
        groups.drop(group)
        groups.close()

    def test_nothing_is_left_of_runs_that_are_over(self, place: Place) -> None:
        groups = Groups(place, "w1")

        groups.drop(groups.make("3.1", 5 << 20))
        between = os.path.isdir(f"{place.path}/queuectl.w1/3.1")
        groups.close()

        assert (between, below(place)) == (False, [])

    def test_a_group_somebody_lives_in_is_removed_when_they_are_gone(self, place: Place) -> None:
        groups = Groups(place, "w1")
        group = groups.make("3.1", 5 << 20)
        procs = Path(group.path, "cgroup.procs")
        procs.write_text("7\n")

        groups.drop(group)
        was_left = procs.exists()
        procs.write_text("")
        groups.drop(groups.make("4.1", 5 << 20))

        assert was_left
        assert not procs.exists()
        groups.close()

    def test_a_group_that_cannot_be_limited_is_not_left(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        groups = Groups(place, "w1")

        def refuse(path: str, text: str) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

        with monkeypatch.context() as patched:
            patched.setattr(cgroups, "_write", refuse)
            with pytest.raises(OSError, match="Invalid argument"):
                groups.make("3.1", 1)
        groups.close()

        assert below(place) == []

    def test_a_sweep_removes_what_dead_workers_left_and_nothing_else(self, place: Place) -> None:
        living, dead = Groups(place, "living"), Groups(place, "dead")
        living.make("1.1", 5 << 20)
        dead.make("2.1", 5 << 20)
        busy = dead.make("2.2", 5 << 20)
        Path(busy.path, "cgroup.procs").write_text("7\n")
        os.close(dead._lock)  # as its death does
        for name in (cgroups.MAIN, "other.service"):
            os.mkdir(f"{place.path}/{name}")

        cgroups.sweep(place)
        first = below(place), os.listdir(f"{place.path}/queuectl.dead")
        Path(busy.path, "cgroup.procs").write_text("")
        cgroups.sweep(place)

        assert first[0] == ["other.service", "queuectl.dead", "queuectl.living", cgroups.MAIN]
        assert "2.2" in first[1]
        assert "2.1" not in first[1]
        assert below(place) == ["other.service", "queuectl.living", cgroups.MAIN]
        assert os.path.isdir(f"{place.path}/queuectl.living/1.1")
        os.close(living._lock)

    def test_a_sweep_between_making_and_locking_does_not_take_the_group_away(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lock = fcntl.flock
        swept: list[bool] = []

        def sweep_first(fd: int, operation: int) -> None:
            if not swept:
                swept.append(True)
                cgroups.sweep(place)
            lock(fd, operation)

        monkeypatch.setattr(fcntl, "flock", sweep_first)
        groups = Groups(place, "w1")

        assert below(place) == ["queuectl.w1"]
        groups.close()


@pytest.fixture
def real_groups() -> Iterator[Groups]:
    """Groups of the kernel itself."""
    with handed_over() as place:
        groups = Groups(place, f"test{os.getpid()}")
        yield groups
        groups.close()


def test_a_command_that_needs_more_than_its_group_has_is_killed_and_counted(real_groups: Groups) -> None:
    group = real_groups.make("1.1", 64 << 20)
    wanted = prepare.plan(Launch(memory_bytes=64 << 20), group.path)

    argv = [sys.executable, "-c", "x = bytearray(1 << 30)"]
    status = os.waitpid(spawn(argv, dict(os.environb), "/", stdin=0, output=1, preparation=wanted), 0)[1]
    kills = group.kills()
    real_groups.drop(group)

    assert (os.WTERMSIG(status), kills) == (9, 1)
