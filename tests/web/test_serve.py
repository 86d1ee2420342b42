"""queuectl serve as a process: where it listens, what it refuses to do, and how it stops."""

import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from queuectl.actions.connect import Target, connect, locate
from queuectl.model.states import State
from queuectl.web.app import make_app, warm_up
from tests.program import Cli, running_cli
from tests.proxy import proxied, through
from tests.store.rows import add_job
from tests.web.serving import Site
from tests.web.tokens import FORM, bearer, token_of

QUEUES = "/api/v1/queues"
SOON_S = 15.0
"""Answers under way may take 5 s, and the threads behind them 2 s each; a store that is away is waited for 20 s."""


@pytest.fixture
def local(sqlite_target: Target, tmp_path: Path) -> Iterator[Cli]:
    """The program on SQLite alone, for what does not depend on the store."""
    with running_cli(sqlite_target, tmp_path) as cli:
        yield cli


def serve(cli: Cli, *words: str) -> tuple[Site, "subprocess.Popen[str]", str]:
    """Start a server on a free port; return it, its process and what it said."""
    process = cli.start("serve", "--port", "0", *words)
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.match(r"serving on (\S+) ", said)
    assert found is not None, said + process.stderr.read()
    port = urlsplit(found[1]).port
    assert port is not None
    return Site(cli.target, port), process, said


def refused(cli: Cli, *words: str) -> tuple[int, str]:
    """Start a server that is to be refused; return its exit code and what it said. One that serves fails at once."""
    process = cli.start("serve", "--port", "0", *words)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert not said.startswith("serving on"), said
    return process.wait(timeout=60), said + process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_says_where_it_listens_and_leaves_in_order_when_asked_to(cli: Cli, number: int) -> None:
    site, process, said = serve(cli)
    assert site.get(QUEUES).json() == {"queues": []}
    assert "no login is needed from this machine" in said

    process.send_signal(number)

    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_an_open_stream_ends_in_order_when_the_server_stops(local: Cli) -> None:
    site, process, _ = serve(local)
    with closing(HTTPConnection("127.0.0.1", site.port, timeout=60)) as connection:
        connection.request("GET", "/api/v1/events")
        stream = connection.getresponse()
        assert stream.readline() == b"retry: 2000\n"

        process.send_signal(signal.SIGTERM)
        stream.read()  # raises IncompleteRead where the stream was cut off

    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    assert "timeout graceful shutdown" not in process.stderr.read()


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_it_stops_within_seconds_also_when_the_store_does_not_answer(target: Target, tmp_path: Path) -> None:
    with proxied(target.url) as proxy, running_cli(target.replace(url=through(proxy, target.url)), tmp_path) as cli:
        site, process, _ = serve(cli)
        assert site.get(QUEUES).status == 200
        with proxy.swallowing(after=b"SELECT") as has_begun, ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(_ask_in_vain, site, path) for path in (QUEUES, "/queues", "/api/v1/doctor")]
            assert has_begun(60)

            process.send_signal(signal.SIGTERM)

            assert process.wait(timeout=SOON_S) == 0
            for each in asked:
                each.result()


def _ask_in_vain(site: Site, path: str) -> None:
    try:
        site.ask("GET", path, timeout=60)
    except (OSError, HTTPException):
        pass


