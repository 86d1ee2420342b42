"""What can be set for a queue: how it is read, taken back, refused, and shown."""

import pytest

from queuectl.errors import BadInput, UnknownName
from queuectl.model.queue import Queue, queue_columns, queue_settings_shape


@pytest.mark.parametrize(
    "fields, columns",
    [
        ({"concurrency": 4}, {"concurrency": 4}),
        ({"concurrency": "4"}, {"concurrency": 4}),
        ({"rate": "10/m"}, {"rate_count": 10, "rate_period_ms": 60_000}),
        ({"rate": None}, {"rate_count": None, "rate_period_ms": None}),
        ({"rate": " None "}, {"rate_count": None, "rate_period_ms": None}),
        ({"timeout": "5m"}, {"timeout_ms": 300_000}),
        ({"timeout": 0}, {"timeout_ms": 0}),
        ({"max_retries": "0", "priority": "-3"}, {"max_retries": 0, "priority": -3}),
        ({"timeout": "none", "concurrency": None}, {"timeout_ms": None, "concurrency": None}),
    ],
)
def test_settings_are_read_by_their_columns(fields: dict[str, object], columns: dict[str, int | None]) -> None:
    assert queue_columns(fields) == columns


@pytest.mark.parametrize(
    "fields, words",
    [
        ({}, "nothing to set"),
        ({"concurrency": 0}, "concurrency 0 would let nothing run"),
        ({"concurrency": " 0 "}, "concurrency 0 would let nothing run"),
        ({"concurrency": -1}, "concurrency -1 is out of range"),
        ({"concurrency": True}, "concurrency must be a whole number"),
        ({"concurrency": "many"}, "concurrency must be a whole number"),
        ({"rate": "10"}, "bad rate '10'"),
        ({"rate": 10}, "rate must be text"),
        ({"timeout": "soon"}, "timeout: bad duration"),
        ({"max_retries": -1}, "max_retries -1 is out of range"),
        ({"priority": 10**10}, "is out of range"),
    ],
)
def test_what_cannot_be_set_is_refused_with_its_value(fields: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        queue_columns(fields)


def test_a_setting_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'concurrency'"):
        queue_columns({"concurency": 3})


def test_settings_are_shown_as_they_are_handed_in() -> None:
    queue = Queue(name="mail", paused_at=None, created_at=0, concurrency=4, rate_count=3, rate_period_ms=10_000,
                  timeout_ms=1_500, max_retries=0, priority=-1)  # fmt: skip

    shape = queue_settings_shape(queue)

    assert shape == {"concurrency": 4, "rate": "3/10s", "timeout": 1.5, "max_retries": 0, "priority": -1}
    assert queue_columns(shape).items() <= queue.as_dict().items()
