"""Database URLs as people may see them."""

import re

FILE_PARAMETERS = (
    "passfile",
    "servicefile",
    "sslcert",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslkeylogfile",
    "sslrootcert",
)
"""What in a PostgreSQL URL names a file of this host."""
_NAMES_THE_STORE = "servicefile"
"""The one of them that says which store it is; the others say how to get there."""


def without_password(url: str) -> str:
    """Return a URL with its password left out, also where it is malformed; the same text when it has none."""
    scheme, slashes, rest = url.partition("//") if "//" in url else ("", "", url)
    user, at, host = rest.rpartition("@")
    name, _, password = user.partition(":")
    if at and password:
        rest = f"{name}@{host}"
    return scheme + slashes + re.sub(r"([?&]\w*pass\w*)=[^&]*", r"\1=***", rest)


def mark_of(address: str) -> str:
    """Return a short word of letters and digits for the address of a store, as it is without its password.

    The same whatever files it names to get there, and from whichever folder.
    """
    try:
        from _blake2 import blake2b  # hashlib would bring OpenSSL, and a tenth of a worker's start
    except ImportError:
        from hashlib import blake2b

    return blake2b(_without_files(address).encode(errors="surrogateescape"), digest_size=6).hexdigest()


def _without_files(address: str) -> str:
    if "?" not in address:
        return address
    names = "|".join(name for name in FILE_PARAMETERS if name != _NAMES_THE_STORE)
    return re.sub(rf"([?&](?:{names})=)[^&]*", r"\1", address)
