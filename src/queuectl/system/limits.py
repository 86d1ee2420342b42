"""Limits: how many files this process may have open at once."""

import resource


def allow_open_files(wanted: int) -> int:
    """Raise the limit of open files to `wanted` as far as the system lets us, and return what it is now.

    Commands inherit it, so it is left alone where it suffices.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
