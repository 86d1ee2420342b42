"""Serve the dashboard, the REST API and the metrics of a store over HTTP, until Ctrl-C.

On loopback (the default) no login is needed. Any other address, or a proxy before it (--root-path), demands a token:
see queuectl token.
"""

import sys
from contextlib import closing

from queuectl.cli.store import connect, target_of
from queuectl.cli.text import note, print_json
from queuectl.errors import BadInput, QueuectlError, Refused
from queuectl.model.checks import as_whole
from queuectl.model.patterns import ascii_pattern
from queuectl.store import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args, Parser
    from queuectl.web.reach import Reach

EXAMPLES = """\
  queuectl serve                                        http://127.0.0.1:8787, for this machine alone
  queuectl serve --port 0                               on a free port; says which
  queuectl serve --host 0.0.0.0 --allow-host q.example.org --tls-cert cert.pem --tls-key key.pem
  queuectl serve --root-path /queue                     behind a proxy that serves it below /queue
"""
PORT = 8787
_HOST_NAME = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?"
_ROOT_PATH = r"(/[A-Za-z0-9._~-]+)*/?"


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="listen here (default: 127.0.0.1)")
    parser.add_argument(
        "--port", metavar="N", default=str(PORT), help=f"on this port; 0 = a free one (default: {PORT})"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="serve https with this certificate chain, in PEM form")
    parser.add_argument("--tls-key", metavar="FILE", help="the private key of that certificate")
    parser.add_argument(
        "--root-path", metavar="/PATH", help="a proxy serves it below this path (/ = at the top); demands a token"
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", help="a name people reach it by; may be repeated"
    )
    parser.add_argument("--access-log", action="store_true", help="print a line for each request")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Serve until told to stop."""
    from queuectl.web.listening import bind, check_certificate

    # Before what takes a second to import: whoever mistyped a flag is told at once.
    port = as_whole("port", args.port, 0, 65535)
    certificate = _certificate(args)
    _check_names(args)
    if certificate is not None:
        check_certificate(*certificate)
    try:
        from queuectl.web.app import make_app, warm_up
        from queuectl.web.serving import leave_the_stuck, make_server
    except ImportError as error:
        raise _missing(error) from None
    with closing(bind(args.host.strip("[]"), port)) as listener:
        reach = _reach(args, listener, is_tls=certificate is not None)
        target = target_of(args)
        _check_entry(target, reach)
        app = make_app(target, reach)
        warm_up(app)
        server = make_server(
            app,
            certificate=certificate,
            access_log=args.access_log,
            on_started=lambda: _tell(args, reach, listener.getsockname()[1]),
        )
        server.run([listener])
    leave_the_stuck()
    return 0


def _missing(error: ImportError) -> Exception:
    """Return what to say of a package that is not there; a part of ours that is not there is a bug."""
    package = (error.name or str(error)).partition(".")[0]
    if package == "queuectl":
        return error
    return QueuectlError(
        f"queuectl serve needs the extra 'web': the package {package} is missing",
        hint="install it: pip install 'queuectl[web]'",
    )


def _certificate(args: "Args") -> tuple[str, str] | None:
    if (args.tls_cert is None) != (args.tls_key is None):
        missing = "--tls-key" if args.tls_key is None else "--tls-cert"
        raise BadInput(f"{missing} missing", hint="https needs both --tls-cert FILE and --tls-key FILE")
    return None if args.tls_cert is None else (args.tls_cert, args.tls_key)


def _check_names(args: "Args") -> None:
    for flag, name in (("--host", args.host), *(("--allow-host", each) for each in args.allow_host or ())):
        if not (ascii_pattern(_HOST_NAME).fullmatch(name) or _is_address(name.strip("[]"))):
            raise BadInput(f"bad {flag} {name!r}", hint="give a name or an address, without port or scheme")
    if args.root_path is not None and not ascii_pattern(_ROOT_PATH).fullmatch(args.root_path or "-"):
        raise BadInput(f"bad --root-path {args.root_path!r}", hint="write it as in the address: /queue")


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _reach(args: "Args", listener: "socket.socket", *, is_tls: bool) -> "Reach":
    from queuectl.web.reach import Reach, is_loopback

    return Reach(
        host=args.host.strip("[]").lower(),
        names=tuple(name.strip("[]").lower() for name in args.allow_host or ()),
        is_local=is_loopback(listener.getsockname()[0]),
        root_path=(args.root_path or "").rstrip("/"),
        is_proxied=args.root_path is not None,
        is_tls=is_tls,
    )


def _check_entry(target: "Target", reach: "Reach") -> None:
    """Open the store, and refuse to serve where nobody could log in, or where anybody could come in without."""
    with closing(connect(target)) as database:
        if reach.needs_token and not database.read(tokens.has_usable):
            where = "behind a proxy (--root-path)" if reach.is_proxied else f"on {reach.host}"
            raise Refused(
                f"serving {where} needs a token, and there is none that is good",
                hint="make one: queuectl token add NAME --role admin; without a network: --host 127.0.0.1",
            )


def _tell(args: "Args", reach: "Reach", port: int) -> None:
    host = f"[{reach.host}]" if ":" in reach.host else reach.host
    url = f"{'https' if reach.is_tls else 'http'}://{host}:{port}{reach.root_path}"
    if args.json:
        print_json({"url": url, "port": port, "tls": reach.is_tls, "login": reach.needs_token})
        sys.stdout.flush()  # whoever started it waits for this line
        return
    login = "a token is needed to log in" if reach.needs_token else "no login is needed from this machine"
    note(f"serving on {url} ({login}); Ctrl-C stops it")
    if not (reach.is_tls or reach.is_local):
        note("warning: without --tls-cert tokens and output cross the network unencrypted")
