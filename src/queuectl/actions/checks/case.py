"""Case: the store and the host that are looked at, each fact read once and only when a check asks for it."""

from functools import cached_property

from queuectl.actions.connect import Target, look_at
from queuectl.actions.liveness import pulse
from queuectl.errors import StoreError
from queuectl.model.value import Value
from queuectl.settings import Settings, survey
from queuectl.store import claims, config, jobs, migrate, queues, workers
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.errors import BadInput
    from queuectl.model.queue import Queue
    from queuectl.model.states import State
    from queuectl.store.claims import Orphan
    from queuectl.store.database import Database, Tx
    from queuectl.store.workers import Worker


class Fleet(Value):
    """Jobs and workers at one moment."""

    now: int
    workers: "tuple[Worker, ...]"
    """The rows that say they live, supervisors too."""
    queues: "tuple[Queue, ...]"
    counts: "dict[str, dict[State, int]]"
    orphans: "tuple[Orphan, ...]"
    stuck: "tuple[tuple[str, str], ...]"
    """Jobs that cannot be freed, each with why."""
    stored: "dict[str, str]"


class Case:
    """One examination. `trouble` is why the store cannot be opened; a store that is not there yet is no trouble."""

    def __init__(self, target: Target, environ: "Mapping[str, str]", *, is_deep: bool) -> None:
        self.target = target
        self.environ = environ
        self.is_deep = is_deep
        self.database: Database | None = None
        self.trouble: StoreError | None = None
        self.version = 0
        try:
            self.database = look_at(target)
            if self.database is not None:
                self.version = self.database.read(lambda tx: tx.dialect.schema_version())
        except StoreError as error:
            self.trouble = error

    def close(self) -> None:
        """Let go of the store."""
        if self.database is not None:
            self.database.close()

    @property
    def store(self) -> "Database":
        """The open store, for checks that are run only where there is one."""
        assert self.database is not None
        return self.database

    @property
    def has_tables(self) -> bool:
        """Whether the tables are there and are those this program knows."""
        return self.trouble is None and self.version == migrate.LATEST

    @cached_property
    def fleet(self) -> Fleet:
        """Jobs and workers, read in one transaction."""
        return self.store.read(_read)

    @cached_property
    def pulses(self) -> "dict[str, Pulse]":
        """Which of the workers live, as far as this host can tell, by their ids."""
        return {worker.id: pulse(worker, self.store.dialect) for worker in self.fleet.workers}

    @property
    def living(self) -> "list[Worker]":
        """The workers that are not known to be dead, without supervisors."""
        return [
            worker
            for worker in self.fleet.workers
            if worker.kind == workers.WORKER and self.pulses[worker.id] is not Pulse.DEAD
        ]

    @cached_property
    def surveyed(self) -> "tuple[Settings, list[BadInput]]":
        """The settings as far as they can be read, and all that is wrong with them."""
        stored = self.fleet.stored if self.has_tables else {}
        settings, _, problems = survey(stored, self.environ)
        return settings, problems

    @property
    def settings(self) -> Settings:
        """The settings as far as they can be read."""
        return self.surveyed[0]


def _read(tx: "Tx") -> Fleet:
    running = claims.running(tx)
    return Fleet(
        now=tx.now,
        workers=tuple(workers.live(tx)),
        queues=tuple(queues.all_queues(tx)),
        counts=jobs.counts(tx),
        orphans=tuple(claims.orphans(tx)),
        stuck=tuple(
            (claim.job.id, str(claim.job.error)) for claim in running if claims.STUCK_WORDS in (claim.job.error or "")
        ),
        stored=config.stored(tx),
    )
