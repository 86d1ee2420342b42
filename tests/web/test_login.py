"""Logging in and out, how long a session lasts, and how often one may try."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from queuectl.actions.connect import Target, connect
from queuectl.actions.tokens import add_token
from queuectl.errors import StoreUnreachable
from queuectl.model.token import Token
from queuectl.store.database import Tx
from queuectl.web import keyring, logins, probes, sessions, throttle
from queuectl.web.pages.login import safe_next
from queuectl.web.reach import Reach
from queuectl.web.stores import Stores
from tests.program import wait_for
from tests.web.axe import violations
from tests.web.serving import Answer, Site, serving
from tests.web.tokens import FORM, acts_of, bearer, cookie_in, revoke, send_login, token_of

expect.set_options(timeout=30_000)
QUEUES = "/api/v1/queues"
PAUSE = "/api/v1/queues/x/pause"


class Clock:
    """A clock for the test to turn."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def far_site(sqlite_target: Target) -> Iterator[Site]:
    """A server that lets nobody in without a login."""
    with serving(sqlite_target, Reach(is_local=False)) as site:
        yield site


# The form


def test_a_login_begins_a_session_that_no_script_and_no_other_site_can_use(site: Site) -> None:
    secret = token_of(site.target, "read")

    answer = send_login(site, secret, "/queues?x=1")

    assert (answer.status, answer.headers["location"]) == (303, "/queues?x=1")
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(rf"queuectl_session_{site.port}=[\w-]{{43,}}; Path=/; HttpOnly; SameSite=Strict", cookie)
    assert secret not in cookie
    assert site.get(QUEUES, **cookie_in(answer)).status == 200
    assert [(act.who, act.target) for act in acts_of(site.target, "login")] == [("token read", "from 127.0.0.1")]


def test_the_role_of_a_session_is_that_of_its_token_also_on_loopback(site: Site) -> None:
    cookie = cookie_in(send_login(site, token_of(site.target, "read")))
    csrf = re.search(r'name="csrf" content="([^"]+)"', site.get("/queues", **cookie).text)
    assert csrf is not None

    refused = site.post(PAUSE, None, **cookie, **{"X-CSRF-Token": csrf[1]})

    assert refused.status == 403
    assert "needs the role operate" in refused.json()["detail"]


def test_a_bad_token_shows_the_form_again_and_is_on_record(site: Site) -> None:
    token_of(site.target, "read")

    for secret in ("", "qctl_guessed", "x" * 5000, "\u00fc\0"):
        answer = send_login(site, secret)
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text
        assert "<form" in answer.text
    assert [act.who for act in acts_of(site.target, "login refused")] == ["unknown"] * 4


def test_the_form_is_taken_as_a_form_alone_and_no_longer_than_a_token(local_site: Site) -> None:
    secret = token_of(local_site.target, "read")

    assert local_site.post("/login", {"token": secret}).status == 415
    assert local_site.ask("POST", "/login", b"token=" + b"x" * 20_000, {"Content-Type": FORM}).status == 413
    assert local_site.ask("POST", "/login", b"\xff=%ff&=", {"Content-Type": FORM}).status == 401
    assert local_site.ask("POST", "/login", b"a=b&" * 50, {"Content-Type": FORM}).status == 400


def test_the_page_shows_what_was_typed_as_text_alone(local_site: Site) -> None:
    answer = local_site.get("/login?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E")

    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(
    "wanted",
    ["", "//evil.example", "/\\evil.example", "https://evil.example", "x", "/a\\b", "/\r\nSet-Cookie: a=b", "\t//e"],
)
def test_a_login_never_leads_to_another_site(wanted: str) -> None:
    assert safe_next(wanted) == "/"


def test_neither_the_form_nor_what_it_answers_leads_to_another_site(local_site: Site) -> None:
    secret = token_of(local_site.target, "read")

    shown = local_site.get("/login?next=//evil.example")
    again = send_login(local_site, "qctl_guessed", "//evil.example")
    done = send_login(local_site, secret, "//evil.example")

    assert "evil" not in shown.text + again.text
    assert (done.status, done.headers["location"]) == (303, "/")


def test_a_login_leads_to_our_own_pages() -> None:
    assert safe_next("/jobs?state=dead&x=//y") == "/jobs?state=dead&x=//y"


