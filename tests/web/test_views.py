"""What pages draw: the life of a job to scale, its dependencies as a picture, its variables without secrets."""

import pytest

from queuectl.actions.graphs import graph_around
from queuectl.actions.submit import enter
from queuectl.model.attempt import Attempt
from queuectl.model.job import Job, JobSpec
from queuectl.model.spec import spec_from_fields
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from queuectl.model.visible import HIDDEN, is_secret_name, safe, shown_value
from queuectl.store import jobs
from queuectl.store.database import Database, Tx
from queuectl.web.views.picture import BOX_WIDTH, Picture, picture
from queuectl.web.views.timeline import Span, timeline
from queuectl.web.words import remedies
from tests.store.rows import NOW, SECOND, add_job


def _run(number: int, start: int, end: int | None, outcome: str = "exited", **fields: object) -> Attempt:
    known: dict[str, object] = dict.fromkeys(Attempt.FIELDS)
    known |= {"job_seq": 1, "run": number, "attempt": number, "worker_id": "w", "host": "h", "output_bytes": 0}
    known |= {"started_at": NOW + start * SECOND, "finished_at": None if end is None else NOW + end * SECOND}
    known |= {"outcome": None if end is None else OutcomeKind(outcome), "output_tail": b"", "exit_code": 0}
    return Attempt(**{**known, **fields})  # type: ignore[arg-type]


def _job(database: Database, state: State, **columns: object) -> Job:
    return add_job(database, state, **columns).replace(created_at=NOW)  # type: ignore[arg-type]


def _drawn(spans: list[Span]) -> list[tuple[str, str]]:
    return [(span.kind, span.words) for span in spans]


def test_a_life_is_drawn_from_being_added_to_its_end(db: Database) -> None:
    job = _job(db, State.DEAD)
    runs = [
        _run(1, 3, 5, exit_code=1, error="exit code 1"),
        _run(2, 7, 8, "killed", exit_code=None, signal=9, error="killed by SIGKILL: by hand"),
        _run(3, 8, 18, "timed_out", exit_code=None, error="timed out after 10s", attempt=3),
    ]

    spans = timeline(job, runs, NOW + 100 * SECOND)

    assert _drawn(spans) == [
        ("wait", "waited 3.00s"),
        ("bad", "attempt 1 2.00s exit 1"),
        ("backoff", "backoff 2.00s"),
        ("bad", "attempt 2 1.00s SIGKILL"),
        ("backoff", "backoff 0ms"),
        ("bad", "attempt 3 10s timed out"),
    ]
    assert sum(span.width for span in spans) == pytest.approx(100, abs=0.1)
    wide, short = spans[5].width, spans[1].width
    assert wide / short == pytest.approx(5, rel=0.05)
    assert all(span.width > 0.5 for span in spans)


def test_a_life_that_goes_on_ends_now_or_when_it_runs_next(db: Database) -> None:
    failed = [_run(1, 1, 2, exit_code=1, error="exit code 1")]

    running = timeline(_job(db, State.PROCESSING), [*failed, _run(2, 4, None)], NOW + 10 * SECOND)
    waiting = timeline(_job(db, State.FAILED, run_at=NOW + 9 * SECOND), failed, NOW + 5 * SECOND)
    new = timeline(_job(db, State.PENDING), [], NOW + 5 * SECOND)
    never = timeline(_job(db, State.CANCELLED, finished_at=NOW + 2 * SECOND), [], NOW + 99 * SECOND)

    assert _drawn(running)[-1] == ("run", "attempt 2 6s running")
    assert _drawn(waiting)[-2:] == [("backoff", "backoff 3s"), ("next", "runs in 4.00s")]
    assert _drawn(new) == [("wait", "waits 5s")]
    assert _drawn(never) == [("wait", "waited 2.00s cancelled")]


def test_two_runs_of_one_attempt_are_told_apart(db: Database) -> None:
    runs = [_run(1, 1, 2, exit_code=1, error="exit code 1"), _run(2, 3, 4, exit_code=1, error="exit code 1", attempt=1)]

    drawn = _drawn(timeline(_job(db, State.DEAD), runs, NOW + 9 * SECOND))

    assert [words for kind, words in drawn if kind == "bad"] == [
        "attempt 1 1.00s exit 1",
        "attempt 1 (run 2) 1.00s exit 1",
    ]


def test_what_was_not_charged_or_taken_back_is_told_apart(db: Database) -> None:
    runs = [
        _run(1, 0, 1, "lost", attempt=1, error="lost"),
        _run(2, 2, 3, "handed_back", attempt=1, error="handed back"),
        _run(3, 4, 5, attempt=1, error="exit code 2", exit_code=2),
        _run(4, 8, 9, attempt=1),
    ]

    spans = timeline(_job(db, State.COMPLETED), runs, NOW + 50 * SECOND)

    assert [span.kind for span in spans[1:]] == ["bad", "wait", "stopped", "wait", "bad", "over", "good"]


def test_a_picture_has_every_job_in_a_place_of_its_own_and_each_line_goes_right(db: Database) -> None:
    specs: list[dict[str, object]] = [
        {"id": "a", "command": "true"},
        {"id": "b", "command": "true", "after": ["a"]},
        {"id": "c", "command": "true", "after": ["a"]},
        {"id": "d", "command": "true", "after": ["b", "c", "a"]},
    ]
    enter(db, [spec_from_fields(each, NOW, JobSpec()) for each in specs], who="me", environ={})

    def draw(tx: Tx) -> Picture:
        job = jobs.find(tx, "b")
        assert job is not None
        return picture(graph_around(tx, job))

    drawn = db.read(draw)

    places = {box.node.id: (box.x, box.y) for box in drawn.boxes}
    assert len(set(places.values())) == 4
    assert places["a"][0] < places["b"][0] == places["c"][0] < places["d"][0]
    assert [box.node.id for box in drawn.boxes if box.is_asked] == ["b"]
    assert all(x + BOX_WIDTH <= drawn.width for x, _ in places.values())
    assert len(drawn.lines) == 5


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("API_TOKEN", "x", HIDDEN),
        ("db_password", "x", HIDDEN),
        ("AWS_SECRET_ACCESS_KEY", "x", HIDDEN),
        ("HOME", "/root", "/root"),
        ("DATABASE", "postgres://me:geheim@db/x", f"postgres://me:{HIDDEN}@db/x"),
        ("SITE", "https://host:80/a@b", "https://host:80/a@b"),
    ],
)
def test_what_sounds_secret_is_hidden(name: str, value: str, shown: str) -> None:
    assert shown_value(name, value) == shown
    assert is_secret_name(name) is (shown == HIDDEN)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("queuectl release 4", [("", "queuectl release 4")]),
        (
            "queuectl retry p (or, without it: queuectl edit d --after none && queuectl retry d)",
            [("", "queuectl retry p"), ("or, without it", "queuectl edit d --after none && queuectl retry d")],
        ),
        (
            "queuectl retry p q (or, without them: queuectl edit c --after none); to give it up: queuectl cancel c",
            [
                ("", "queuectl retry p q"),
                ("or, without them", "queuectl edit c --after none"),
                ("to give it up", "queuectl cancel c"),
            ],
        ),
    ],
)
def test_what_may_be_done_is_offered_command_by_command(text: str, parts: list[tuple[str, str]]) -> None:
    assert remedies(text) == parts


def test_what_steers_is_shown_and_lines_stay_where_they_are_kept() -> None:
    assert safe("a\x1b[31m\u202eb\n", kept="\n") == "a\\x1b[31m\\u202eb\n"
