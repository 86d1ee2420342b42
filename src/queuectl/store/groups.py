"""Groups: jobs under one name. What happens when they fail or have all ended is decided in actions/endings.py."""

from queuectl.model.group import Group
from queuectl.model.states import FINAL, State
from queuectl.model.value import columns_of
from queuectl.store.jobs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from queuectl.store.database import Tx

COLUMNS = columns_of(Group)
UNFINISHED = tuple(state for state in State if state not in FINAL)


def get(tx: "Tx", name: str) -> Group | None:
    """Return a group."""
    return _get(tx, name, "")


def get_for_update(tx: "Tx", name: str) -> Group | None:
    """Return a group and keep others from changing it until this transaction ends."""
    return _get(tx, name, tx.dialect.for_update)


def hold(tx: "Tx", names: "Collection[str]") -> None:
    """Keep others from looking at groups until this transaction ends, before any of their jobs is held.

    One in which nothing follows from what becomes of its jobs is passed by.
    """
    marks, params = listed("name", sorted(names))
    tx.rows(
        f"""
        SELECT name
          FROM job_groups
         WHERE name IN ({marks}) AND (max_failures IS NOT NULL OR on_done IS NOT NULL)
         ORDER BY name {tx.dialect.for_update}
        """,
        params,
    )


def join(tx: "Tx", name: str, jobs: int, *, max_failures: str | None, on_done: str | None) -> None:
    """Add so many jobs to a group; makes it where there is none. What is given takes the place of what it had."""
    tx.changed(
        """
        INSERT INTO job_groups (name, jobs, max_failures, on_done, created_at)
        VALUES (:name, :jobs, :max_failures, :on_done, :now)
        ON CONFLICT (name) DO UPDATE
           SET jobs = job_groups.jobs + :jobs, done_at = NULL,
               max_failures = COALESCE(:max_failures, job_groups.max_failures),
               on_done = COALESCE(:on_done, job_groups.on_done)
        """,
        {"name": name, "jobs": jobs, "max_failures": max_failures, "on_done": on_done, "now": tx.now},
    )


def create_as_it_was(tx: "Tx", group: Group) -> bool:
    """Add a group of another store with everything it holds; False means that one of its name is here."""
    names = ", ".join(Group.FIELDS)
    values = ", ".join(f":{name}" for name in Group.FIELDS)
    sql = f"INSERT INTO job_groups ({names}) VALUES ({values}) ON CONFLICT (name) DO NOTHING"
    return tx.changed(sql, group.as_dict()) == 1  # type: ignore[arg-type]


def take_in(tx: "Tx", name: str, jobs: int, *, is_open: bool) -> None:
    """Count jobs of another store into a group; makes it where there is none. Open: some of them have not ended."""
    tx.changed(
        f"""
        INSERT INTO job_groups (name, jobs, created_at)
        VALUES (:name, :jobs, :now)
        ON CONFLICT (name) DO UPDATE
           SET jobs = job_groups.jobs + :jobs{", done_at = NULL" if is_open else ""}
        """,
        {"name": name, "jobs": jobs, "now": tx.now},
    )


def note_done(tx: "Tx", name: str) -> None:
    """Note that all of a group have ended."""
    tx.changed("UPDATE job_groups SET done_at = :now WHERE name = :name", {"name": name, "now": tx.now})


def note_stopped(tx: "Tx", name: str) -> None:
    """Note that the rest of a group is cancelled."""
    tx.changed("UPDATE job_groups SET stopped_at = :now WHERE name = :name", {"name": name, "now": tx.now})


def reopen(tx: "Tx", name: str) -> None:
    """Note that jobs of a group run again, and keep others from looking at it until this transaction ends.

    Also where nothing changes: whoever is just looking whether all have ended must be waited for, or wait.
    """
    tx.changed(
        """
        UPDATE job_groups
           SET stopped_at = NULL, done_at = NULL
         WHERE name = :name AND (max_failures IS NOT NULL OR on_done IS NOT NULL)
        """,
        {"name": name},
    )


def lift_stop(tx: "Tx", name: str) -> None:
    """Note that more jobs may be added to a group that was stopped."""
    tx.changed("UPDATE job_groups SET stopped_at = NULL WHERE name = :name", {"name": name})


def failures(tx: "Tx", name: str, most: int) -> int:
    """Return how many jobs of a group are dead, up to `most`."""
    rows = tx.rows(
        "SELECT seq FROM jobs WHERE group_name IS NOT NULL AND group_name = :name AND state = 'dead' LIMIT :most",
        {"name": name, "most": most},
    )
    return len(rows)


def has_unfinished(tx: "Tx", name: str) -> bool:
    """Whether a job of a group has not ended: asked at once, since one may go from state to state meanwhile."""
    return bool(unfinished(tx, name, 1))


def unfinished(tx: "Tx", name: str, most: int) -> list[int]:
    """Return the numbers of some jobs of a group that have not ended."""
    states = ", ".join(f"'{state}'" for state in UNFINISHED)
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE group_name IS NOT NULL AND group_name = :name AND state IN ({states})
         LIMIT :most
        """,
        {"name": name, "most": most},
    )
    return sorted(int(row[0] or 0) for row in rows)


def counts(tx: "Tx", name: str) -> dict[State, int]:
    """Return how many jobs of a group are in each state; from jobs_group alone."""
    rows = tx.rows(
        "SELECT state, count(*) FROM jobs WHERE group_name IS NOT NULL AND group_name = :name GROUP BY state",
        {"name": name},
    )
    return {State(str(state)): int(number or 0) for state, number in rows}


def all_groups(tx: "Tx") -> list[Group]:
    """Return every group, in the order of their names."""
    found = [Group.of_row(row) for row in tx.rows(f"SELECT {COLUMNS} FROM job_groups")]
    return sorted(found, key=lambda group: group.name)


def names(tx: "Tx", most: int) -> list[str]:
    """Return the names of groups, the newest first."""
    rows = tx.rows("SELECT name FROM job_groups ORDER BY created_at DESC, name LIMIT :most", {"most": most})
    return [str(row[0]) for row in rows]


def forget_empty(tx: "Tx", names: "Collection[str]") -> int:
    """Remove those of some groups none of whose jobs is left; one that somebody is just adding to stays."""
    if not names:
        return 0
    marks, params = listed("name", sorted(names))
    rows = tx.rows(f"SELECT name FROM job_groups WHERE name IN ({marks}) {tx.dialect.skip_locked}", params)
    empty = [str(row[0]) for row in rows if not _has_any(tx, str(row[0]))]  # now that they are held
    return sum(tx.changed("DELETE FROM job_groups WHERE name = :name", {"name": name}) for name in empty)


def _has_any(tx: "Tx", name: str) -> bool:
    row = tx.row("SELECT 1 FROM jobs WHERE group_name IS NOT NULL AND group_name = :name LIMIT 1", {"name": name})
    return row is not None


def _get(tx: "Tx", name: str, lock: str) -> Group | None:
    row = tx.row(f"SELECT {COLUMNS} FROM job_groups WHERE name = :name {lock}", {"name": name})
    return None if row is None else Group.of_row(row)