def test_logging_out_ends_the_session_and_needs_the_csrf_token(far_site: Site) -> None:
    cookie = cookie_in(send_login(far_site, token_of(far_site.target, "read")))
    csrf = re.search(r'name="csrf" content="([^"]+)"', far_site.get("/queues", **cookie).text)
    assert csrf is not None

    assert far_site.post("/logout", None, **cookie).status == 403
    assert far_site.get(QUEUES, **cookie).status == 200
    done = far_site.post("/logout", None, **cookie, **{"X-CSRF-Token": csrf[1]})

    assert (done.status, "Max-Age=0" in done.headers["set-cookie"]) == (204, True)
    assert far_site.get(QUEUES, **cookie).status == 401
    assert [act.who for act in acts_of(far_site.target, "logout")] == ["token read"]


def test_a_session_ends_with_its_token(site: Site) -> None:
    secret = token_of(site.target, "admin", "gone")
    cookie = cookie_in(send_login(site, secret))
    assert site.get(QUEUES, **cookie).status == 200

    revoke(site.target, "gone")
    token_of(site.target, "admin", "gone")  # another token of this name is another token

    def look() -> Answer | None:
        found = site.get(QUEUES, **cookie)
        return found if found.status == 401 else None

    assert "Max-Age=0" in wait_for(look, "the session ended", 30).headers["set-cookie"]
    assert send_login(site, secret).status == 401


def test_an_unknown_session_is_refused_and_forgotten(local_site: Site) -> None:
    answer = local_site.get("/queues", Cookie=f"queuectl_session_{local_site.port}=guessed", Accept="text/html")

    assert answer.status == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_a_stream_ends_with_the_token_it_was_opened_with(site: Site) -> None:
    secret = token_of(site.target, "read", "gone")
    connection = HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", "/api/v1/events", headers=bearer(secret))
    stream = connection.getresponse()
    assert stream.status == 200
    assert stream.readline() == b"retry: 2000\n"

    revoke(site.target, "gone")
    turns = iter(range(10_000))

    def has_ended() -> bool:
        verb = "pause" if next(turns) % 2 else "resume"
        site.post("/api/v1/queues/x/pause")
        site.post(f"/api/v1/queues/x/{verb}")
        return stream.readline() == b""

    wait_for(has_ended, "the stream ended", 60)
    connection.close()


def test_a_stream_ends_with_the_session_it_was_opened_in(local_site: Site) -> None:
    cookie = cookie_in(send_login(local_site, token_of(local_site.target, "read")))
    csrf = re.search(r'name="csrf" content="([^"]+)"', local_site.get("/queues", **cookie).text)
    assert csrf is not None
    with closing(HTTPConnection("127.0.0.1", local_site.port, timeout=30)) as connection:
        connection.request("GET", "/api/v1/events", headers=cookie)
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 2000\n"

        assert local_site.post("/logout", None, **cookie, **{"X-CSRF-Token": csrf[1]}).status == 204
        local_site.post(PAUSE)  # makes an event

        stream.read()  # would wait for its end in vain, had the stream gone on


