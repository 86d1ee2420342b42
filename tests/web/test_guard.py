"""Who is let in, from where, and who may write."""

import re
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from starlette.requests import Request

from queuectl.actions.connect import Target, connect
from queuectl.store import tokens
from queuectl.system.host import user_at_host
from queuectl.web.guard import Guard, address_of
from queuectl.web.logins import Logins
from queuectl.web.reach import Reach, host_of, is_loopback
from queuectl.web.stores import Stores
from tests.program import wait_for
from tests.web.loops import run_apart
from tests.web.routes import OPEN, an_address_of, every_route
from tests.web.serving import Answer, Site, serving
from tests.web.tokens import acts_of, bearer, cookie_in, revoke, send_login, token_of

QUEUES = "/api/v1/queues"
PAUSE = "/api/v1/queues/x/pause"
LIMIT = "/api/v1/limits/x"
PROXY_HEADERS = [
    "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Anything", "Forwarded", "Via", "X-Real-IP", "X-Client-IP",
    "CF-Connecting-IP", "True-Client-IP",
]  # fmt: skip
ROLES = ["read", "submit", "operate", "admin"]


@pytest.fixture
def far_site(sqlite_target: Target) -> Iterator[Site]:
    """A server that takes itself to listen on an address of a network: no loopback counts."""
    with serving(sqlite_target, Reach(host="0.0.0.0", is_local=False)) as site:
        yield site


@pytest.fixture
def proxied_site(sqlite_target: Target) -> Iterator[Site]:
    """A server behind a proxy that serves it below /q."""
    reach = Reach(root_path="/q", is_proxied=True, names=("queue.example.org",))
    with serving(sqlite_target, reach) as site:
        yield site


