"""Live: every dashboard hears of a change, all of them cost the store what one does, and trouble is told."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from queuectl.actions.connect import Target, connect, locate
from queuectl.actions.edit import edit
from queuectl.actions.submit import submit
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import JobSpec
from queuectl.model.states import State
from queuectl.runtime.watch import Watch
from queuectl.store.database import Database, Tx
from queuectl.web import livepages
from queuectl.web.livepages import LivePages
from queuectl.web.snapshot import Board, View
from queuectl.web.stores import Stores
from tests.program import wait_for
from tests.proxy import proxied, through
from tests.web.serving import Site, serving
from tests.web.streams import streaming

MANY = 20


def add_jobs(target: Target, number: int = 1, queue: str = "default") -> None:
    """Add jobs as another process would: by a connection of its own."""
    database = connect(target)
    submit(database, [JobSpec(command="true", queue=queue)] * number, who="test", environ={})
    database.close()


def test_a_stream_tells_of_a_change_at_once_and_of_what_was_missed(site: Site) -> None:
    with streaming(site) as stream:
        first = stream.next_event()
        add_jobs(site.target)
        told = stream.until("pending", 1)
        add_jobs(site.target, 2)
        last = stream.until("pending", 3)

    assert first.data["store"] == "ok"
    assert int(first.id) < int(told.id) < int(last.id) == last.data["version"]
    with streaming(site, **{"Last-Event-ID": told.id}) as stream:
        assert int(stream.next_event().id) >= int(last.id)


def test_a_stream_ends_at_once_when_the_server_stops(sqlite_target: Target) -> None:
    with ExitStack() as stack:
        with serving(sqlite_target) as site:
            stream = stack.enter_context(streaming(site))
            stream.next_event()

        # The stop waits for answers under way, so to be here means that the stream has ended.
        assert stream.answer.read() == b""


def test_many_dashboards_cost_the_store_no_more_than_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch, Stores)
    with ExitStack() as stack:
        streams = [stack.enter_context(streaming(site)) for _ in range(MANY)]
        add_jobs(site.target)
        seen = [int(stream.until("pending", 1).id) for stream in streams]
        assert reads == []  # they share what one thread saw

        with ThreadPoolExecutor(MANY) as threads:
            pages = list(threads.map(lambda version: ask_again(site, version), seen))

    versions = [version_of(page) for page in pages]
    assert 1 <= len(reads) <= max(versions) - min(seen) + 1 < MANY  # one for each version, not for each page


def test_a_page_that_did_something_itself_is_drawn_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch, Stores)

    ask_again(site, "fresh")
    ask_again(site, "fresh")

    assert len(reads) == 2


def test_a_page_tells_no_later_version_than_it_shows(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Stores.read
    later: list[int] = []

    def read_before_a_change(self: Stores, work: "Callable[[Tx], object]") -> object:
        found = read(self, work)
        if not later:
            add_jobs(local_site.target)
            later.append(int(stream.until("pending", 1).id))
        return found

    with streaming(local_site) as stream:
        stream.next_event()
        monkeypatch.setattr(Stores, "read", read_before_a_change)
        page = local_site.get("/queues", Accept="text/html").text

    assert version_of(page) < later[0]  # else whoever opened it would take the change for seen


def test_pages_that_are_kept_take_no_more_room_than_there_is(local_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livepages, "MOST_BYTES", 20_000)
    pages: list[LivePages] = []
    begin = LivePages._page_of

    def told(self: LivePages, version: int, key: Any) -> Any:  # noqa: ANN401 - as it came
        pages[:] = [self]
        return begin(self, version, key)

    monkeypatch.setattr(LivePages, "_page_of", told)
    for number in range(20):
        local_site.get(f"/queues?x={number}", **{"X-Live": "1", "Accept": "text/html"})

    assert len(pages[0]._pages) < 10


def test_nobody_watching_costs_nothing(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.web.snapshot.LINGER_S", 0.0)
    monkeypatch.setattr("queuectl.web.snapshot.FRESH_S", 0.0)
    seen, asleep = threading.Event(), threading.Event()
    sleep = Board._sleep

    def told_sleep(board: Board) -> bool:
        if seen.is_set():
            asleep.set()
        return sleep(board)

    monkeypatch.setattr(Board, "_sleep", told_sleep)
    with closing(Board(target)) as board:
        with board.watch(lambda _view: seen.set()):
            assert seen.wait(30)
        assert asleep.wait(30)
        looks = noted_looks(monkeypatch)

        with closing(Board(target)) as other, other.watch(lambda _view: None):
            add_jobs(target)
            wait_for(lambda: pending(other.latest), "whoever watches has seen it")

            assert set(looks) == {other}
        assert pending(board.current()) == 1


def test_whoever_begins_to_watch_is_told_of_no_change_where_there_was_none(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queuectl.runtime.watch.FIRST_LOOKS_S", ())
    monkeypatch.setattr("queuectl.runtime.bell.NotifyBell.poll_s", float("inf"))
    monkeypatch.setattr("queuectl.web.snapshot.SLIDES_S", float("inf"))
    add_jobs(target)
    with closing(Board(target)) as board:
        drawn = board.current()
        told: list[View] = []

        with board.watch(told.append):
            wait_for(lambda: board.latest.taken > drawn.taken, "the board looks for whoever watches")

        assert (board.latest.version, told) == (drawn.version, [])


def test_looks_that_find_nothing_written_are_no_change(sqlite_target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.runtime.watch.FIRST_LOOKS_S", (0.001,) * 1000)
    monkeypatch.setattr("queuectl.web.snapshot.SLIDES_S", float("inf"))
    add_jobs(sqlite_target)
    with closing(Board(sqlite_target)) as board, closing(connect(sqlite_target)) as database:
        drawn = board.current()
        told: list[View] = []
        looks = noted_looks(monkeypatch)

        with board.watch(told.append):
            wait_for(lambda: len(looks) > 3, "the board looked a few times")
            assert (board.latest.version, told) == (drawn.version, [])

            edit(database, ["1"], edit_from_fields({"priority": 7}, 0), who="test")
            wait_for(lambda: told, "what cannot be seen in counts is told")

            told.clear()
            monkeypatch.setattr("queuectl.web.snapshot.SLIDES_S", 0.0)
            wait_for(lambda: told, "time went on, and the last hour with it")


def test_a_look_between_a_commit_and_the_word_of_it_does_not_swallow_the_change(sqlite_target: Target) -> None:
    add_jobs(sqlite_target)
    board = Board(sqlite_target)
    with closing(board), closing(connect(sqlite_target)) as database, closing(connect(sqlite_target)) as looking:
        board._take(looking, is_changed=True)
        shown = board.latest.version
        edit(database, ["1"], edit_from_fields({"priority": 7}, 0), who="test")

        board._take(looking, is_changed=False)
        unheard = board.latest.version
        board._take(looking, is_changed=True)
        heard = board.latest.version
        board._take(looking, is_changed=True)

    assert (unheard, heard, board.latest.version) == (shown, shown + 1, shown + 1)


def test_a_change_that_comes_while_nobody_watches_is_told_to_who_asks_next(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queuectl.runtime.watch.FIRST_LOOKS_S", ())
    monkeypatch.setattr("queuectl.web.snapshot.FRESH_S", 0.0)
    monkeypatch.setattr("queuectl.web.snapshot.PATIENCE_S", 60.0)
    heard, wait = threading.Event(), Watch.wait

    def noted_wait(watch: Watch, until: float = 0.0, *, not_before: float = 0.0) -> bool:
        is_changed = wait(watch, until, not_before=not_before)
        if is_changed:
            heard.set()
        return is_changed

    monkeypatch.setattr(Watch, "wait", noted_wait)
    add_jobs(target)
    with closing(Board(target)) as board, closing(connect(target)) as database:
        drawn = board.current()

        edit(database, ["1"], edit_from_fields({"priority": 7}, 0), who="test")
        assert heard.wait(30)

        assert board.current().version > drawn.version


def test_a_store_that_cannot_be_reached_is_told_with_what_was_last_known(postgres_url: str, sqlite_home: Path) -> None:
    with proxied(postgres_url) as proxy:
        environ = {"QUEUECTL_HOME": str(sqlite_home), "QUEUECTL_DATABASE_URL": through(proxy, postgres_url)}
        target = locate(None, environ)
        add_jobs(target)
        with serving(target) as site, streaming(site) as stream:
            stream.until("pending", 1)
            with proxy.cut():
                while stream.next_event().data["store"] != "unreachable":
                    pass
                shown = site.get("/queues", Accept="text/html")

            while stream.next_event().data["store"] != "ok":
                pass

    assert shown.status == 503
    assert "store unreachable" in shown.text


def counted(monkeypatch: pytest.MonkeyPatch, kind: "type[Stores | Database]") -> list[str]:
    """Return a list that grows with each read of the store from now on."""
    reads: list[str] = []
    read = kind.read

    def told_read(self: Any, work: "Callable[[Tx], object]") -> object:  # noqa: ANN401 - either kind
        reads.append(threading.current_thread().name)
        return read(self, work)

    monkeypatch.setattr(kind, "read", told_read)
    return reads


def noted_looks(monkeypatch: pytest.MonkeyPatch) -> list[Board]:
    """Return a list that grows with each look at the store, by whose it is."""
    looks: list[Board] = []
    take = Board._take

    def told_take(board: Board, database: Database, *, is_changed: bool) -> None:
        looks.append(board)
        take(board, database, is_changed=is_changed)

    monkeypatch.setattr(Board, "_take", told_take)
    return looks


def pending(view: View) -> int:
    """Return how many jobs wait, as a view has it."""
    return 0 if view.found is None else view.found.total[State.PENDING]


def version_of(page: str) -> int:
    """Return the version that a page says it shows."""
    return int(page.split('data-version="')[1].split('"', 1)[0])


def ask_again(site: Site, version: object) -> str:
    """Fetch a page as one does that has it open."""
    answer = site.get("/queues", **{"X-Live": str(version), "Accept": "text/html"})
    assert answer.status == 200
    return answer.text
