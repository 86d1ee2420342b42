"""Batch: many jobs that differ in little, each kept as what it alone says. Reading a file of them is in joblines.py."""

from collections.abc import Sequence

from queuectl.model.job import JobSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Batch(Sequence[JobSpec]):
    """Jobs over one `base`, which has what all of them share; each is made when somebody looks at it.

    A hundred thousand whole jobs take longer to make than to write.
    """

    __slots__ = ("base", "changes", "names")

    def __init__(self, base: JobSpec, changes: "Sequence[dict[str, object]]") -> None:
        self.base = base
        self.changes = changes
        """What each of them says itself, by the fields of a JobSpec."""
        self.names = frozenset[str]().union(*changes)
        """All fields that any of them says."""

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        if isinstance(place, slice):
            return [self.base.replace(**each) for each in self.changes[place]]
        return self.base.replace(**self.changes[place])

    def __iter__(self) -> "Iterator[JobSpec]":
        replace = self.base.replace
        return (replace(**each) for each in self.changes)

    @property
    def given_ids(self) -> "list[str | None]":
        """The id that somebody gave each of them."""
        return self.column("given_id") if "given_id" in self.names else [None] * len(self.changes)  # type: ignore[return-value]

    def column(self, name: str, default: object = None) -> "list[object]":
        """Return what each of them says of a field, or `default` where it says nothing."""
        return [each.get(name, default) for each in self.changes]
