"""Database URLs as people may see them."""

import re


def without_password(url: str) -> str:
    """Return a URL with its password left out, also where it is malformed; the same text when it has none."""
    scheme, slashes, rest = url.partition("//") if "//" in url else ("", "", url)
    user, at, host = rest.rpartition("@")
    name, _, password = user.partition(":")
    if at and password:
        rest = f"{name}@{host}"
    return scheme + slashes + re.sub(r"([?&]\w*pass\w*)=[^&]*", r"\1=***", rest)


def mark_of(address: str) -> str:
    """Return a short word of letters and digits for the address of a store, as it is without its password."""
    try:
        from _blake2 import blake2b  # hashlib would bring OpenSSL, and a tenth of a worker's start
    except ImportError:
        from hashlib import blake2b

    return blake2b(address.encode(errors="surrogateescape"), digest_size=6).hexdigest()
