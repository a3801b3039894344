"""Keeps what a script measured in `tests/bench/out/<name>.json`, beside what it prints."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "out"


def keep(name: str, **measured: Any) -> None:
    OUT.mkdir(exist_ok=True)
    facts = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load_1_min": round(os.getloadavg()[0], 2)}
    (OUT / f"{name}.json").write_text(json.dumps(facts | measured, indent=2) + "\n")
