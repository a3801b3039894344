"""A RECORD speaks for the files of its own package, wherever a wheel puts them, and for nothing else."""

import os
from pathlib import Path

import pytest

from sandboxes.runner.packages import Packages


def recorded(folder: Path, *lines: str) -> None:
    (folder / "carry-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    (folder / "carry-1.0.dist-info" / "RECORD").write_text("".join(f"{line}\n" for line in lines))


def own(root: Path, path: Path) -> bool:
    return Packages([str(root)]).own(str(path))


@pytest.mark.parametrize("path", ["carry/.env", "carry/data/server.key", ".env", "a,b/x.pem"])
def test_what_its_record_names_beside_it(tmp_path: Path, path: str) -> None:
    line = f'"{path}",sha256=x,3' if "," in path else f"{path},sha256=x,3"
    recorded(tmp_path / "vendor", "carry/__init__.py,,", line)
    assert own(tmp_path, tmp_path / "vendor" / path)
    assert not own(tmp_path, tmp_path / "vendor" / "else" / path)
    assert not own(tmp_path, tmp_path / path)


def test_data_files_of_an_environment_by_any_name(tmp_path: Path) -> None:
    recorded(tmp_path / "env2/lib/python3.11/site-packages", "../../../etc/.env,,")
    assert own(tmp_path, tmp_path / "env2/etc/.env")
    assert not own(tmp_path, tmp_path / "env2/.env")
    assert not own(tmp_path, tmp_path / "etc/.env")


def test_nothing_above_the_roots_is_asked(tmp_path: Path) -> None:
    recorded(tmp_path, "work/app/.env,,")
    assert not own(tmp_path / "work", tmp_path / "work/app/.env")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "bytes"])
def test_what_is_no_plain_record_is_none(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.dist-info").mkdir()
    (tmp_path / "elsewhere").write_text(".env,,\n")
    record = tmp_path / "a.dist-info" / "RECORD"
    match kind:
        case "link":
            record.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(record)
        case "folder":
            record.mkdir()
        case "bytes":
            record.write_bytes(b"\xff\x00,\n,,,,\n\n\x00")
    assert not own(tmp_path, tmp_path / ".env")