def send_raw(site: Site, *lines: str) -> int:
    """Send the lines of a request as they are, and return the status of the answer."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as connection:
        connection.sendall("\r\n".join((*lines, "Connection: close", "", "")).encode())
        answer = connection.makefile("rb").readline()
    return int(answer.split()[1])


def scope_of(
    *headers: tuple[str, str], client: str | None = "127.0.0.1", server: str = "127.0.0.1"
) -> dict[str, object]:
    """Return a request as the server below hands it on, from an address that no test can come from."""
    return {
        "type": "http", "method": "GET", "path": QUEUES, "query_string": b"", "server": (server, 80),
        "client": None if client is None else (client, 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }  # fmt: skip


def passes(target: Target, reach: Reach, scope: dict[str, object]) -> int:
    """Hand a request to the guard and return the status of its answer; 200 means that it let it pass."""
    sent: list[dict[str, object]] = []

    async def beyond(*_: object) -> None:
        sent.append({"status": 200})

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    with closing(Stores(target)) as stores:
        guard = Guard(beyond, reach=reach, logins=Logins(stores))
        run_apart(guard(scope, receive, send))  # type: ignore[arg-type]
    status = sent[0]["status"]
    assert isinstance(status, int)
    return status


# From where: the name in Host


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "evil.localhost", "a b", "",
        "[::1", "10.0.0.1", "x:y:z",
    ],
)  # fmt: skip
def test_a_server_called_by_another_name_does_not_answer(local_site: Site, host: str) -> None:
    for path in (QUEUES, "/queues", "/login", "/static/js/main.js"):
        assert local_site.get(path, Host=host).status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1:8787", "127.1.2.3", "[::1]:80", "localhost."])
def test_a_server_answers_to_every_name_of_loopback(local_site: Site, host: str) -> None:
    assert local_site.get(QUEUES, Host=host).status == 200


def test_a_server_answers_to_the_names_it_was_given_and_to_its_own_address(sqlite_target: Target) -> None:
    secret = token_of(sqlite_target, "read")
    reach = Reach(host="192.0.2.1", names=("q.example.org",), is_local=False)
    with serving(sqlite_target, reach) as site:
        answers = [
            site.get(QUEUES, Host=host, **bearer(secret)).status
            for host in ("192.0.2.1", "q.example.org:443", "Q.Example.Org", "127.0.0.1", "192.0.2.2", "example.org")
        ]

    assert answers == [200, 200, 200, 200, 421, 421]


def test_two_hosts_are_no_host(local_site: Site) -> None:
    assert send_raw(local_site, f"GET {QUEUES} HTTP/1.1", "Host: localhost", "Host: evil.example") in (400, 421)
    assert send_raw(local_site, f"GET {QUEUES} HTTP/1.0") in (400, 421)
    assert send_raw(local_site, f"GET {QUEUES} HTTP/1.1", "Host: localhost") == 200


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_two_hosts_or_none_go_no_further_whatever_the_server_below_lets_pass(
    sqlite_target: Target, hosts: list[str]
) -> None:
    assert passes(sqlite_target, Reach(), scope_of(*(("Host", host) for host in hosts))) == 421


def test_a_server_on_every_address_answers_to_the_one_it_was_asked_at(sqlite_target: Target) -> None:
    reach = Reach(host="0.0.0.0", is_local=False)
    secret = ("Authorization", f"Bearer {token_of(sqlite_target, 'read')}")

    assert passes(sqlite_target, reach, scope_of(("Host", "192.0.2.7:80"), secret, server="192.0.2.7")) == 200
    assert passes(sqlite_target, reach, scope_of(("Host", "192.0.2.8:80"), secret, server="192.0.2.7")) == 421


@pytest.mark.parametrize(
    "header, name",
    [("a.b:1", "a.b"), ("[::1]:80", "::1"), ("A.", "a"), ("[::1", None), ("a/b", None), ("", None), ("a:b", None)],
)
def test_the_name_is_read_from_the_header(header: str, name: str | None) -> None:
    assert host_of(header) == name


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_told_by_the_address(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.1", "::", "localhost", "", "::ffff:10.0.0.1", "127.0.0.1.x"])
def test_what_is_not_loopback_is_told_by_the_address(address: str) -> None:
    assert not is_loopback(address)


# Who: loopback, tokens


def test_on_loopback_no_login_is_needed_and_acts_are_those_of_the_user(site: Site) -> None:
    assert site.post(PAUSE).status == 200

    [act] = acts_of(site.target, "queue pause")
    assert act.who == user_at_host()


def test_a_bad_token_is_refused_also_on_loopback(site: Site) -> None:
    token_of(site.target, "admin")

    for given in ("Bearer qctl_guessed", "Bearer", "Bearer  ", "Basic YTpi", "qctl_x", "Bearer \u00fc"):
        answer = site.get(QUEUES, Authorization=given)
        assert answer.status == 401, given
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert answer.json()["status"] == 401


def test_what_bears_no_token_is_no_guess_whatever_stands_in_its_place(local_site: Site) -> None:
    secret = token_of(local_site.target, "admin")

    for given in (f"Basic {secret}", secret, "Bearer", "Bearer  "):
        answer = local_site.get(QUEUES, Authorization=given)
        assert (answer.status, "invalid_token" in answer.headers["www-authenticate"]) == (401, False), given
    guessed = local_site.get(QUEUES, Authorization="Bearer qctl_guessed")
    assert "invalid_token" in guessed.headers["www-authenticate"]


def test_two_tokens_are_none(local_site: Site) -> None:
    own, other = (f"Authorization: Bearer {token_of(local_site.target, role)}" for role in ("read", "admin"))
    head = (f"GET {QUEUES} HTTP/1.1", "Host: localhost")

    assert send_raw(local_site, *head, own, other) == 401
    assert send_raw(local_site, *head, own, own) == 401
    assert send_raw(local_site, *head, own) == 200


def test_who_sends_a_token_beside_a_session_acts_by_the_token(local_site: Site) -> None:
    session = cookie_in(send_login(local_site, token_of(local_site.target, "read", "person")))
    token = bearer(token_of(local_site.target, "operate", "robot"))

    assert local_site.post(PAUSE, None, **session, **token).status == 200
    assert local_site.get(QUEUES, **session, **bearer("qctl_guessed")).status == 401
    assert [act.who for act in acts_of(local_site.target, "queue pause")] == ["token robot"]


def test_an_expired_or_revoked_token_is_refused(site: Site) -> None:
    short = token_of(site.target, "admin", "short", lasts_ms=1)
    gone = token_of(site.target, "admin", "gone")
    assert site.get(QUEUES, **bearer(gone)).status == 200
    revoke(site.target, "gone")

    assert site.get(QUEUES, **bearer(short)).status == 401
    wait_for(lambda: site.get(QUEUES, **bearer(gone)).status == 401, "the token refused", 30)


@pytest.mark.parametrize("role", ROLES)
def test_a_token_may_do_what_its_role_may_and_its_acts_are_its_own(site: Site, role: str) -> None:
    secret = token_of(site.target, role, "robot")

    reading = site.get(QUEUES, **bearer(secret))
    acting = site.post(PAUSE, None, **bearer(secret))
    setting = site.ask("PUT", "/api/v1/settings/max_retries", {"value": "5"}, bearer(secret))

    rank = ROLES.index(role)
    assert reading.status == 200
    assert acting.status == (200 if rank >= ROLES.index("operate") else 403)
    assert setting.status == (200 if rank >= ROLES.index("admin") else 403)
    assert {act.who for act in acts_of(site.target, "queue pause")} <= {"token robot"}


@pytest.mark.parametrize("name", PROXY_HEADERS)
def test_what_looks_like_a_proxy_on_loopback_does_not_make_everybody_local(local_site: Site, name: str) -> None:
    secret = token_of(local_site.target, "read")

    assert local_site.get(QUEUES, **{name: "for=1.2.3.4"}).status == 401
    assert local_site.get(QUEUES, **{name: "127.0.0.1"}).status == 401
    assert local_site.get(QUEUES, **{name: "127.0.0.1"}, **bearer(secret)).status == 200


@pytest.mark.parametrize("peer, status", [("127.0.0.1", 200), ("::1", 200), ("192.0.2.9", 401), ("", 401), (None, 401)])
def test_who_asks_from_elsewhere_or_from_nowhere_is_not_local(
    sqlite_target: Target, peer: str | None, status: int
) -> None:
    assert passes(sqlite_target, Reach(), scope_of(("Host", "localhost"), client=peer)) == status


def test_a_proxy_that_says_nothing_but_passes_the_name_on_does_not_either(sqlite_target: Target) -> None:
    with serving(sqlite_target, Reach(names=("queue.example.org",))) as site:
        assert site.get(QUEUES, Host="queue.example.org").status == 401
        assert site.get(QUEUES, Host="localhost").status == 200


@pytest.mark.parametrize("reach", [Reach(is_local=False), Reach(is_proxied=True)], ids=["network", "proxy"])
def test_nothing_is_served_without_a_token_but_the_login_and_what_it_needs(sqlite_target: Target, reach: Reach) -> None:
    wanted = {(how, an_address_of(path)) for how, path in every_route() if path not in OPEN}
    wanted |= {("GET", path) for path in ("/", "/nothing", "/loginx", "/staticx", "/healthz/x")}
    assert len(wanted) > 20
    with serving(sqlite_target, reach) as site:
        # By HEAD: a stream that is let in would never end.
        statuses = {(how, path): site.ask("HEAD" if how == "GET" else how, path).status for how, path in sorted(wanted)}
        opened = [site.get(path).status for path in ("/login", "/static/js/main.js")]

    assert {each: status for each, status in statuses.items() if status != 401} == {}
    assert opened == [200, 200]


def test_a_person_without_a_login_is_sent_to_it_and_a_program_is_told(far_site: Site) -> None:
    page = far_site.get("/queues?a=b&c=%2F", Accept="text/html")
    live = far_site.ask("GET", "/queues", headers={"Accept": "text/html", "X-Live": "1"})
    program = far_site.get(QUEUES, Accept="text/html")

    assert (page.status, page.headers["location"]) == (303, "/login?next=/queues%3Fa%3Db%26c%3D%252F")
    assert live.status == 401
    assert (program.status, program.headers["content-type"]) == (401, "application/problem+json")


def test_who_follows_a_link_from_another_site_comes_again_with_the_cookie(far_site: Site) -> None:
    headers = {"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    answer = far_site.ask("GET", "/queues", headers=headers)

    assert answer.status == 200
    assert 'http-equiv="refresh"' in answer.text


def test_where_a_token_was_used_last_is_noted(site: Site) -> None:
    secret = token_of(site.target, "read")

    site.get(QUEUES, **bearer(secret))

    with closing(connect(site.target)) as database:
        [token] = database.read(tokens.all_tokens)
    assert token.last_used_at is not None
    assert token.last_used_from == "127.0.0.1"


# Writes


def own_origins(site: Site) -> list[dict[str, str]]:
    return [
        {"Origin": f"http://127.0.0.1:{site.port}"},
        {"Origin": f"http://localhost:{site.port}", "Host": f"localhost:{site.port}"},
        {"Origin": f"http://[::1]:{site.port}", "Host": f"[::1]:{site.port}"},
        {"Origin": f"http://localhost.:{site.port}", "Host": f"localhost.:{site.port}"},
        {"Origin": f"http://127.0.0.1:{site.port}", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {},
    ]


def foreign_origins(site: Site) -> list[dict[str, str]]:
    return [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": f"http://127.0.0.1:{site.port + 1}"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": f"http://localhost:{site.port}"},
        {"Origin": f"http://127.0.0.1:{site.port}.evil.example"},
        {"Origin": f"http://evil.example@127.0.0.1:{site.port}"},
        {"Origin": f"http://127.0.0.1:{site.port}/x"},
        {"Origin": f"http://127.0.0.1:{site.port}?x"},
        {"Origin": f"ftp://127.0.0.1:{site.port}"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ]


def test_a_page_of_another_site_changes_nothing_whatever_it_sends(local_site: Site) -> None:
    secret = token_of(local_site.target, "admin")

    for headers in foreign_origins(local_site):
        assert local_site.post(PAUSE, None, **headers).status == 403, headers
        assert local_site.post(PAUSE, None, **headers, **bearer(secret)).status == 403, headers
        for method, path in (("PUT", LIMIT), ("PATCH", "/api/v1/queues/x"), ("DELETE", "/api/v1/queues/x")):
            assert local_site.ask(method, path, {}, headers).status == 403, (method, headers)
        assert send_login(local_site, secret, **headers).status == 403, headers
    assert acts_of(local_site.target, "queue pause") == []
    assert acts_of(local_site.target, "login") == []


def test_our_own_pages_and_plain_programs_may_write_on_loopback(local_site: Site) -> None:
    for headers in own_origins(local_site):
        assert local_site.post(PAUSE, None, **headers).status == 200, headers


def test_two_origins_are_foreign(local_site: Site) -> None:
    own = f"Origin: http://127.0.0.1:{local_site.port}"
    head = (f"POST {PAUSE} HTTP/1.1", f"Host: 127.0.0.1:{local_site.port}", "Content-Length: 0")

    assert send_raw(local_site, *head, own, "Origin: http://evil.example") == 403
    assert send_raw(local_site, *head, own) == 200


def test_another_site_may_link_to_a_page_but_not_fetch_one(local_site: Site) -> None:
    fetched = local_site.ask("GET", "/queues", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    linked = local_site.ask("GET", "/queues", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})

    assert (fetched.status, linked.status) == (403, 200)


def test_under_https_a_page_of_the_same_name_by_http_is_foreign(proxied_site: Site) -> None:
    secret = token_of(proxied_site.target, "admin")
    headers = {"Host": "queue.example.org", "X-Forwarded-Proto": "https", **bearer(secret)}

    foreign = ("http://queue.example.org", "http://queue.example.org:443", "https://queue.example.org:80")
    for origin in foreign:
        assert proxied_site.post(PAUSE, None, Origin=origin, **headers).status == 403, origin
    for origin in ("https://queue.example.org", "https://queue.example.org:443"):
        assert proxied_site.post(PAUSE, None, Origin=origin, **headers).status == 200, origin


def test_a_session_needs_its_csrf_token_with_every_write(site: Site) -> None:
    first = cookie_in(send_login(site, token_of(site.target, "operate", "first")))
    second = cookie_in(send_login(site, token_of(site.target, "operate", "second")))
    csrf = csrf_of(site, first)
    own = {"Origin": f"http://127.0.0.1:{site.port}"}

    assert site.get(QUEUES, **first).status == 200
    assert site.post(PAUSE, None, **first, **own).status == 403
    assert site.post(PAUSE, None, **first, **own, **{"X-CSRF-Token": csrf_of(site, second)}).status == 403
    assert site.post(PAUSE, None, **first, **own, **{"X-CSRF-Token": ""}).status == 403
    assert site.post(PAUSE, None, **first, **own, **{"X-CSRF-Token": csrf}).status == 200
    assert [act.who for act in acts_of(site.target, "queue pause")] == ["token first"]


def test_every_kind_of_write_of_a_session_needs_the_csrf_token(local_site: Site) -> None:
    session = cookie_in(send_login(local_site, token_of(local_site.target, "admin")))
    csrf = {"X-CSRF-Token": csrf_of(local_site, session)}
    writes = [("PUT", LIMIT, {"slots": 1}), ("PATCH", "/api/v1/queues/x", {"concurrency": 2}), ("DELETE", LIMIT, None)]

    for method, path, body in writes:
        assert local_site.ask(method, path, body, session).status == 403, method
        assert local_site.ask(method, path, body, session | csrf).status == 200, method


def csrf_of(site: Site, cookie: dict[str, str]) -> str:
    found = re.search(r'<meta name="csrf" content="([^"]+)">', site.get("/queues", **cookie).text)
    assert found is not None
    return found[1]


# What every answer says


def every_kind_of_answer(site: Site) -> Iterator[Answer]:
    yield site.get("/queues")
    yield site.get(QUEUES)
    yield site.get("/nothing")
    yield site.get("/nothing", Accept="text/html")
    yield site.get(QUEUES, Host="evil.example")
    yield site.get(QUEUES, Authorization="Bearer x")
    yield site.get("/queues", **{"X-Real-IP": "1.1.1.1", "Accept": "text/html"})
    yield site.get("/login")
    yield site.get("/static/js/main.js")
    yield site.get("/static/nothing")
    yield site.ask("POST", PAUSE, None, {"Content-Length": "3000000"})
    yield site.ask("TRACE", QUEUES)


def test_every_answer_says_what_a_browser_may_do_with_it(local_site: Site) -> None:
    for answer in every_kind_of_answer(local_site):
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
        assert policy["form-action"] == policy["connect-src"] == "'self'"
        assert policy["img-src"] == "'self' data:"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "strict-transport-security" not in answer.headers
        assert "server" not in answer.headers


def test_only_what_is_the_same_for_everybody_is_kept_by_browsers(local_site: Site) -> None:
    assert local_site.get("/queues").headers["cache-control"] == "no-store"
    assert local_site.get(QUEUES).headers["cache-control"] == "no-store"
    assert local_site.get("/static/js/main.js").headers["cache-control"] == "no-cache"


# Behind a proxy


def test_below_a_root_path_both_kinds_of_proxy_are_understood(proxied_site: Site) -> None:
    secret = token_of(proxied_site.target, "read")

    for prefix in ("", "/q"):
        assert proxied_site.get(f"{prefix}{QUEUES}", **bearer(secret)).status == 200
        assert proxied_site.get(f"{prefix}{QUEUES}").status == 401
        assert proxied_site.get(f"{prefix}/static/js/main.js").status == 200
        page = proxied_site.get(f"{prefix}/queues", **bearer(secret)).text
        assert 'href="/q/' in page
        assert 'data-base="/q"' in page
        assert not re.search(r'(href|src|action)="/(?!q[/"])', page)
        sent = proxied_site.get(f"{prefix}/queues", Accept="text/html")
        assert sent.headers["location"] == "/q/login?next=/queues"
    assert proxied_site.get("/queue", **bearer(secret)).status == 404


def test_the_login_behind_a_proxy_stays_below_the_root_path_and_notes_who_came(proxied_site: Site) -> None:
    secret = token_of(proxied_site.target, "read")

    done = send_login(proxied_site, secret, **{"X-Forwarded-For": "6.6.6.6, 203.0.113.9", "X-Forwarded-Proto": "https"})

    assert done.headers["location"] == "/q/queues"
    assert done.headers["set-cookie"].startswith("__Secure-queuectl_session_")
    assert "; Path=/q;" in done.headers["set-cookie"]
    assert done.headers["set-cookie"].endswith("; Secure")
    assert [act.target for act in acts_of(proxied_site.target, "login")] == ["from 203.0.113.9"]


def test_what_is_forwarded_is_not_believed_where_no_proxy_was_said_to_be(local_site: Site) -> None:
    secret = token_of(local_site.target, "read")

    send_login(local_site, secret, **{"X-Forwarded-For": "203.0.113.9"})

    assert [act.target for act in acts_of(local_site.target, "login")] == ["from 127.0.0.1"]


@pytest.mark.parametrize(
    "peer, told, address",
    [
        ("127.0.0.1", ["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        ("::1", ["6.6.6.6", " 203.0.113.9 "], "203.0.113.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["6.6.6.6,"], "127.0.0.1"),
        ("127.0.0.1", ["x" * 500], "x" * 64),
        ("192.0.2.9", ["203.0.113.9"], "192.0.2.9"),
    ],
)
def test_what_a_proxy_on_this_machine_added_last_is_the_address(peer: str, told: list[str], address: str) -> None:
    request = Request(scope_of(*(("X-Forwarded-For", each) for each in told), client=peer))

    assert address_of(request, Reach(is_proxied=True)) == address
    assert address_of(request, Reach()) == peer