def test_a_stranger_is_not_told_what_the_store_is_nor_where(
    far_site: Site, local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> Token:
        raise StoreUnreachable("cannot use PostgreSQL at postgresql://queue@db.inside/jobs")

    secret = token_of(far_site.target, "read")
    assert far_site.get(QUEUES, **bearer(secret)).status == 200
    monkeypatch.setattr(keyring.Keyring, "find", gone)
    monkeypatch.setattr(probes, "look_at", gone)
    page = {"Accept": "text/html"}

    answers = [
        far_site.get("/readyz"),
        far_site.get(QUEUES, **bearer("qctl_guessed")),
        far_site.get("/queues", **bearer(secret), **page),
        send_login(far_site, secret),
        local_site.get("/readyz", **{"X-Forwarded-For": "10.0.0.1"}),
    ]

    assert [answer.status for answer in answers] == [503] * 5
    assert not [answer.text for answer in answers if "inside" in answer.text]
    assert "db.inside" in local_site.get("/readyz").json()["detail"]


def test_a_stream_ends_in_order_while_nobody_can_know_whether_its_token_stands(
    local_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> Token:
        raise StoreUnreachable("gone")

    connection = HTTPConnection("127.0.0.1", local_site.port, timeout=60)
    connection.request("GET", "/api/v1/events", headers=bearer(token_of(local_site.target, "read")))
    stream = connection.getresponse()
    assert stream.readline() == b"retry: 2000\n"

    monkeypatch.setattr(keyring.Keyring, "current", gone)
    local_site.post(PAUSE)

    stream.read()  # raises where the end of the stream is missing
    connection.close()


# How often


def test_who_tries_too_often_has_to_wait_and_the_record_is_not_flooded(site: Site) -> None:
    good = token_of(site.target, "read")
    assert site.get(QUEUES, **bearer(good)).status == 200

    statuses = [send_login(site, f"qctl_{n}").status for n in range(logins.TRIES_PER_WINDOW + 5)]

    assert statuses[: logins.TRIES_PER_WINDOW] == [401] * logins.TRIES_PER_WINDOW
    assert 429 in statuses
    refused = next(answer for n in range(50) if (answer := send_login(site, f"qctl_{n}")).status == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    guess = next(answer for n in range(50) if (answer := site.get(QUEUES, **bearer(f"x{n}"))).status == 429)
    assert int(guess.headers["retry-after"]) >= 1
    assert site.get(QUEUES, **bearer(good)).status == 200  # who was known before is not kept out by others
    rows = acts_of(site.target, "login refused")
    assert len(rows) < logins.TRIES_PER_WINDOW


def test_bad_tokens_of_programs_count_as_tries(local_site: Site) -> None:
    statuses = [local_site.get(QUEUES, **bearer(f"x{n}")).status for n in range(logins.TRIES_PER_WINDOW + 10)]

    assert statuses[: logins.TRIES_PER_WINDOW] == [401] * logins.TRIES_PER_WINDOW
    assert 429 in statuses
    assert local_site.get(QUEUES).status == 200


@pytest.fixture
def door(sqlite_target: Target, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[logins.Logins]:
    """Logins whose tries come back when the clock is turned, and not before."""
    monkeypatch.setattr(logins, "Throttle", partial(throttle.Throttle, read_s=clock))
    with closing(Stores(sqlite_target)) as stores:
        yield logins.Logins(stores)


@pytest.mark.parametrize("guess", [logins.Logins.log_in, logins.Logins.by_secret])
def test_many_who_guess_together_have_to_wait_as_one_does(
    door: logins.Logins, guess: Callable[[logins.Logins, str, str], logins.Known | None]
) -> None:
    assert logins.ALL_TRIES_PER_WINDOW / logins.WINDOW_S < 2
    assert logins.TRIES_PER_WINDOW / logins.WINDOW_S < 1
    addresses = [f"10.0.0.{number}" for number in range(logins.ALL_TRIES_PER_WINDOW)]

    assert [guess(door, "qctl_guessed", address) for address in addresses] == [None] * len(addresses)
    with pytest.raises(logins.TooMany):
        guess(door, "qctl_guessed", "10.0.1.1")


def test_a_refusal_on_record_counts_those_before_it_that_are_not(
    sqlite_target: Target, door: logins.Logins, clock: Clock
) -> None:
    for number in range(logins.REFUSALS_ON_RECORD_PER_WINDOW + 3):
        door.log_in("qctl_guessed", f"10.0.0.{number}")

    clock.now_s += logins.WINDOW_S
    door.log_in("qctl_guessed", "10.0.0.1")

    counts = [act.count for act in acts_of(sqlite_target, "login refused")]
    assert counts == [4, *[1] * logins.REFUSALS_ON_RECORD_PER_WINDOW]


def test_what_is_longer_than_any_token_is_not_looked_up(door: logins.Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(door._keyring, "find", asked.append)

    for length in (logins.MOST_SECRET_CHARACTERS, logins.MOST_SECRET_CHARACTERS + 1):
        assert door.log_in("x" * length, "10.0.0.1") is None
        assert door.by_secret("x" * length, "10.0.0.1") is None

    assert asked == ["x" * logins.MOST_SECRET_CHARACTERS] * 2


def test_tries_are_counted_by_address_and_in_all_and_come_back_with_time(clock: Clock) -> None:
    tries = throttle.Throttle(each=2, total=5, window_s=60, read_s=clock)

    assert [tries.take("10.0.0.1") for _ in range(2)] == [0, 0]
    assert tries.take("10.0.0.1") == pytest.approx(30)
    assert [tries.take("10.0.0.2"), tries.take("10.0.0.2"), tries.take("10.0.0.3")] == [0, 0, 0]
    assert tries.take("10.0.0.4") == pytest.approx(12)  # in all
    assert tries.wait_s("10.0.0.4") == pytest.approx(12)
    clock.now_s += 30
    assert tries.take("10.0.0.1") == 0
    assert tries.take("10.0.0.1") > 0
    clock.now_s += 3600
    assert [tries.take("10.0.0.1") > 0 for _ in range(3)] == [False, False, True]  # no more for having waited longer


def test_one_network_of_ipv6_is_one_address(clock: Clock) -> None:
    tries = throttle.Throttle(each=1, total=100, window_s=60, read_s=clock)

    assert tries.take("2001:db8::1") == 0
    assert tries.take("2001:db8::ffff:2") > 0
    assert tries.take("2001:db8:0:1::1") == 0
    assert tries.take("::ffff:10.0.0.1") == 0
    assert tries.take("::ffff:10.0.0.2") == 0
    assert tries.take("2001:db8:0:1::2%eth0") > 0


def test_of_what_is_no_address_only_the_beginning_counts(clock: Clock) -> None:
    tries = throttle.Throttle(each=1, total=100, window_s=60, read_s=clock)

    assert tries.take("x" * 64 + "a") == 0
    assert tries.take("x" * 64 + "b") > 0


def test_the_memory_of_tries_is_bounded(clock: Clock) -> None:
    tries = throttle.Throttle(each=1, total=10**9, window_s=60, read_s=clock)

    for number in range(throttle.MOST_ADDRESSES + 500):
        tries.take(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")

    assert len(tries._by_address) <= throttle.MOST_ADDRESSES


def test_whoever_still_has_to_wait_is_not_forgotten_for_those_who_need_not(clock: Clock) -> None:
    tries = throttle.Throttle(each=1, total=10**9, window_s=60, read_s=clock)
    for number in range(throttle.MOST_ADDRESSES - 1):
        tries.take(f"10.0.{number >> 8}.{number & 255}")
    clock.now_s += 60
    assert tries.take("192.0.2.1") == 0

    assert tries.take("192.0.2.2") == 0

    assert tries.take("192.0.2.1") > 0


# How long


def test_a_session_ends_when_it_is_not_used_for_long(clock: Clock) -> None:
    kept = sessions.Sessions(clock)
    session = kept.begin("t")

    clock.now_s += sessions.IDLE_S - 1
    assert kept.use(session.id) is not None
    clock.now_s += sessions.IDLE_S - 1
    assert kept.use(session.id) is not None
    clock.now_s += sessions.IDLE_S

    assert kept.use(session.id) is None
    assert kept.use(session.id) is None
    assert sessions.IDLE_S <= 12 * 3600


def test_a_session_ends_after_a_week_however_much_it_is_used(clock: Clock) -> None:
    kept = sessions.Sessions(clock)
    session = kept.begin("t")
    uses = 0

    while kept.use(session.id) is not None:
        clock.now_s += sessions.IDLE_S / 2
        uses += 1

    assert uses == sessions.LONGEST_S / (sessions.IDLE_S / 2)
    assert sessions.LONGEST_S == 7 * 86400


def test_what_a_session_is_known_by_and_writes_with_is_random_and_its_own(clock: Clock) -> None:
    kept = sessions.Sessions(clock)

    begun = [kept.begin("t") for _ in range(2)]

    secrets = [secret for session in begun for secret in (session.id, session.csrf)]
    assert len(set(secrets)) == 4
    assert all(len(secret) >= 43 for secret in secrets)


def test_the_number_of_sessions_is_bounded_and_one_token_does_not_end_those_of_others(clock: Clock) -> None:
    kept = sessions.Sessions(clock)
    mine = kept.begin("mine")
    crowd = [kept.begin("theirs") for _ in range(sessions.MOST * 2)]

    assert kept.use(mine.id) is not None
    assert [kept.use(each.id) is not None for each in crowd].count(True) == sessions.MOST_OF_A_TOKEN
    for number in range(sessions.MOST):
        kept.begin(f"t{number}")
    assert kept.use(crowd[-1].id) is None
    assert len(kept._kept) <= sessions.MOST


def test_the_store_is_asked_for_a_token_every_few_seconds_at_most(
    sqlite_target: Target, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(connect(sqlite_target)) as database:
        token, secret = add_token(database, "ci", "read", who="me")
    asked: list[object] = []
    stores = Stores(sqlite_target)
    read = stores.read

    def count(work: Callable[[Tx], Token | None]) -> Token | None:
        asked.append(work)
        return read(work)

    monkeypatch.setattr(stores, "read", count)
    with closing(stores):
        ring = keyring.Keyring(stores, clock)

        assert not ring.knows(secret)
        for _ in range(10):
            assert ring.find(secret) == token
            assert ring.current(token.id) == token
        assert len(asked) == 1
        revoke(sqlite_target, "ci")
        clock.now_s += keyring.FRESH_S

        assert ring.current(token.id) is None
        assert ring.find(secret) is None
        assert not ring.knows(secret)
    assert keyring.FRESH_S <= 5


def test_a_token_that_was_known_ends_when_its_time_has_passed(sqlite_target: Target, clock: Clock) -> None:
    with closing(connect(sqlite_target)) as database, closing(Stores(sqlite_target)) as stores:
        token, secret = add_token(database, "ci", "read", lasts_ms=3_600_000, who="me")
        ring = keyring.Keyring(stores, clock)
        assert ring.find(secret) == token

        database.write(lambda tx: tx.changed("UPDATE tokens SET expires_at = :now", {"now": tx.now}))
        clock.now_s += keyring.FRESH_S

        assert ring.current(token.id) is None
        assert ring.find(secret) is None


# In a browser


@pytest.mark.needs("chromium")
def test_without_scripts_one_can_log_in(far_site: Site, browser: Browser) -> None:
    secret = token_of(far_site.target, "read")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.set_default_timeout(30_000)

    tab.goto(f"{far_site.url}/queues?x=1")
    assert parse_qs(urlsplit(tab.url).query)["next"] == ["/queues?x=1"]
    tab.get_by_label("Token").fill("qctl_wrong")
    tab.get_by_role("button", name="Log in").click()
    expect(tab.get_by_role("alert")).to_contain_text("not known")
    tab.get_by_label("Token").fill(secret)
    tab.get_by_role("button", name="Log in").click()

    expect(tab.get_by_role("heading", name="Queues")).to_be_visible()
    assert urlsplit(tab.url).path == "/queues"
    context.close()


@pytest.mark.needs("chromium")
def test_a_reader_sees_but_changes_nothing_and_is_out_when_the_token_is_revoked(far_site: Site, page: Page) -> None:
    admin = token_of(far_site.target, "admin")
    secret = token_of(far_site.target, "read", "reader")
    far_site.post(PAUSE, None, **bearer(admin))

    page.goto(f"{far_site.url}/queues")
    assert violations(page) == []
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    resume = page.get_by_role("button", name="Resume queue x")
    expect(resume).to_be_disabled()
    assert "needs the role operate" in (resume.get_attribute("title") or "")
    forged = """async ([url, csrf]) => {
        const headers = csrf ? {"X-CSRF-Token": document.querySelector('meta[name="csrf"]').content} : {};
        return (await fetch(url, {method: "POST", headers})).status;
    }"""
    assert page.evaluate(forged, ["/api/v1/queues/x/resume", True]) == 403
    assert page.evaluate(forged, ["/api/v1/queues/x/resume", False]) == 403
    assert page.evaluate("document.cookie") == ""
    assert acts_of(far_site.target, "queue resume") == []

    revoke(far_site.target, "reader")
    far_site.post("/api/v1/queues/y/pause", None, **bearer(admin))

    expect(page.get_by_label("Token")).to_be_visible()  # the page finds out by itself
    assert urlsplit(page.url).path == "/login"


@pytest.mark.needs("chromium")
def test_one_logs_out_with_a_button(far_site: Site, page: Page) -> None:
    secret = token_of(far_site.target, "operate")
    page.goto(f"{far_site.url}/login?next=/queues")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("token operate")).to_be_visible()

    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("async () => (await fetch('/api/v1/queues')).status") == 401


@pytest.mark.needs("chromium")
def test_a_page_of_another_site_can_neither_write_nor_frame_ours(local_site: Site, page: Page) -> None:
    local_site.post(PAUSE)
    resume = f"{local_site.url}/api/v1/queues/x/resume"
    form = f'<form method="post" action="{resume}"><button>go</button></form>'
    page.goto("about:blank")
    page.set_content(f'{form}<iframe src="{local_site.url}/queues"></iframe>')

    page.evaluate("(url) => fetch(url, {method: 'POST', mode: 'no-cors'}).catch(() => null)", resume)
    framed = page.frames[-1].evaluate("document.body?.innerText ?? ''")
    with page.expect_response(resume) as answered:
        page.get_by_role("button", name="go").click()

    assert "Queues" not in framed
    assert answered.value.status == 403
    assert acts_of(local_site.target, "queue resume") == []
