"""Reach: how the server can be reached: where it listens, by which names, and whether a proxy stands before it."""

from ipaddress import ip_address

from queuectl.model.patterns import ascii_pattern
from queuectl.model.value import Value


class Reach(Value):
    """Where the server listens and what it is called there."""

    host: str = "127.0.0.1"
    """The address it listens on, or the name that was given for it."""
    names: tuple[str, ...] = ()
    """Names it answers to beside its address and those of loopback."""
    is_local: bool = True
    """Whether it listens on a loopback address alone."""
    root_path: str = ""
    is_proxied: bool = False
    """Whether requests come from a proxy, so that an address on loopback says nothing about who asks."""
    is_tls: bool = False

    @property
    def needs_token(self) -> bool:
        """Whether nobody gets in without a token."""
        return self.is_proxied or not self.is_local

    def answers_to(self, host: str, own_address: str) -> bool:
        """Whether it is called by a host name, of a request that came to `own_address`.

        A page of another site whose name was made to mean this address (DNS rebinding) sends its own name here.
        """
        return is_local_name(host) or host in (self.host, *self.names, own_address)


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine alone; a name is not looked up."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def host_of(header: str) -> str | None:
    """Return the name in a Host header, without port and brackets; None where it is none."""
    found = ascii_pattern(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?").fullmatch(header.strip())
    if found is None:
        return None
    return (found[1] or found[2]).lower().removesuffix(".") or None


def is_local_name(host: str) -> bool:
    """Whether a name can mean this machine alone: no name server is asked for these."""
    return host == "localhost" or is_loopback(host)
