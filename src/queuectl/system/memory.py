"""Memory: telling the allocator what a long-running process wants."""

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_KEEP_BYTES = 4 << 20


def keep_freed_memory() -> None:
    """Keep a few freed megabytes instead of handing them back to the kernel each time.

    SQLite drops its page cache whenever another process has written. Given back and faulted in again, those pages
    cost two workers side by side a third of their rate (docs/performance.md).
    """
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc; elsewhere there is nothing to tell
        libc.mallopt(_M_MMAP_THRESHOLD, _KEEP_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
        libc.mallopt(_M_TOP_PAD, 1 << 18)
