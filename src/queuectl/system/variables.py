"""Variables: the environment of commands, as a program is given it: each with its name, and a NUL at its end."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Variables:
    """What all commands of a worker find in their environment, laid out once; what each has of its own comes on top."""

    def __init__(self, shared: "Mapping[bytes, bytes]") -> None:
        self._shared = dict(shared)
        self._shared_block = laid_out(self._shared)

    def with_own(self, own: bytes) -> dict[bytes, bytes]:
        """Return all that a command finds whose own variables are laid out; of two of one name, the later counts."""
        return self._shared | read(own)

    def blocks(self, own: bytes, *, has_others_names: bool) -> tuple[bytes, bytes]:
        """Return the same laid out, in two parts; without names that stand elsewhere too, nothing is to be compared."""
        return (b"", laid_out(self.with_own(own))) if has_others_names else (self._shared_block, own)


def laid_out(variables: "Mapping[bytes, bytes]") -> bytes:
    """Lay variables out."""
    return b"".join([b"%b=%b\0" % item for item in variables.items()])


def read(block: bytes) -> dict[bytes, bytes]:
    """Read variables that were laid out."""
    entries = [entry.partition(b"=") for entry in block.split(b"\0") if entry]
    return {name: value for name, _, value in entries}
