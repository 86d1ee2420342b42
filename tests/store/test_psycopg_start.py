"""The start of psycopg: what is left out is not missed, and in doubt nothing is left out."""

import subprocess
import sys
from pathlib import Path

import psycopg
import psycopg_binary
import pytest

from queuectl.store.psycopg_start import VersionFinder, version_beside

START = """
import gc, sys
from queuectl.store import psycopg_start
before = list(sys.meta_path)
psycopg_start.start()
assert sys.meta_path == before and gc.isenabled()
"""


def printed(code: str) -> str:
    """Run code in an interpreter of its own; return what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_the_start_asks_for_no_metadata_and_knows_the_versions_all_the_same() -> None:
    code = (
        "import psycopg, psycopg.version, psycopg_binary; print('importlib.metadata' in sys.modules,"
        "psycopg.__version__, psycopg.version.__version__, psycopg_binary.__version__)"
    )

    found = printed(START + code)

    assert found == f"False {psycopg.__version__} {psycopg.__version__} {psycopg_binary.__version__}"


def test_psycopg_has_the_same_modules_as_after_a_plain_import() -> None:
    listing = "import psycopg; print(sorted(name for name in sys.modules if name.startswith('psycopg')))"

    plain, own = printed("import sys\n" + listing), printed(START + listing)

    assert own == plain


def test_a_program_may_use_psycopg_asynchronously_beside_it(postgres_server_url: str) -> None:
    code = f"""
import asyncio, psycopg
async def ask():
    async with await psycopg.AsyncConnection.connect({postgres_server_url!r}) as connection:
        return await (await connection.execute("SELECT 6 * 7")).fetchone()
print(asyncio.run(ask()))
"""

    assert printed(START + code) == "(42,)"


def test_a_collector_that_was_off_stays_off() -> None:
    code = "import gc; gc.disable(); from queuectl.store import psycopg_start; psycopg_start.start()"

    assert printed(f"{code}; print(gc.isenabled())") == "False"


def test_a_missing_psycopg_is_an_import_error_and_leaves_nothing_behind() -> None:
    code = """
import gc, sys
from queuectl.store import psycopg_start
sys.path[:] = [each for each in sys.path if "site-packages" not in each]
before = list(sys.meta_path)
try:
    psycopg_start.start()
except ImportError:
    print(sys.meta_path == before, gc.isenabled())
"""

    assert printed(code) == "True True"


@pytest.mark.parametrize(
    "folders, version",
    [
        (["driver-3.3.9.dist-info", "driver_pool-3.2.dist-info"], "3.3.9"),
        ([], None),
        (["driver-3.3.9.dist-info", "driver-3.3.8.dist-info"], None),
        (["driver-3.3.9.dist-info", "driver-3.3.8.egg-info"], None),
        (["driver-3.4.0.dev1.dist-info"], None),
        (["driver-3.4.0+local.dist-info"], None),
        (["driver-3.3.9.egg-info"], None),
    ],
)
def test_a_version_is_read_off_only_where_there_is_no_doubt(
    tmp_path: Path, folders: list[str], version: str | None
) -> None:
    for name in folders:
        (tmp_path / name).mkdir()

    assert version_beside([str(tmp_path / "driver")], "driver") == version


def test_a_package_in_a_zip_file_or_in_two_places_is_left_to_python() -> None:
    assert version_beside(["/nowhere/site.zip/driver"], "driver") is None
    assert version_beside(["/a/driver", "/b/driver"], "driver") is None


def test_no_other_module_is_found_by_it() -> None:
    assert VersionFinder.find_spec("psycopg.errors", list(psycopg.__path__)) is None
    assert VersionFinder.find_spec("json", None) is None
