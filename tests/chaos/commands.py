"""The commands that chaos runs: of every kind that can go wrong, each writing itself into the ledger."""

import json
import random
import shlex
from collections.abc import Callable, Mapping

from tests.chaos.ledger import Ledger

LONG_BYTES = 130 << 10  # more than the kernel takes as one argument: the shell reads such a line from a file

Spec = Mapping[str, object]
Kind = Callable[[Ledger, random.Random], Spec]


def some_job(ledger: Ledger, dice: random.Random, *tags: str) -> str:
    """Return a job of some kind as the JSON that `enqueue` reads; the common kinds come more often."""
    return job_of(dice.choices([*WEIGHTS], weights=[*WEIGHTS.values()])[0], ledger, dice, *tags)


def job_of(kind: Kind, ledger: Ledger, dice: random.Random, *tags: str) -> str:
    """Return a job of one kind as JSON, tagged with the name of its kind."""
    return json.dumps({**kind(ledger, dice), "tags": [getattr(kind, "__name__", "?"), *tags]})


def quick(ledger: Ledger, dice: random.Random) -> Spec:
    return {"command": f"{ledger.words}; begin; finish 0"}


def sleeping(ledger: Ledger, dice: random.Random) -> Spec:
    return {"command": f"{ledger.words}; begin; sleep {_seconds(dice)}; finish 0"}


def with_children(ledger: Ledger, dice: random.Random) -> Spec:
    children = " ".join(f"(sleep {_seconds(dice)}; note child) &" for _ in range(2))
    return {"command": f"{ledger.words}; begin; {children} wait; finish 0"}


# The shell waits in $( ) for all who hold its pipe, whoever their parent is: no child outlives a run by itself, so one
# that does was left behind by a rescue.
def double_forked(ledger: Ledger, dice: random.Random) -> Spec:
    child = f"sh -c {_noting_child(ledger, dice)}"
    return {"command": f"{ledger.words}; begin; x=$( ( {child} & ) ); finish 0"}


def in_own_session(ledger: Ledger, dice: random.Random) -> Spec:
    child = f"setsid sh -c {_noting_child(ledger, dice)}"
    return {"command": f"{ledger.words}; begin; x=$( ( {child} & ) ); sleep 0.2; finish 0"}


def with_cleared_child(ledger: Ledger, dice: random.Random) -> Spec:
    return {"command": f"{ledger.words}; begin; x=$( ( env -i sleep {_seconds(dice)} & ) ); finish 0"}


def with_cleared_leader(ledger: Ledger, dice: random.Random) -> Spec:
    words = f"{ledger.words}; begin; sleep {_seconds(dice)}; finish 0"
    handed_on = 'JOB="$QUEUECTL_JOB_ID" RUN="$QUEUECTL_RUN" WORKER="${QUEUECTL_CLAIM%%:*}"'
    return {"command": f"exec env -i {handed_on} /bin/sh -c {shlex.quote(words)}"}


def failing_at_first(ledger: Ledger, dice: random.Random) -> Spec:
    tries = dice.randint(1, 2)
    test = f'[ "$QUEUECTL_ATTEMPT" -gt {tries} ] && finish 0'
    return {"command": f"{ledger.words}; begin; sleep 0.1; {test}; finish 3", "max_retries": tries}


def always_failing(ledger: Ledger, dice: random.Random) -> Spec:
    return {"command": f"{ledger.words}; begin; finish 7", "max_retries": dice.randint(0, 2)}


def deaf_to_sigterm(ledger: Ledger, dice: random.Random) -> Spec:
    return {"command": f"trap '' TERM; {ledger.words}; begin; sleep {_seconds(dice)}; finish 0"}


def talkative(ledger: Ledger, dice: random.Random) -> Spec:
    much = f"yes chatter | head -c {dice.choice((20_000, 200_000, 600_000))}"
    return {"command": f"{ledger.words}; begin; {much}; sleep 0.4; {much}; sleep 0.2; finish 0"}


def too_slow(ledger: Ledger, dice: random.Random) -> Spec:
    words = f"{ledger.words}; begin; (sleep 2.5; note child) & sleep 2.5; wait; finish 0"
    return {"command": words, "timeout": f"{dice.uniform(0.3, 1):.1f}s", "max_retries": 1}


def long_line(ledger: Ledger, dice: random.Random) -> Spec:
    words = f"{ledger.words}; begin; sleep {_seconds(dice)}; finish 0"
    return {"command": f"{words} # {'x' * LONG_BYTES}"}


def killing_its_worker(ledger: Ledger, dice: random.Random) -> Spec:
    test = dice.choice(("true", '[ "$RUN" -lt 2 ]', '[ "$RUN" -lt 3 ]'))
    return {"command": f"{ledger.words}; begin; {test} && kill_worker && sleep 5; finish 0"}


WEIGHTS: dict[Kind, int] = {
    quick: 10,
    sleeping: 30,
    with_children: 8,
    double_forked: 8,
    in_own_session: 8,
    with_cleared_child: 8,
    with_cleared_leader: 5,
    failing_at_first: 6,
    always_failing: 4,
    deaf_to_sigterm: 5,
    talkative: 5,
    too_slow: 4,
    long_line: 2,
    killing_its_worker: 1,
}


def _noting_child(ledger: Ledger, dice: random.Random) -> str:
    return shlex.quote(f"{ledger.words}; sleep {_seconds(dice)}; note child")


def _seconds(dice: random.Random) -> str:
    return f"{dice.uniform(0.1, 3):.2f}"
