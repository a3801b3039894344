"""How much lies in a folder, on the disk: holes count for nothing, and what goes meanwhile is no fault."""

import os

from sandboxes.engine.roots import used_bytes

MB = 1 << 20


def test_what_is_on_the_disk_counts_and_a_hole_does_not(tmp_path) -> None:
    with (tmp_path / ".gvisor.filestore").open("wb") as file:
        file.truncate(1 << 30)
        file.write(b"x" * MB)
        os.fsync(file.fileno())
    assert MB <= used_bytes(tmp_path, enough=1 << 40) < 2 * MB


def test_all_below_counts_links_are_not_followed_and_it_stops_at_enough(tmp_path) -> None:
    for n in range(3):
        deep = tmp_path / f"{n}/deep/er"
        deep.mkdir(parents=True)
        (deep / "file").write_bytes(b"x" * MB)
        os.sync()
    (tmp_path / "all").symlink_to("/usr", target_is_directory=True)
    assert 3 * MB <= used_bytes(tmp_path, enough=1 << 40) < 4 * MB
    assert MB < used_bytes(tmp_path, enough=MB) < 3 * MB


def test_a_folder_that_is_gone_holds_nothing(tmp_path) -> None:
    assert used_bytes(tmp_path / "gone", enough=1) == 0
