"""Value: frozen records with named fields, without the cost of dataclasses."""

import pytest

from queuectl.model.value import Value, columns_of


class Point(Value):
    """A value with a default."""

    x: int
    y: int = 2


class Mark(Point):
    """A value that adds a field to another."""

    name: str


class Pair(Value):
    """Another value with the fields of a point."""

    x: int
    y: int = 2


def test_fields_are_given_by_name_and_defaults_fill_the_rest() -> None:
    assert Point(x=1).as_dict() == {"x": 1, "y": 2}
    assert Point(x=1, y=5).as_dict() == {"x": 1, "y": 5}


def test_fields_are_never_given_by_place() -> None:
    with pytest.raises(TypeError):
        Point(1, 2)  # type: ignore[call-arg]


def test_a_missing_field_is_named() -> None:
    with pytest.raises(TypeError, match=r"Point: missing \['x'\], unknown \[\]"):
        Point()  # type: ignore[call-arg]


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(TypeError, match=r"unknown \['z'\]"):
        Point(x=1, z=3)  # type: ignore[call-arg]


def test_an_unknown_field_does_not_stand_in_for_a_missing_one() -> None:
    with pytest.raises(TypeError, match=r"missing \['x'\], unknown \['z'\]"):
        Point(z=3)  # type: ignore[call-arg]


def test_a_value_cannot_be_changed() -> None:
    point = Point(x=1)

    with pytest.raises(AttributeError, match="Point is frozen"):
        point.x = 2  # type: ignore[misc]

    assert point.x == 1


def test_replace_returns_a_changed_copy() -> None:
    point = Point(x=1)

    moved = point.replace(x=7)

    assert (moved.x, moved.y, point.x) == (7, 2, 1)


def test_replace_refuses_a_field_that_is_not_there() -> None:
    with pytest.raises(TypeError, match="Point has no field"):
        Point(x=1).replace(z=1)


def test_values_are_equal_when_class_and_fields_are() -> None:
    assert Point(x=1) == Point(x=1, y=2)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Pair(x=1)
    assert Point(x=1) != {"x": 1, "y": 2}


def test_equal_values_have_equal_hashes() -> None:
    assert len({Point(x=1), Point(x=1, y=2), Point(x=2), Pair(x=1)}) == 3


def test_a_row_becomes_a_value_in_the_order_of_the_fields() -> None:
    assert Mark.of_row([1, 2, "here"]) == Mark(x=1, y=2, name="here")
    assert columns_of(Mark) == "x, y, name"


@pytest.mark.parametrize("row", [[1, 2], [1, 2, "here", 4]])
def test_a_row_of_another_length_is_refused(row: list[object]) -> None:
    with pytest.raises(ValueError, match="zip"):
        Mark.of_row(row)


def test_a_value_shows_its_fields() -> None:
    assert repr(Mark(x=1, name="here")) == "Mark(x=1, y=2, name='here')"
