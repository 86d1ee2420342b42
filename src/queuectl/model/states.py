"""The states of a job and every move between them: the one table the store, the docs and the tests read."""

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class State(StrEnum):
    """Where a job stands; a job is always in exactly one."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Move(StrEnum):
    """A named change of state; nothing else changes one."""

    START = "START"
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    BURY = "BURY"
    LOST = "LOST"
    HAND_BACK = "HAND_BACK"
    SNOOZE = "SNOOZE"
    STOP = "STOP"
    DUE = "DUE"
    DEFER = "DEFER"
    CANCEL = "CANCEL"
    PARK = "PARK"
    UNBLOCK = "UNBLOCK"
    STARVE = "STARVE"
    EXPIRE = "EXPIRE"
    HOLD = "HOLD"
    REVIVE = "REVIVE"


MEANING: dict[State, str] = {
    State.PENDING: "ready to run now",
    State.SCHEDULED: "waits for a time (`run_at`), its first run or a snooze",
    State.BLOCKED: "waits for other jobs, for a named limit that is taken, or for a person who held it",
    State.PROCESSING: "a worker is running it",
    State.COMPLETED: "exit code 0, or one of its success codes",
    State.FAILED: "an attempt failed; waits for its retry time (`run_at`)",
    State.DEAD: "in the dead letter queue (DLQ)",
    State.CANCELLED: "a person, or a dead dependency, stopped it",
}


class Hindrance(StrEnum):
    """Why a job is blocked, where only those are meant."""

    HELD = "held"
    PARKED = "parked"
    DEPENDENT = "dependent"


OTHER_NAMES = {**dict.fromkeys(map(str, Hindrance), State.BLOCKED), "running": State.PROCESSING}
STATE_NAMES: dict[str, State] = {**{state.value: state for state in State}, **OTHER_NAMES}
"""What people may call a state."""

FINAL = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})
WAITING_FOR_TIME = frozenset({State.SCHEDULED, State.FAILED})
_WAITING = frozenset({State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED})
_RUNNING = frozenset({State.PROCESSING})

MOVES: dict[Move, tuple[frozenset[State], frozenset[State]]] = {
    Move.START: (frozenset({State.PENDING}), _RUNNING),
    Move.COMPLETE: (_RUNNING, frozenset({State.COMPLETED})),
    Move.FAIL: (_RUNNING, frozenset({State.FAILED})),
    Move.BURY: (_RUNNING, frozenset({State.DEAD})),
    Move.LOST: (_RUNNING, frozenset({State.PENDING, State.FAILED, State.DEAD})),
    Move.HAND_BACK: (_RUNNING, frozenset({State.PENDING})),
    Move.SNOOZE: (_RUNNING, frozenset({State.SCHEDULED})),
    Move.STOP: (_RUNNING, frozenset({State.CANCELLED})),
    Move.DUE: (WAITING_FOR_TIME, frozenset({State.PENDING})),
    Move.DEFER: (frozenset({State.PENDING, State.FAILED}), frozenset({State.SCHEDULED})),
    Move.CANCEL: (_WAITING, frozenset({State.CANCELLED})),
    Move.PARK: (frozenset({State.PENDING, State.SCHEDULED, State.FAILED}), frozenset({State.BLOCKED})),
    Move.UNBLOCK: (frozenset({State.BLOCKED}), frozenset({State.PENDING, State.SCHEDULED})),
    Move.STARVE: (frozenset({State.BLOCKED}), frozenset({State.CANCELLED})),
    Move.EXPIRE: (_WAITING, frozenset({State.DEAD})),
    Move.HOLD: (frozenset({State.PENDING, State.SCHEDULED, State.FAILED}), frozenset({State.BLOCKED})),
    Move.REVIVE: (FINAL, frozenset({State.PENDING, State.SCHEDULED, State.BLOCKED})),
}

WHY: dict[Move, str] = {
    Move.START: "a worker claims it",
    Move.COMPLETE: "the command ended with exit code 0, or with one of its success codes",
    Move.FAIL: "the run failed, retries are left and its policy and deadline allow one",
    Move.BURY: "the run failed and no retry is left, or its policy or deadline allows none",
    Move.LOST: "its worker died; counted in `losses`, not in `attempts`",
    Move.HAND_BACK: "its worker was told to stop at once, or took it ahead and did not begin it; not charged",
    Move.SNOOZE: "the command asked to be run later; not charged",
    Move.STOP: "cancelled while running, after its process tree was gone",
    Move.DUE: "its time has come, or a person said `retry`",
    Move.DEFER: "a person gave it a later time",
    Move.CANCEL: "a person cancelled it while it waited",
    Move.PARK: "a named limit it needs is taken, or a job it runs after was retried with its dependents",
    Move.UNBLOCK: "what it waited for is there, or a person released it",
    Move.STARVE: "a job it waited for ended otherwise than it asked",
    Move.EXPIRE: "its deadline passed before it could run",
    Move.HOLD: "a person held it",
    Move.REVIVE: "a person gave it, or what had starved it, a fresh life; history is kept",
}


def hindrances(names: "Sequence[str]") -> tuple[Hindrance, ...]:
    """Return why the jobs are blocked that such names of states mean; empty where it does not matter."""
    if State.BLOCKED in names:
        return ()
    return tuple(each for each in Hindrance if each in names)


def moves_from(state: State) -> list[Move]:
    """Return the moves that may leave a state."""
    return [move for move, (sources, _) in MOVES.items() if state in sources]
