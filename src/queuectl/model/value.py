"""Value: the base of the small frozen classes that flow from verb to verb.

Not `dataclasses`: importing it (it pulls in `inspect`) costs more than opening the database, and `queuectl enqueue`
is called in shell loops (docs/adr/0003-start-up-time.md). Type checkers see a frozen, keyword-only dataclass.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        """Stand in for typing's marker, which says nothing at run time."""
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
class Value:
    """A frozen record: fields are the annotations of the class, in order; a default is the class attribute."""

    if TYPE_CHECKING:
        FIELDS: ClassVar[tuple[str, ...]] = ()
        _DEFAULTS: ClassVar[dict[str, object]] = {}
        _NAMES: ClassVar[frozenset[str]] = frozenset()
    else:
        FIELDS = ()
        _DEFAULTS = {}
        _NAMES = frozenset()

        def __init__(self, **fields):
            own = self.__dict__
            own.update(self._DEFAULTS)
            own.update(fields)
            if own.keys() != self._NAMES:
                raise TypeError(_mismatch(type(self), fields))

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__annotations__ if not name.isupper())
        cls.FIELDS = (*cls.FIELDS, *own)
        cls._DEFAULTS = {
            **cls._DEFAULTS,
            **{name: cls.__dict__[name] for name in own if name in cls.__dict__},
        }
        cls._NAMES = frozenset(cls.FIELDS)

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Self":
        """Build from values in the order of the fields, as a statement over `columns_of(cls)` returns them."""
        value = cls.__new__(cls)
        value.__dict__.update(zip(cls.FIELDS, row, strict=True))
        return value

    def replace(self, **changes: object) -> "Self":
        """Return a copy with some fields changed."""
        if not changes.keys() <= self._NAMES:
            raise TypeError(f"{type(self).__name__} has no field {sorted(changes.keys() - self._NAMES)}")
        value = type(self).__new__(type(self))
        own = value.__dict__
        own.update(self.__dict__)
        own.update(changes)
        return value

    def as_dict(self) -> "dict[str, object]":
        """Return the fields and their values, in order."""
        return {name: self.__dict__[name] for name in self.FIELDS}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({shown})"


def columns_of(cls: "type[Value]") -> str:
    """Return the fields of a class as the column list of a statement."""
    return ", ".join(cls.FIELDS)


def _mismatch(cls: "type[Value]", fields: "dict[str, object]") -> str:
    missing = [name for name in cls.FIELDS if name not in fields and name not in cls._DEFAULTS]
    unknown = [name for name in fields if name not in cls.FIELDS]
    return f"{cls.__name__}: missing {missing}, unknown {unknown}"
