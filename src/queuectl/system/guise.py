"""Guise: the arguments and the environment that others read of this process, changed without a new program."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PR_SET_MM = 35
_PR_SET_MM_MAP = 14
_PR_SET_MM_MAP_SIZE = 15
_MAP = "=12QIi"
"""The kernel's struct prctl_mm_map: twelve addresses, the size of an auxiliary vector (0: as it is) and a file (-1)."""
_STAT_FIELDS = (26, 27, 45, 46, 47, None, 28)
"""Where /proc/self/stat has the first addresses of that struct; the end of the heap (None) is the C library's word."""

_shown: list[object] = []  # what the kernel shows of us from now on must stay where it is


def can_change() -> bool:
    """Whether this kernel lets a process say where its arguments and its environment lie."""
    import ctypes
    import struct

    libc, size = ctypes.CDLL(None), ctypes.c_uint(0)
    if not hasattr(libc, "prctl"):
        return False  # not Linux
    asked = libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP_SIZE, ctypes.byref(size), 0, 0)
    return bool(asked == 0 and size.value == struct.calcsize(_MAP))


def appear_as(argv: "Sequence[str]", env: "Mapping[str, str]") -> bool:
    """Take on an environment, here and in /proc, and arguments there; False means that others do not see it.

    Not by writing over what the program was started with: there is no room for a variable more, and the C library
    reads its variables there.
    """
    _take_on(env)
    words, variables = _block(argv), _block([f"{name}={value}" for name, value in env.items()])
    try:
        _show(words, variables)
        with open("/proc/self/environ", "rb") as file:
            return file.read() == variables
    except OSError:
        return False


def _take_on(env: "Mapping[str, str]") -> None:
    """Make an environment this process's own, for its C library, too."""
    for name in [name for name in os.environ if name not in env]:
        del os.environ[name]
    for name, value in env.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _block(words: "Sequence[str]") -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _show(words: bytes, variables: bytes) -> None:
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    libc.sbrk.restype = ctypes.c_void_p
    libc.sbrk.argtypes = [ctypes.c_ssize_t]
    places = []
    for block in (words, variables):
        buffer = ctypes.create_string_buffer(block, len(block))
        _shown.append(buffer)
        places += [ctypes.addressof(buffer), ctypes.addressof(buffer) + len(block)]
    with open("/proc/self/stat", "rb") as file:
        stat = file.read().rpartition(b")")[2].split()  # from the third field on
    brk = int(libc.sbrk(0))
    addresses = [brk if field is None else int(stat[field - 3]) for field in _STAT_FIELDS]
    layout = struct.pack(_MAP, *addresses, *places, 0, 0, -1)
    if libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, layout, len(layout), 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot show other arguments")
