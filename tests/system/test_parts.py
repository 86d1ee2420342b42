"""Parts: files under way that nobody can foresee, and that are told from those a killed process left."""

import os
from pathlib import Path

import pytest

from queuectl.errors import StoreUnreachable
from queuectl.system.parts import Part, remove_left_parts


def test_a_part_is_new_and_for_its_owner_alone(tmp_path: Path) -> None:
    first, second = Part(str(tmp_path), ".a."), Part(str(tmp_path), ".a.")

    assert first.path != second.path
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_link", [True, False], ids=["link", "file"])
def test_what_lies_in_its_place_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "foreseen")
    planted = tmp_path / ".a.foreseen.part"
    if is_link:
        planted.symlink_to(tmp_path / "elsewhere")
    else:
        planted.write_text("planted")

    with pytest.raises(StoreUnreachable, match="foreseen"):
        Part(str(tmp_path), ".a.")

    assert os.path.lexists(planted)
    assert not (tmp_path / "elsewhere").exists()


def test_parts_that_nobody_writes_any_more_are_removed_and_others_stay(tmp_path: Path) -> None:
    under_way = Part(str(tmp_path), ".a.")
    for name in (".a.0123.part", ".a.0123.part-journal", ".b.0123.part", ".a.0123.db"):
        (tmp_path / name).touch()
    (tmp_path / ".a.link.part").symlink_to(tmp_path / ".b.0123.part")

    remove_left_parts(str(tmp_path), ".a.")

    assert {path.name for path in tmp_path.iterdir()} == {
        os.path.basename(under_way.path), ".b.0123.part", ".a.0123.db", ".a.link.part",
    }  # fmt: skip
    under_way.close()
