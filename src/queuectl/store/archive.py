"""Archive: all rows of one store into another of either kind. Which store, and when, is for actions/."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue, Table

PAGE = 200  # rows held at a time; a run may bring a megabyte of output
NUMBERED = (("jobs", "seq"), ("audit", "id"), ("lanes", "id"))


def copy_rows(source: "Tx", target: "Tx", tables: "Sequence[Table]") -> None:
    """Copy every row of every table, a page at a time; the target has the tables and nothing in them."""
    for table in tables:
        target.insert_many(table.name, table.columns, _rows(source, table))


def last_numbers(tx: "Tx") -> list[int]:
    """Return the highest number given out of each kind."""
    return [tx.dialect.last_number(table, column) for table, column in NUMBERED]


def begin_after(tx: "Tx", *used: "Sequence[int]") -> None:
    """Never give out a number again that a store has used."""
    for (table, column), *numbers in zip(NUMBERED, last_numbers(tx), *used, strict=True):
        tx.dialect.begin_after(table, column, max(numbers))


def is_empty(tx: "Tx") -> bool:
    """Whether nobody ever put anything into a store that is worth keeping."""
    kept = ("jobs", "queues", "limits", "config", "schedules", "tokens")
    return all(tx.row(f"SELECT 1 FROM {table} LIMIT 1") is None for table in kept)


def _rows(tx: "Tx", table: "Table") -> "Iterator[Row]":
    """Yield all rows by key, so that no page depends on how many came before it."""
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    places = [table.columns.index(name) for name in table.key]
    where = ""
    params: dict[str, SqlValue] = {}
    while True:
        sql = f"SELECT {columns} FROM {table.name} {where} ORDER BY {key} LIMIT {PAGE}"
        rows = tx.rows(sql, params)
        yield from rows
        if len(rows) < PAGE:
            return
        params = {f"after_{number}": rows[-1][place] for number, place in enumerate(places)}
        where = f"WHERE ({key}) > ({', '.join(f':{name}' for name in params)})"
