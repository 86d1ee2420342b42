"""Needs: what a worker has against what a job asks, and which units it gets."""

import pytest

from queuectl.errors import BadInput
from queuectl.model.duty import Duty, read_duty
from queuectl.model.needs import (
    NUMBERED,
    Needs,
    Supply,
    check_resources,
    fits,
    needs_text,
    read_needs,
    take,
    unit_texts,
    without,
)


def test_one_meaning_has_one_spelling() -> None:
    one = needs_text(("gpu", "linux"), {"mem": 1, "gpu": 2})

    assert one == needs_text(("linux", "gpu", "gpu"), {"gpu": 2, "mem": 1})
    assert read_needs(one) == Needs(labels=("gpu", "linux"), use={"gpu": 2, "mem": 1})
    assert (needs_text((), {}), read_needs("")) == ("", Needs())


def test_what_a_worker_lacks_is_named() -> None:
    supply = Supply(labels=("linux",), resources={"gpu": 1, "mem": 8 << 30})

    assert supply.missing(Needs(labels=("gpu", "linux"), use={"gpu": 2, "mem": 4 << 30})) == ["gpu", "gpu=2"]
    assert supply.could_take(Needs(use={"gpu": 1}))


def test_units_have_numbers_and_amounts_do_not() -> None:
    supply = Supply(resources={"gpu": 3, "mem": 8 << 30})
    free = supply.left([{"gpu": [1], "mem": 1 << 30}])

    units = take({"gpu": 2, "mem": 2 << 30}, free)

    assert units == {"gpu": [0, 2], "mem": 2 << 30}
    assert without(free, units) == {"gpu": [], "mem": 5 << 30}
    assert unit_texts(units) == {"GPU": "0,2", "MEM": str(2 << 30)}
    assert not fits({"gpu": 1}, without(free, units))


def test_up_to_a_thousand_are_numbered() -> None:
    free = Supply(resources={"slot": NUMBERED, "much": NUMBERED + 1}).left([])

    assert (free["much"], len(free["slot"])) == (NUMBERED + 1, NUMBERED)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["gpu", "gpu=", "gpu=-1", "gpu=0", "gpu=1.5", "gpu=x", "=1", "gpu=1,", "gpu=1,gpu=2", "a-b=1,a.b=2"]
)
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        check_resources("use", text)


@pytest.mark.parametrize(
    "queues, weights",
    [(["a:3", "b:1"], {"a": 3, "b": 1}), (["a", "b"], {}), (["a:2", "b"], {"a": 2, "b": 1}), (None, {})],
)
def test_weights_are_read_with_the_queues(queues: list[str] | None, weights: dict[str, int]) -> None:
    assert read_duty(queues).weights == weights


@pytest.mark.parametrize("text", ["a:0", "a:", "a:x", "a:1001", ":3", "a:1:2"])
def test_a_bad_weight_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_duty([text])


def test_a_duty_can_be_asked_for_again_by_its_words() -> None:
    duty = read_duty(["a:3", "b"], ["gpu,linux"], ["gpu=2", "mem=16G"])

    assert duty.words == [
        "--queue", "a:3", "--queue", "b:1", "--label", "gpu", "--label", "linux", "--resource", "gpu=2",
        "--resource", "mem=16GiB",
    ]  # fmt: skip
    assert Duty.of_map({**duty.as_dict(), "queues": ["a", "b"], "labels": ["gpu", "linux"]}) == duty
