"""Examples of jobs as they are handed in and answered; tests/web/test_openapi.py sees that they fit their schemas."""

JOB = {"id": "thumbs", "command": "convert a.png b.png", "queue": "images", "tags": ["photos"], "max_retries": 0}
ADDED = {"id": "thumbs", "result": "added"}
ATTACHED = {
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/enqueue"},
            "example": {"id": "thumbs", "result": "attached"},
        }
    }
}
LISTED: "dict[str, object]" = {
    "id": "thumbs",
    "number": 12,
    "state": "dead",
    "command": "convert a.png b.png",
    "argv": None,
    "queue": "images",
    "priority": 0,
    "attempts": 1,
    "max_retries": 0,
    "losses": 0,
    "run": 1,
    "run_at": None,
    "created_at": "2026-01-31T08:00:00.000Z",
    "updated_at": "2026-01-31T08:00:01.250Z",
    "started_at": "2026-01-31T08:00:01.000Z",
    "finished_at": "2026-01-31T08:00:01.250Z",
    "exit_code": 1,
    "error": "exit code 1",
    "timeout": None,
    "backoff": None,
    "cwd": "/",
    "env": {},
    "tags": ["photos"],
    "split_output": False,
    "held_at": None,
    "needs": [],
    "use": {},
    "mutex": [],
    "limits": [],
    "at_most": [],
    "policy": None,
    "launch": None,
    "deadline": None,
    "deadline_at": None,
    "parked_for": None,
    "waits_for_jobs": 0,
    "on_dead_dependency": None,
    "unique": None,
    "unique_for": None,
    "group": None,
    "units": {},
    "worker": None,
    "cancel_requested": False,
}
RUN: "dict[str, object]" = {
    "run": 1,
    "attempt": 1,
    "worker": "58a22f97d7e38500",
    "host": "worker-1",
    "started_at": "2026-01-31T08:00:01.000Z",
    "finished_at": "2026-01-31T08:00:01.250Z",
    "waited_ms": 1000,
    "outcome": "exited",
    "exit_code": 1,
    "signal": None,
    "error": "exit code 1",
    "cpu_ms": 16,
    "peak_memory_bytes": 19079168,
    "output_bytes": 22,
    "output_file": None,
    "output_tail": "a.png: no such picture\n",
    "stderr_bytes": None,
    "stderr_file": None,
    "stderr_tail": None,
}
SHOWN = {
    **LISTED,
    "waits_for": None,
    "remedy": None,
    "after": [],
    "dependents": [{"id": "13", "number": 13, "state": "cancelled", "kind": "ok", "is": "broken"}],
    "dependents_count": 1,
    "cause": "exit code 1; 1 run used, none left",
    "schedule": None,
    "runs": [RUN],
}
WHY = {
    "id": "14",
    "number": 14,
    "state": "pending",
    "summary": "waits: queue images is paused",
    "waits_for": "queue images, which is paused",
    "remedy": "queuectl queue resume images",
    "position": {"place": 1, "ahead": 0, "line": "queue images"},
    "gates": [
        {
            "gate": "queue",
            "open": False,
            "what": "queue images is paused",
            "jobs": [],
            "workers": [],
            "ends": None,
            "remedy": "queuectl queue resume images",
        }
    ],
    "holds": [],
}
GRAPH = {
    "id": "thumbs",
    "number": 12,
    "nodes": [
        {"id": "thumbs", "number": 12, "state": "dead", "queue": "images", "command": "convert a.png", "argv": None},
        {"id": "13", "number": 13, "state": "cancelled", "queue": "default", "command": "echo done", "argv": None},
    ],
    "edges": [{"parent": 12, "child": 13, "kind": "ok", "is": "broken"}],
    "left_out": [],
}
GROUP = {
    "group": "nightly",
    "total": 2,
    "ended": 2,
    "jobs": {
        "pending": 0,
        "scheduled": 0,
        "blocked": 0,
        "processing": 0,
        "completed": 1,
        "failed": 0,
        "dead": 1,
        "cancelled": 0,
    },
    "created_at": "2026-01-31T08:00:00.000Z",
    "started_at": "2026-01-31T08:00:01.000Z",
    "finished_at": "2026-01-31T08:00:02.500Z",
    "took": 1.5,
    "rate": None,
    "time_left": None,
    "max_failures": None,
    "may_fail": None,
    "stopped_at": None,
    "on_group_done": None,
    "done_at": None,
    "failures": [{"state": "dead", "error": "exit code 3", "count": 1, "ids": ["3"]}],
}
CANCELLED = {"id": "14", "was": "pending", "result": "cancelled"}
EDITED = {
    "id": "14",
    "was": "pending",
    "result": "edited",
    "changes": {"priority": {"from": 0, "to": 10}},
}
PREVIEW = {
    "count": 3,
    "passed_by": {"completed": 8},
    "dry_run": True,
    "states": {"dead": 3},
    "samples": ["12", "15", "16"],
}
