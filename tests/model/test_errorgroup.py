"""The names of error groups: what sets errors apart stays, what varies from job to job goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.model.errorgroup import MAX_NAME, NO_ERROR, group_name
from queuectl.model.verdict import Outcome


@pytest.mark.parametrize(
    "error, name",
    [
        ("exit code 1", "exit code 1"),
        ("exit code 23", "exit code 23"),
        ("exit code 23; the shell says 41 more", "exit code 23; the shell says N more"),
        ("killed by SIGSEGV", "killed by SIGSEGV"),
        ("killed by SIGRTMIN: at 0x7ffe12", "killed by SIGRTMIN: at N"),
        ("timed out after 5 s", "timed out after N s"),
        ("timed out after 0.25 s", "timed out after N s"),
        ("its worker died 3 times while running it", "its worker died N times while running it"),
        ("cannot enter /srv/jobs/17/in: no such directory", "cannot enter /...: no such directory"),
        ("no such file: '/data/2026-11-16.csv'", "no such file: '...'"),
        ('unknown user "job-7"', "unknown user '...'"),
        ("request 9f1b6c2e-8d1a-4f0e-9b57-2f6b1c3d4e5f failed", "request N failed"),
        ("commit 3ace7a162cd01f56 is gone", "commit N is gone"),
        ("asked to run again later (exit code 9)", "asked to run again later (exit code 9)"),
        ("killed by SIGKILL and/or worse", "killed by SIGKILL and/or worse"),
        ("  two   blanks\n and a line ", "two blanks and a line"),
        ("a decade of deadbeef", "a decade of deadbeef"),
        ("", NO_ERROR),
        (None, NO_ERROR),
    ],
)
def test_an_error_belongs_to_the_group_that_says_the_same(error: str | None, name: str) -> None:
    assert group_name(error) == name


def test_ways_to_end_are_groups_of_their_own() -> None:
    ends = [
        Outcome.exited(1),
        Outcome.exited(2),
        Outcome.exited(12),
        Outcome.killed(9, "SIGKILL"),
        Outcome.killed(11, "SIGSEGV"),
        Outcome.timed_out(5_000),
        Outcome.past_deadline(5_000),
        Outcome.out_of_memory(signal=9),
        Outcome.not_started(127, "not found: /opt/x"),
        Outcome.lost(),
    ]

    assert len({group_name(end.error) for end in ends}) == len(ends)


@given(st.text())
def test_the_name_of_a_group_is_in_that_group(error: str) -> None:
    name = group_name(error)

    assert 0 < len(name) <= MAX_NAME
    if len(name) < MAX_NAME and name != NO_ERROR:
        assert group_name(name) == name
