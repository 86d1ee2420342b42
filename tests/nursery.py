"""Nursery: processes of the program that begin where its imports are done, for the thousands of calls that tests make.

To start Python and import what a command needs takes ten times as long as the command. So one process imports it all
once, and a child of it becomes the program: its own pid, streams, folder, environment and exit code, its own
connections; what it starts in turn is started as ever. What must not be left out by this is called as users call it:
whatever stays in the foreground, all that runs under another program, and what an environment changes as Python starts.
"""

import array
import atexit
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NoReturn, TextIO

READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "TZ")
FDS = 4
REQUEST_BYTES = 1 << 16  # what every kernel takes as one message


def suits(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether a call is the same in a child of this process's nursery as in a process of its own."""
    stays = words[:1] == ("serve",) or words[:2] == ("worker", "start")
    if stays and "--until-idle" not in words:
        return False
    return _at_start(environ) == _at_start(os.environ) and len(json.dumps([words, dict(environ)])) < REQUEST_BYTES


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str,
    streams: tuple[BinaryIO, BinaryIO, BinaryIO],
    timeout: float,
) -> int:
    """Run the program with these streams and return its exit code, less than 0 for a signal; as subprocess does."""
    ended, tell = os.pipe()
    try:
        request = json.dumps({"argv": list(argv), "environ": dict(environ), "cwd": cwd}).encode()
        _send(request, [*(stream.fileno() for stream in streams), tell])
    finally:
        os.close(tell)
    with open(ended, "rb") as file:
        pid = int(file.readline())
        ready, _, _ = select.select([file], [], [], timeout)
        if not ready:
            os.kill(pid, signal.SIGKILL)
            file.readline()
            raise subprocess.TimeoutExpired(list(argv), timeout)
        return int(file.readline())


def _at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(READ_AT_START)}


class _Door:
    """The way to the nursery of this process, which is there from the first call on and goes with it."""

    lock = threading.Lock()
    way: socket.socket | None = None
    nursery: "subprocess.Popen[bytes]"
    opened_by = 0
    environ: dict[str, str] = {}  # noqa: RUF012 - there is one door


def _send(request: bytes, fds: list[int]) -> None:
    with _Door.lock:
        if _Door.way is None or _Door.opened_by != os.getpid() or _Door.environ != _at_start(os.environ):
            _open_door()
        assert _Door.way is not None
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        _Door.way.sendmsg([request], rights)


def _open_door() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # It ends when the socket closes. Its streams are nobody's, or whoever reads those of the tests would wait for it.
    nursery = subprocess.Popen(
        [sys.executable, "-P", __file__, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith("QUEUECTL_")},
        cwd="/",
    )
    theirs.close()
    if _Door.way is not None and _Door.opened_by == os.getpid():
        _Door.way.close()
        _Door.nursery.wait()
    _Door.way, _Door.nursery, _Door.opened_by, _Door.environ = ours, nursery, os.getpid(), _at_start(os.environ)


# From here on: the other side.


def _serve(door: socket.socket) -> NoReturn:
    """Start a child for each request, and tell how it ended, until nobody can ask any more."""
    _import_all()
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    told: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([door.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(told)
        if door.fileno() in ready:
            request, fds, _, _ = socket.recv_fds(door, 2 * REQUEST_BYTES, FDS)
            if not request:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (door.fileno(), woken, wake, fds[3], *told.values()):
                    os.close(fd)
                _become(json.loads(request), fds[:3])
            os.write(fds[3], b"%d\n" % pid)
            told[pid] = fds[3]
            for fd in fds[:3]:
                os.close(fd)


def _tell_ended(told: dict[int, int]) -> None:
    for pid in [*told]:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            fd = told.pop(pid)
            try:
                os.write(fd, b"%d\n" % os.waitstatus_to_exitcode(status))
            except BrokenPipeError:
                pass  # whoever asked has gone
            os.close(fd)


def _import_all() -> None:
    """Import what the commands import when they need it, without the terminal's things and the server's."""
    import gc
    from importlib import import_module

    from queuectl.cli import main

    for module in {module for module, _ in main.COMMANDS.values()} - {"serve"}:
        import_module(f"queuectl.cli.{module}")
    for name in ("queuectl.store.postgres", "queuectl.runtime.supervisor", "queuectl.actions.submit"):
        import_module(name)
    gc.collect()
    gc.freeze()


def _become(request: dict[str, object], fds: list[int]) -> NoReturn:
    """Be the program, as if this process had been started as it."""
    code = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        environ, argv, cwd = request["environ"], request["argv"], request["cwd"]
        assert isinstance(environ, dict)
        assert isinstance(argv, list)
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(str(cwd))
        sys.argv = argv
        sys.stdin, sys.stdout, sys.stderr = _like(sys.stdin), _like(sys.stdout), _like(sys.stderr)
        from queuectl.cli.main import entry

        code = _exit_code(entry)  # it leaves by itself, unless a thread or an error keeps it
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = 120  # as Python itself
    finally:
        os._exit(code)


def _like(stream: TextIO) -> TextIO:
    """Open a standard stream anew, as Python had opened it when this process began."""
    fd = stream.fileno()
    raw = open(fd, "rb" if fd == 0 else "wb", closefd=False)  # noqa: SIM115 - it stays open
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=fd == 2)


def _exit_code(entry: object) -> int:
    try:
        assert callable(entry)
        entry()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
