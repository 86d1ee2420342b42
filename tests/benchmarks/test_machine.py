"""The machine: on which file system a folder is."""

from benchmarks.machine import file_system_of

MOUNTS = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmpfiles xfs rw 0 0\n"


def test_the_innermost_mount_that_holds_a_folder_counts() -> None:
    assert file_system_of("/tmp", MOUNTS) == "tmpfs"
    assert file_system_of("/tmp/queue", MOUNTS) == "tmpfs"
    assert file_system_of("/tmpfile", MOUNTS) == "ext4"
