"""Contenders: several processes that claim and settle from one store at the same time."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.bareworker import BareWorker
from benchmarks.contenders import BY_THE_HANDFUL, ONE_BY_ONE, contenders, work_off_s
from benchmarks.program import counts
from queuectl.actions.connect import locate


@pytest.mark.parametrize("way", [ONE_BY_ONE, BY_THE_HANDFUL])
def test_together_they_settle_every_job_once(way: str, tmp_path: Path) -> None:
    target = locate(None, {**os.environ, "QUEUECTL_HOME": str(tmp_path)})
    with closing(BareWorker(target)) as filler:
        filler.submit(130)

    with contenders(target, 2, way) as started:
        _, done = work_off_s(started)

    assert done == counts(target)["completed"] == 130
    assert {process.poll() is None for process in started} == {False}
