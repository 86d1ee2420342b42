"""Lease: a worker leaves off before any watcher can have counted to the end."""

from hypothesis import given
from hypothesis import strategies as st

from queuectl.model.lease import Lease, Silence, Watched

LEASES = st.floats(min_value=7, max_value=3600)


@given(lease_s=LEASES, grace_s=st.floats(min_value=0, max_value=3600))
def test_a_worker_stops_then_kills_then_is_ended_all_before_its_lease_ends(lease_s: float, grace_s: float) -> None:
    lease = Lease(lease_s=lease_s, grace_s=grace_s)

    assert 0 < lease.answer_within_s < lease.stop_after_s <= lease.kill_after_s < lease.end_after_s < lease.lease_s


@given(heartbeat_s=st.floats(min_value=1, max_value=3600), grace_s=st.floats(min_value=0, max_value=3600))
def test_a_healthy_heartbeat_is_well_before_the_stop(heartbeat_s: float, grace_s: float) -> None:
    shortest = Lease(lease_s=2 * heartbeat_s + 5, grace_s=grace_s)

    assert shortest.stop_after_s > heartbeat_s + 2


def watched(token: int, lease_s: float = 60) -> list[Watched]:
    """One worker out of sight."""
    return [Watched(key="w1", token=token, lease_s=lease_s)]


def look(silence: Silence, now: float, seen: list[Watched]) -> bool:
    """Look in no time."""
    return bool(silence.look(now, now, seen))


def test_a_look_that_takes_long_wrongs_nobody() -> None:
    silence = Silence()
    silence.look(0.0, 4.0, watched(5))

    answers = [bool(silence.look(second - 3.0, float(second), watched(5))) for second in range(5, 70)]

    assert answers.index(True) == 67 - 5


def test_the_same_number_for_the_whole_lease_is_silence() -> None:
    silence = Silence()

    answers = [look(silence, float(second), watched(5)) for second in range(62)]

    assert [second for second, answer in enumerate(answers) if answer] == [60, 61]


def test_a_new_number_begins_the_count_anew() -> None:
    silence = Silence()

    answers = [look(silence, float(second), watched(second // 59)) for second in range(600)]

    assert not any(answers)


def test_a_watcher_that_was_away_begins_anew() -> None:
    silence = Silence()
    look(silence, 0.0, watched(5))

    answers = [look(silence, 1000.0 + second, watched(5)) for second in range(61)]

    assert [second for second, answer in enumerate(answers) if answer] == [60]


def test_one_that_was_not_there_meanwhile_begins_anew() -> None:
    silence = Silence()
    for second in range(50):
        look(silence, float(second), watched(5))
    look(silence, 50.0, [])

    answers = [look(silence, 51.0 + second, watched(5)) for second in range(60)]

    assert not any(answers)


@given(
    st.lists(st.floats(min_value=0.1, max_value=100), min_size=1, max_size=100),
    LEASES,
)
def test_nobody_is_given_up_before_a_lease_has_passed_since_the_number_was_first_seen(
    pauses: list[float], lease_s: float
) -> None:
    silence, now = Silence(), 0.0
    look(silence, now, watched(1, lease_s))

    for pause in pauses:
        now += pause
        if look(silence, now, watched(1, lease_s)):
            assert now >= lease_s
