"""Wake-up: a touch of the wake file makes the watchers' descriptors readable."""

import os
import select
from pathlib import Path

import pytest

from queuectl.system import wake
from queuectl.system.home import Home
from queuectl.system.wake import WakeWatch, touch


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is set up."""
    home = Home(root=str(tmp_path / "home"))
    home.make()
    return home


def test_a_touch_wakes_every_watcher(home: Home) -> None:
    watches = [WakeWatch(home.wake), WakeWatch(home.wake)]
    for watch in watches:
        watch.drain()

    touch(home.wake)

    assert [is_awake(watch) for watch in watches] == [True, True]
    for watch in watches:
        watch.close()


def test_a_watcher_rests_again_after_it_took_in_what_it_saw(home: Home) -> None:
    watch = WakeWatch(home.wake)

    for _ in range(500):
        touch(home.wake)
    watch.drain()

    assert not is_awake(watch)
    watch.close()


def test_a_touch_before_the_watch_is_read_is_not_forgotten(home: Home) -> None:
    watch = WakeWatch(home.wake)
    watch.drain()

    touch(home.wake)
    touch(home.wake)

    assert is_awake(watch)
    watch.close()


def test_a_touch_makes_the_file_that_is_missing(home: Home) -> None:
    touch(home.wake)

    assert os.stat(home.wake).st_mode & 0o777 == 0o600


def test_a_touch_never_fails(tmp_path: Path) -> None:
    touch(Home(root=str(tmp_path / "nowhere")).wake)

    assert not (tmp_path / "nowhere").exists()


def test_without_a_wake_file_there_is_no_descriptor_to_watch(tmp_path: Path) -> None:
    watch = WakeWatch(Home(root=str(tmp_path / "nowhere")).wake)

    watch.drain()

    assert watch.fd is None
    watch.close()


def test_commands_do_not_inherit_the_watch(home: Home) -> None:
    watch = WakeWatch(home.wake)

    assert watch.fd is not None
    assert not os.get_inheritable(watch.fd)
    assert wake._IN_ATTRIB == 4
    watch.close()


def is_awake(watch: WakeWatch) -> bool:
    assert watch.fd is not None
    return bool(select.select([watch.fd], [], [], 0)[0])
