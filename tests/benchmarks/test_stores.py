"""Stores: a crowd is what years of use would have left."""

from contextlib import closing
from functools import partial

import pytest

from benchmarks import stores
from queuectl.actions.connect import connect

RUNS = "SELECT j.state, count(*), count(a.run) FROM jobs j LEFT JOIN attempts a ON a.job_seq = j.seq GROUP BY j.state"


@pytest.mark.parametrize("crowd", [stores.COMPLETED, stores.DEAD])
def test_every_job_that_is_over_has_its_run(crowd: str) -> None:
    with stores.sqlite_store() as target, closing(connect(target)) as database:
        for rows in (2, 3):
            database.write(partial(stores.add_crowd, crowd=crowd, rows=rows))

        assert database.read(lambda tx: tx.rows(RUNS)) == [(crowd, 5, 5)]
