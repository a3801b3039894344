"""What the network jail needs of this machine is installed where it can be, and told where not."""

import os

import pytest

from lib import debian, jail


def test_without_root_a_missing_nft_is_told_and_no_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian, "find", lambda program: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    jail.need()
    assert "nftables, iproute2 missing: sandboxes will have no network" in capsys.readouterr().out
