"""Line formats: which one an export is written in, and what the lines of earlier ones lack."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Shape = dict[str, object]

FORMAT = 4
"""1: before queues had settings, jobs needs and limits. 2: before jobs could run after others, have keys and groups.
3: before runs knew how long they had waited, and in which queue they ran."""

# What lines of an earlier format lack, and what that means.
ADDED: "Mapping[str, Shape]" = {
    "queue": dict.fromkeys(("concurrency", "rate", "next_start_at", "timeout_ms", "max_retries", "priority")),
    "job": {
        **dict.fromkeys(("policy", "launch", "input", "deadline_ms", "deadline_at", "parked_for")),
        "needs": [],
        "use": {},
        "mutex": [],
        "limits": [],
        "at_most": [],
        "units": {},
        "after": [],
        **dict.fromkeys(
            ("on_dead_dependency", "starved_at", "unique", "unique_for_ms", "unique_until", "group", "waited_ms"),
        ),
    },
    "run": {"waited_ms": None},
}
