"""Listening: taking a port, and the certificate that is shown there. Light: it is asked before anything is served."""

import os
import socket
import ssl

from queuectl.errors import BadInput


def bind(host: str, port: int) -> socket.socket:
    """Take a port, or raise what a person can mend; port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise BadInput(f"cannot listen on {host!r}: {error}", hint="give an address of this machine") from None
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        hint = "choose another: --port 0 takes a free one" if port else "give an address of this machine"
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror}", hint=hint) from None
    return found


def check_certificate(cert: str, key: str) -> None:
    """Raise what is wrong with a certificate and its key, before the server needs them."""
    for path in (cert, key):
        if not os.path.isfile(path):
            raise BadInput(f"no file {path!r}", hint="give --tls-cert and --tls-key in PEM form")
    try:
        # The password keeps OpenSSL from asking for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadInput(
            f"cannot use certificate {cert!r} with key {key!r}: {error}",
            hint="both in PEM form, the key without a password and belonging to the certificate",
        ) from None