def test_what_the_first_visitor_would_wait_for_is_done_before_it_says_that_it_listens(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queuectl.web.snapshot.PATIENCE_S", 60.0)
    with closing(connect(target)) as database:
        add_job(database)
    app = make_app(target)

    warm_up(app)

    view, figures = app.state.board.latest, app.state.figures
    app.state.figures.close()
    app.state.board.close()
    assert view.found is not None
    assert view.found.counts == {"default": {State.PENDING: 1}}
    assert "depths" in figures._asked


def test_a_store_that_is_gone_by_then_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    app = make_app(
        locate(None, {"QUEUECTL_DATABASE_URL": "postgresql://127.0.0.1:1/none", "QUEUECTL_HOME": str(tmp_path)})
    )

    warm_up(app)

    app.state.figures.close()
    app.state.board.close()
    assert "cannot use PostgreSQL" in app.state.board.latest.trouble


def test_a_port_in_use_is_refused(local: Cli) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        code, said = refused(local, "--port", str(taken.getsockname()[1]))

    assert code == 2
    assert "Address already in use" in said
    assert "--port 0" in said


@pytest.mark.parametrize(
    "words, said",
    [
        ("--port x", "port must be a whole number"),
        ("--port 70000", "out of range"),
        ("--host 192.0.2.1", "cannot listen on 192.0.2.1"),
        ("--host http://x", "bad --host"),
        ("--host=", "bad --host"),
        ("--host no-such-name.invalid", "cannot listen on 'no-such-name.invalid'"),
        ("--allow-host a:80", "bad --allow-host"),
        ("--root-path queue", "bad --root-path"),
        ("--root-path=", "bad --root-path"),
        ("--root-path /a//b", "bad --root-path"),
        ("--tls-cert x.pem", "--tls-key missing"),
        ("--tls-cert x.pem --tls-key y.pem", "no file 'x.pem'"),
        ("extra", "unexpected word"),
    ],
)
def test_bad_input_is_refused(local: Cli, words: str, said: str) -> None:
    done = local.run("serve", "--port", "0", *words.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("words", ["--host 0.0.0.0", "--host ::", "--root-path /", "--root-path /queue"])
def test_where_anybody_could_come_in_it_does_not_start_without_a_token(cli: Cli, words: str) -> None:
    if "::" in words and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    none = refused(cli, *words.split())
    token_of(cli.target, "admin", lasts_ms=1)
    expired = refused(cli, *words.split())

    for code, said in (none, expired):
        assert code == 6
        assert "queuectl token add" in said


def test_behind_a_proxy_a_token_is_demanded(local: Cli) -> None:
    secret = token_of(local.target, "read")

    site, _, said = serve(local, "--root-path", "/", "--allow-host", "queue.example.org")

    assert "a token is needed to log in" in said
    assert site.get(QUEUES).status == 401
    assert site.get(QUEUES, **bearer(secret)).status == 200
    assert site.get(QUEUES, Host="queue.example.org", **bearer(secret)).status == 200
    assert site.get(QUEUES, Host="other.example.org", **bearer(secret)).status == 421


def test_a_forwarded_address_is_not_believed(local: Cli) -> None:
    """uvicorn would, of a proxy on loopback: then the header alone would say who is local."""
    secret = token_of(local.target, "read")
    site, _, _ = serve(local)

    for told in ("203.0.113.9", "127.0.0.1"):
        assert site.ask("GET", QUEUES, headers={"X-Forwarded-For": told}).status == 401
        site.ask("GET", QUEUES, headers={"X-Forwarded-For": told, **bearer(secret)})

    assert local.json("token", "list")[0]["last_used_from"] == "127.0.0.1"


def test_requests_are_logged_only_when_asked_for(local: Cli) -> None:
    for words, expected in (((), False), (("--access-log",), True)):
        site, process, _ = serve(local, *words)
        site.get(QUEUES)
        process.terminate()
        process.wait(timeout=60)
        assert process.stderr is not None
        assert ("GET /api/v1/queues" in process.stderr.read()) is expected


def without(local: Cli, folder: Path, package: str) -> dict[str, str]:
    """Return an environment in which a package cannot be imported."""
    (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('none here', name='{package}.inner')\n")
    return {"PYTHONPATH": f"{folder}:{local.environ.get('PYTHONPATH', '')}"}


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "jinja2", "prometheus_client"])
def test_a_missing_package_is_named_with_what_installs_it(local: Cli, tmp_path: Path, package: str) -> None:
    done = local.run("serve", env=without(local, tmp_path, package))

    assert done.returncode == 1
    assert f"needs the extra 'web': the package {package} is missing" in done.stderr
    assert "pip install 'queuectl[web]'" in done.stderr


@pytest.mark.parametrize(
    "words, said",
    [
        ("--port x", "port must be a whole number"),
        ("--host http://x", "bad --host"),
        ("--tls-cert x.pem", "--tls-key missing"),
        ("--tls-cert x.pem --tls-key y.pem", "no file 'x.pem'"),
    ],
)
def test_bad_input_is_told_before_anything_heavy_is_imported(local: Cli, tmp_path: Path, words: str, said: str) -> None:
    done = local.run("serve", *words.split(), env=without(local, tmp_path, "fastapi"))

    assert done.returncode == 2
    assert said in done.stderr


def test_a_store_that_cannot_be_used_is_told_at_the_start(tmp_path: Path, local: Cli) -> None:
    (tmp_path / "no.db").write_text("this is not a database at all, and far too long to be an empty one\n" * 100)

    assert refused(local, "--db", f"sqlite://{tmp_path}/no.db")[0] == 5


# TLS


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for localhost that nobody signed, and its key."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.mark.needs("openssl")
def test_with_a_certificate_it_serves_https_alone_and_cookies_stay_there(
    local: Cli, certificate: tuple[str, str]
) -> None:
    cert, key = certificate
    secret = token_of(local.target, "read")
    site, process, said = serve(local, "--tls-cert", cert, "--tls-key", key)
    assert "https://127.0.0.1:" in said
    context = ssl.create_default_context(cafile=cert)

    with closing(HTTPSConnection("localhost", site.port, context=context, timeout=60)) as connection:
        form = f"token={secret}&next=/queues".encode()
        origin = f"https://localhost:{site.port}"
        connection.request("POST", "/login", form, {"Content-Type": FORM, "Origin": origin})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 303
        transport = answer.headers["Strict-Transport-Security"]
        assert transport.startswith("max-age=")
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"__Host-queuectl_session_{site.port}=")
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
        connection.request("GET", QUEUES, headers={"Cookie": cookie.partition(";")[0]})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        connection.request("POST", f"{QUEUES}/x/pause", headers={"Origin": origin.replace("https", "http")})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 403

    with closing(socket.create_connection(("127.0.0.1", site.port), timeout=60)) as plain:
        plain.sendall(b"GET /queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" not in plain.makefile("rb").read()
    process.terminate()
    assert process.wait(timeout=60) == 0


@pytest.mark.needs("openssl")
def test_a_certificate_that_cannot_be_used_is_refused(local: Cli, certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    locked, other = str(tmp_path / "locked.pem"), str(tmp_path / "other.pem")
    for words in (["pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked], ["genrsa", "-out", other]):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    for wrong in (locked, other, cert):
        code, said = refused(local, "--tls-cert", cert, "--tls-key", wrong)
        assert code == 2
        assert "cannot use certificate" in said
