"""Address: what the address of a page may ask for."""

from queuectl.errors import UnknownName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def check_names(given: "Iterable[str]", known: tuple[str, ...]) -> None:
    """Raise for a name that a page does not know: what it asks for would be left out silently."""
    for name in given:
        if name not in known:
            raise UnknownName.among("filter", name, known)
