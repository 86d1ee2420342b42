"""Count jobs by state and queue, and list the living workers."""

from queuectl.cli.store import is_living, open_store
from queuectl.cli.text import print_json, table
from queuectl.cli.worker import print_workers, worker_shape
from queuectl.model.shapes import counts_shape
from queuectl.model.states import State
from queuectl.store import jobs, queues, workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.store.database import Tx
    from queuectl.store.queues import Queue
    from queuectl.store.workers import Worker

ALWAYS_SHOWN = frozenset({State.PENDING, State.PROCESSING, State.COMPLETED, State.FAILED, State.DEAD})
EXAMPLES = """\
  queuectl status
  queuectl status --json
  queuectl
"""

_FIRST_STEPS = """\
Nothing here yet. Three commands to try:

  queuectl enqueue 'echo hello from $QUEUECTL_JOB_ID'
  queuectl worker start --until-idle
  queuectl logs last
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print where everything stands."""

    def look(
        tx: "Tx",
    ) -> "tuple[dict[str, dict[State, int]], list[Queue], list[Worker], dict[str, list[str]], int]":
        return jobs.counts(tx), queues.all_queues(tx), workers.live(tx), workers.jobs_held(tx), tx.now

    database = open_store(args)
    counts, known, rows, held, now = database.read(look)
    living = [worker for worker in rows if worker.kind == workers.WORKER and is_living(worker, database.dialect)]
    total = {state: sum(of_queue.get(state, 0) for of_queue in counts.values()) for state in State}
    if args.json:
        queue_shapes = [
            {
                "queue": queue.name,
                "paused": queue.paused_at is not None,
                **counts_shape(counts.get(queue.name, {})),
            }
            for queue in known
        ]
        worker_shapes = [worker_shape(worker, held, database.dialect) for worker in living]
        print_json({"jobs": counts_shape(total), "queues": queue_shapes, "workers": worker_shapes})
        return 0
    if not known:
        print(_FIRST_STEPS, end="")
        return 0
    _print_counts(counts, known, total)
    print()
    if living:
        print_workers(living, held, now)
    else:
        print("no worker is running; start one: queuectl worker start -d")
    return 0


def _print_counts(counts: dict[str, dict[State, int]], known: "list[Queue]", total: dict[State, int]) -> None:
    """Print a row per queue; a state that is rare and that no job is in has no column."""
    states = [state for state in State if state in ALWAYS_SHOWN or total[state]]
    rows = [
        (
            f"{queue.name} (paused)" if queue.paused_at else queue.name,
            *(str(counts.get(queue.name, {}).get(state, 0)) for state in states),
        )
        for queue in known
    ]
    if len(rows) > 1:
        rows.append(("(all)", *(str(total[state]) for state in states)))
    headers = ("QUEUE", *(state.value.upper() for state in states))
    table(headers, rows, right=headers[1:])
