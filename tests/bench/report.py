"""Keeps what a script measured in `tests/bench/out/<name>.json`, beside what it prints."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "out"


def keep(name: str, **measured: Any) -> None:
    OUT.mkdir(exist_ok=True)
    facts = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load_1_min": round(os.getloadavg()[0], 2)}
    (OUT / f"{name}.json").write_text(json.dumps(facts | measured, indent=2) + "\n")


def in_parts(
    name: str,
    parts: Mapping[str, Callable[[argparse.Namespace], Iterable[Any]]],
    asked: argparse.Namespace,
    **facts: Any,
) -> None:
    """Rows (see `tests.bench.sandboxes`) of the parts that `asked.only` names: printed as they come, then kept."""
    shown = []
    for part in asked.only.split(","):
        for row in parts[part](asked):
            print(row.shown(), flush=True)
            shown.append(row)
    keep(name, **facts, rows=[asdict(row) | {"ratio": row.ratio} for row in shown])
