"""Connect: which store a command means."""

import os
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, connect, locate, point_at, settings_of
from queuectl.actions.control import set_setting
from queuectl.errors import BadInput, StoreUnreachable
from queuectl.store.database import Database


def test_without_a_word_the_store_is_a_file_in_the_home() -> None:
    target = locate(None, {})

    assert target.home.root == os.path.join(os.path.expanduser("~"), ".queuectl")
    assert target.sqlite_path == os.path.join(target.home.root, "queue.db")


def test_the_home_may_be_elsewhere() -> None:
    assert locate(None, {"QUEUECTL_HOME": "/srv/q"}).url == "sqlite:///srv/q/queue.db"


@pytest.mark.parametrize(
    "url, path, home",
    [
        ("sqlite:///srv/q/queue.db", "/srv/q/queue.db", "/srv/q"),
        ("sqlite:///srv/q/other.db", "/srv/q/other.db", "/srv/q/other.db.d"),
        ("sqlite:////srv/../srv/q/queue.db", "/srv/q/queue.db", "/srv/q"),
    ],
)
def test_a_sqlite_url_names_the_file_and_its_home_is_beside_it(url: str, path: str, home: str) -> None:
    target = locate(url, {"QUEUECTL_HOME": "/elsewhere"})

    assert os.path.normpath(str(target.sqlite_path)).replace("//", "/") == path
    assert os.path.normpath(target.home.root).replace("//", "/") == home


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_postgres_url_keeps_the_home_of_this_host(scheme: str) -> None:
    target = locate(None, {"QUEUECTL_HOME": "/srv/q", "QUEUECTL_DATABASE_URL": f"{scheme}://me:secret@db/queue"})

    assert (target.sqlite_path, target.home.root) == (None, "/srv/q")


def test_every_postgres_has_a_folder_of_its_own_for_output_whatever_its_password() -> None:
    urls = ("postgresql://me:old@db/queue", "postgresql://me:new@db/queue", "postgresql://me@db/queue",
            "postgresql://me@db/other")  # fmt: skip

    one, two, three, other = (locate(None, {"QUEUECTL_DATABASE_URL": url}).home.folder for url in urls)

    assert one == two == three != other
    assert locate(None, {}).home.folder == locate("sqlite:///srv/queue.db", {}).home.folder == ""


@pytest.mark.parametrize(
    "given, whole",
    [
        (
            "?sslrootcert=my%20ca/root.crt&sslmode=verify-full",
            "?sslrootcert={here}/my%20ca/root.crt&sslmode=verify-full",
        ),
        ("?sslcert=%FF%20own.crt", "?sslcert={here}/%FF%20own.crt"),
        ("?sslcert=c:own.crt&sslkeylogfile=keys", "?sslcert={here}/c%3Aown.crt&sslkeylogfile={here}/keys"),
        ("?sslcert=system&sslrootcert=system", "?sslcert={here}/system&sslrootcert=system"),
        ("?sslkey=pkcs11:token=1", "?sslkey=pkcs11:token=1"),
        ("?sslkey=%2Fsrv%2Fkey&sslcert=", "?sslkey=%2Fsrv%2Fkey&sslcert="),
        ("&sslcert=own.crt", "&sslcert=own.crt"),
    ],
)
def test_a_file_that_a_postgres_url_names_is_the_same_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, whole: str
) -> None:
    monkeypatch.chdir(tmp_path)

    target = locate(None, {"QUEUECTL_DATABASE_URL": f"postgresql://db/queue{given}"})
    monkeypatch.chdir("/")

    assert target.url == f"postgresql://db/queue{whole}".format(here=tmp_path)
    assert locate(None, point_at(target, {})) == target


SERVICES = ("service=q&servicefile=/etc/one.conf", "service=q&servicefile=/etc/other.conf")


def test_it_is_the_same_store_from_whichever_folder_its_url_names_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"QUEUECTL_DATABASE_URL": "postgresql://db/queue?sslrootcert=root.crt&user=me"}
    others = [f"postgresql://db/queue?{more}" for more in ("sslrootcert=root.crt&user=you", *SERVICES)]

    here = locate(None, given)
    monkeypatch.chdir(tmp_path)
    there = locate(None, given)

    assert here.url != there.url
    assert here.home == there.home
    assert len({here.home, *(locate(None, {"QUEUECTL_DATABASE_URL": url}).home for url in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "given",
    [
        {"QUEUECTL_HOME": "queue"},
        {"QUEUECTL_DATABASE_URL": "postgresql://db/queue?sslrootcert=root.crt"},
        {"QUEUECTL_DATABASE_URL": "postgresql://db/queue", "PGPASSFILE": "pgpass"},
    ],
)
def test_what_is_named_without_its_folder_is_refused_where_the_current_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(BadInput, match="cannot be found: the current folder does not exist any more") as raised:
        point_at(locate(None, given), given)

    assert raised.value.hint == "cd elsewhere, or write the whole path"


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_url_that_holds_bytes_the_driver_cannot_read_is_named(target: Target) -> None:
    url = f"{target.url}{'&' if '?' in target.url else '?'}sslcert=%E9.crt"

    with pytest.raises(StoreUnreachable, match=r"cannot read the URL .*sslcert=/.*%E9.crt"):
        connect(locate(None, {"QUEUECTL_DATABASE_URL": url}))


def test_a_file_that_a_postgres_variable_names_is_the_same_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {
        "QUEUECTL_DATABASE_URL": "postgresql://db/queue",
        "PGPASSFILE": "pgpass",
        "PGSERVICEFILE": "/etc/pg.conf",
        "PGSSLROOTCERT": "system",
        "PGSSLKEY": "pkcs11:token=1",
        "PGSSLCERT": "",
    }

    pointed = point_at(locate(None, given), given)

    assert {name: pointed[name] for name in given} == given | {"PGPASSFILE": f"{tmp_path}/pgpass"}


def test_the_flag_wins_over_the_environment() -> None:
    environ = {"QUEUECTL_DATABASE_URL": "postgresql://db/queue"}

    assert locate("sqlite:///srv/queue.db", environ).sqlite_path == "/srv/queue.db"


@pytest.mark.parametrize("url", ["postgresql://me:secret@db/queue", "postgresql://db/queue?password=secret"])
def test_a_password_in_the_flag_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadInput, match="would show in ps") as refused:
        locate(url, {})

    assert "secret" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("url", ["mysql://me@db/queue", "queue.db", "sqlite://relative.db", "postgresql:db"])
def test_another_kind_of_url_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="bad database URL") as refused:
        locate(url, {})

    assert "sqlite:///" in refused.value.hint


def test_a_home_that_cannot_be_made_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnreachable, match="cannot create"):
        connect(locate(None, {"QUEUECTL_HOME": str(tmp_path / "file" / "home")}))


def test_a_database_in_a_folder_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="no folder") as refused:
        connect(locate(f"sqlite://{tmp_path}/nosuch/jobs.db", {}))

    assert f"mkdir -p {tmp_path}/nosuch" in refused.value.hint
    assert not (tmp_path / "nosuch").exists()


def test_two_connections_see_the_same_store(db: Database, target: Target) -> None:
    set_setting(db, "max_retries", "9", who="me")

    other = connect(target)

    assert other.read(lambda tx: settings_of(tx, {})).max_retries == 9
    other.close()


def test_the_environment_overrides_what_is_stored(db: Database) -> None:
    set_setting(db, "max_retries", "9", who="me")

    assert db.read(lambda tx: settings_of(tx, {"QUEUECTL_MAX_RETRIES": "1"})).max_retries == 1
