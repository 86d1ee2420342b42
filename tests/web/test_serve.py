"""queuectl serve as a process: where it listens, what it refuses to do, and how it stops."""

import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from queuectl.actions.connect import Target
from tests.program import Cli, running_cli
from tests.web.serving import Site
from tests.web.tokens import FORM, bearer, token_of

QUEUES = "/api/v1/queues"


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


def test_a_port_in_use_is_refused(local: Cli) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        done = local.run("serve", "--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert "Address already in use" in done.stderr
    assert "--port 0" in done.stderr


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
    none = cli.run("serve", "--port", "0", *words.split())
    token_of(cli.target, "admin", lasts_ms=1)
    expired = cli.run("serve", "--port", "0", *words.split())

    for done in (none, expired):
        assert done.returncode == 6
        assert "queuectl token add" in done.stderr


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


def test_a_missing_package_is_named_with_what_installs_it(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('none here', name='uvicorn')\n")
    path = f"{tmp_path}:{local.environ.get('PYTHONPATH', '')}"

    done = local.run("serve", env={"PYTHONPATH": path})

    assert done.returncode == 1
    assert "uvicorn" in done.stderr
    assert "pip install 'queuectl[web]'" in done.stderr


def test_a_store_that_cannot_be_used_is_told_at_the_start(tmp_path: Path, local: Cli) -> None:
    (tmp_path / "no.db").write_text("this is not a database at all, and far too long to be an empty one\n" * 100)

    done = local.run("serve", "--port", "0", "--db", f"sqlite://{tmp_path}/no.db")

    assert done.returncode == 5


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
        assert answer.headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Secure")
        assert answer.headers["Strict-Transport-Security"].startswith("max-age=")
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
        done = local.run("serve", "--port", "0", "--tls-cert", cert, "--tls-key", wrong)
        assert done.returncode == 2
        assert "cannot use certificate" in done.stderr
