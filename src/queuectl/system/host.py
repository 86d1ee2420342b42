"""This host and this process: names that tell them apart across reboots, containers and users."""

import os


def host_name() -> str:
    """Return the name of this host."""
    return os.uname().nodename


def boot_id() -> str:
    """Return a name for this boot of the kernel; pids mean nothing across two of them."""
    return _line("/proc/sys/kernel/random/boot_id")


def pid_namespace() -> str:
    """Return a name for the space in which this process's pids mean something."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def user_at_host() -> str:
    """Return who acts, for the audit trail."""
    import pwd

    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{host_name()}"


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.readline().strip()
    except OSError:
        return ""
