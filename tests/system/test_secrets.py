"""Secrets: where a value is found, in which order, and what is refused without a word of the value itself."""

import os
from pathlib import Path

import pytest

from queuectl.system.process import CannotStart
from queuectl.system.secrets import MAX_VARIABLE_BYTES, find_secrets

VALUE = b"hunter2-correct-horse"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of secrets as a user makes it."""
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    return folder


def put(folder: Path, name: str, value: bytes, mode: int = 0o600) -> Path:
    """Write a secret into a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(value)
    path.chmod(mode)
    return path


def find(folder: Path, **environ: bytes) -> bytes:
    """Return what a worker with this environment finds."""
    variables = {variable.encode(): value for variable, value in environ.items()}
    return find_secrets(["KEY"], str(folder), variables)[b"KEY"]


def why_not(folder: Path, **environ: bytes) -> str:
    """Return why a secret is refused; the text never holds the value."""
    with pytest.raises(CannotStart) as caught:
        find(folder, **environ)
    assert caught.value.code == 126
    assert VALUE.decode() not in caught.value.reason
    return caught.value.reason


class TestPlaces:
    """Where a value comes from."""

    def test_the_first_place_that_has_it_decides(self, folder: Path, tmp_path: Path) -> None:
        credentials = tmp_path / "credentials"
        environ = {
            "QUEUECTL_SECRET_KEY": b"1",
            "CREDENTIALS_DIRECTORY": os.fsencode(credentials),
            "KEY": b"4",
        }
        in_credentials = put(credentials, "KEY", b"2")
        in_folder = put(folder, "KEY", b"3")

        assert find(folder, **environ) == b"1"
        del environ["QUEUECTL_SECRET_KEY"]
        assert find(folder, **environ) == b"2"
        in_credentials.unlink()
        assert find(folder, **environ) == b"3"
        in_folder.unlink()
        assert find(folder, **environ) == b"4"

    def test_each_name_is_found_for_itself(self, folder: Path) -> None:
        put(folder, "A", b"1")

        found = find_secrets(["A", "B"], str(folder), {b"QUEUECTL_SECRET_B": b"2", b"C": b"3"})

        assert found == {b"A": b"1", b"B": b"2"}

    @pytest.mark.parametrize("text, value", [(b"v\n", b"v"), (b"v\n\n", b"v\n"), (b"v", b"v"), (b" v \r\n", b" v \r")])
    def test_the_last_newline_of_a_file_is_no_part_of_the_value(self, folder: Path, text: bytes, value: bytes) -> None:
        put(folder, "KEY", text)

        assert find(folder) == value

    def test_a_file_that_may_only_be_read_will_do(self, folder: Path) -> None:
        put(folder, "KEY", VALUE, mode=0o400)

        assert find(folder) == VALUE

    def test_credentials_are_as_systemd_makes_them(self, folder: Path, tmp_path: Path) -> None:
        put(tmp_path / "credentials", "KEY", VALUE, mode=0o440)  # its group bits are the mask of an ACL

        assert find(folder, CREDENTIALS_DIRECTORY=os.fsencode(tmp_path / "credentials")) == VALUE


class TestRefusals:
    """What cannot be given to a command."""

    def test_a_secret_that_is_nowhere_says_where_it_was_looked_for_and_how_to_make_it(self, tmp_path: Path) -> None:
        folder = tmp_path / "secrets"

        reason = why_not(folder, CREDENTIALS_DIRECTORY=b"/run/credentials/q.service")

        assert reason == (
            "secret KEY: not found as variable QUEUECTL_SECRET_KEY, /run/credentials/q.service/KEY, "
            f"{folder}/KEY or variable KEY of the worker "
            f"(run: mkdir -p -m 700 {folder} && install -m 600 /dev/stdin {folder}/KEY)"
        )

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644])
    def test_a_file_open_to_others_says_how_to_close_it(self, folder: Path, mode: int) -> None:
        path = put(folder, "KEY", VALUE, mode)

        reason = why_not(folder, KEY=VALUE)

        assert reason == f"secret KEY: {path} is open to other users, mode {mode:o} (run: chmod 600 {path})"

    def test_a_folder_that_others_may_write_to(self, folder: Path) -> None:
        put(folder, "KEY", VALUE)
        folder.chmod(0o770)

        assert why_not(folder) == f"secret KEY: others may write to {folder} (run: chmod 700 {folder})"

    def test_a_file_of_another_user(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = put(folder, "KEY", VALUE)
        somebody = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: somebody)

        assert why_not(folder) == f"secret KEY: {path} belongs to another user (run: sudo chown {somebody} {path})"

    @pytest.mark.parametrize("kind", ["folder", "pipe"])
    def test_what_is_not_a_file(self, folder: Path, kind: str) -> None:
        path = folder / "KEY"
        os.mkdir(path) if kind == "folder" else os.mkfifo(path)

        assert why_not(folder).startswith(f"secret KEY: {path} is not a file (")

    @pytest.mark.parametrize(
        "value, words",
        [
            (b"", "is empty"),
            (VALUE + b"\0", "holds a NUL"),
            (VALUE + b"x" * MAX_VARIABLE_BYTES, "is longer than a variable may be, 128 KiB"),
        ],
    )
    def test_what_cannot_be_the_value_of_a_variable(self, folder: Path, value: bytes, words: str) -> None:
        path = put(folder, "KEY", value)

        assert why_not(folder).startswith(f"secret KEY: {path} {words} (")
        assert why_not(folder, QUEUECTL_SECRET_KEY=value).startswith(
            f"secret KEY: the variable QUEUECTL_SECRET_KEY of the worker {words} ("
        )

    def test_the_longest_value_that_the_kernel_takes(self, folder: Path) -> None:
        longest = b"x" * (MAX_VARIABLE_BYTES - len("KEY="))
        put(folder, "KEY", longest + b"\n")

        assert find(folder) == longest
        put(folder, "KEY", longest + b"x")
        assert "longer" in why_not(folder)

    def test_a_file_that_cannot_be_read_now_is_no_fault_of_the_command(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_room(*_: object) -> int:
            raise OSError(24, os.strerror(24))

        monkeypatch.setattr(os, "open", no_room)

        with pytest.raises(CannotStart) as caught:
            find(folder)

        assert caught.value.is_passing
