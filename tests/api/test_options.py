"""What can be said of a job from Python: every field of the model, in Python's own types where it has them."""

import ast
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest

from queuectl import BadInput, Queue, State
from queuectl.actions.connect import Target
from queuectl.api import fields
from queuectl.model.edit import EDITABLE
from queuectl.model.fields import FIELDS
from queuectl.model.shapes import job_shape
from tests.program import Cli


@pytest.fixture
def queue(target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Queue]:
    """A queue of each kind, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with Queue(None if target.sqlite_path else target.url, home=target.home.root) as queue:
        yield queue


def fields_of(name: str) -> set[str]:
    """Return the fields that a TypedDict of the module itself declares; they are not there at run time."""
    for node in ast.walk(ast.parse(inspect.getsource(fields))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {
                part.target.id
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            }
    raise LookupError(name)


def test_every_field_of_a_job_is_typed() -> None:
    shared = fields_of("Changeable")

    assert shared | fields_of("JobOptions") | {"command", "argv"} == set(FIELDS)
    assert shared | fields_of("EditOptions") == set(EDITABLE)


def test_every_option_reaches_the_job(queue: Queue, tmp_path: Path) -> None:
    queue.set_limit("api", 4)

    job = queue.enqueue(
        "true",
        needs=["gpu"], use={"mem": "4G", "cpu": 2}, mutex="a", limits=["api"],
        deadline=timedelta(hours=1), retry_on=[75, "timeout"], no_retry_on="2,126-127", success_codes=[0, 3],
        snooze_codes={99: timedelta(minutes=5), 98: "1h"},
        memory="1G", cpu_seconds=timedelta(minutes=1), nofile=99, file_size=1 << 20, nice=7, umask=0o027,
        shell="/bin/bash", stdin=Path("in.txt"), secrets=["TOKEN"],
    )  # fmt: skip

    shape = job_shape(job._row)
    assert {name: shape[name] for name in ("needs", "use", "mutex", "limits", "deadline")} == {
        "needs": ["gpu"],
        "use": {"cpu": 2, "mem": 4 << 30},
        "mutex": ["a"],
        "limits": ["api"],
        "deadline": 3600.0,
    }
    assert shape["policy"] == {
        "retry_on": ["75", "timeout"],
        "no_retry_on": ["2", "126", "127"],
        "success_codes": [0, 3],
        "snooze_codes": {"99": 300.0, "98": 3600.0},
    }
    assert shape["launch"] == {
        "memory": 1 << 30,
        "cpu_seconds": 60,
        "nofile": 99,
        "file_size": 1 << 20,
        "nice": 7,
        "umask": "027",
        "shell": "/bin/bash",
        "stdin": str(tmp_path / "in.txt"),
        "secrets": ["TOKEN"],
    }


def test_a_job_knows_when_its_time_is_over(queue: Queue) -> None:
    job, plain = queue.enqueue("true", deadline=timedelta(hours=1)), queue.enqueue("true")

    assert job.deadline_at is not None
    assert timedelta(minutes=59) < job.deadline_at - datetime.now(UTC) < timedelta(minutes=61)
    assert plain.deadline_at is None
    assert job.edit(deadline="none").deadline_at is None


def test_options_of_a_job_are_changed_and_taken_back(queue: Queue) -> None:
    job = queue.enqueue("true", retry_on="75", memory="1G")

    job.edit(snooze_codes=MappingProxyType({99: timedelta(seconds=1)}), retry_on="none", memory="none", umask=0o77)

    shape = job_shape(job.refresh()._row)
    assert shape["policy"] == {"snooze_codes": {"99": 1.0}}
    assert shape["launch"] == {"umask": "077"}


def test_input_and_policy_are_in_force(queue: Queue, cli: Cli) -> None:
    told = queue.enqueue("cat; exit 3", input=b"caf\xff\x00", success_codes=3)
    later = queue.enqueue("exit 99", snooze_codes={99: timedelta(hours=1)})

    cli.drain()

    assert (told.wait(check=True).exit_code, told.output_bytes()) == (3, b"caf\xff\x00")
    assert (later.state, later.attempts, later.error) == (
        State.SCHEDULED,
        0,
        "asked to run again later (exit code 99)",
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"snooze_codes": {99: timedelta(0)}}, "needs a delay"),
        ({"umask": 0o7777}, "bad umask"),
        ({"umask": True}, "umask"),
        ({"stdin": "in.txt"}, "absolute"),
        ({"deadline": timedelta(0)}, "deadline 0"),
    ],
)
def test_what_cannot_be_is_refused(queue: Queue, options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        queue.enqueue("true", **options)  # type: ignore[arg-type]
