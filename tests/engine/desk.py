"""A file on this machine, and the runner's own steps on it."""

import json
import os
from pathlib import Path
from typing import Any

from tests.engine.on_host import OnHost

BASE = b"one\ntwo\nthree\nfour\n"


class Desk:
    def __init__(self, root: Path) -> None:
        self.root, self.host = root, OnHost()
        self.path = root / "a.txt"
        self.path.write_bytes(BASE)

    def view(self, path: Path | None = None, **part: Any) -> dict[str, Any]:
        how = {"offset": None, "limit": None, "form": "text", **part}
        told = self.host.look("view", path=str(path or self.path), **how)
        return json.loads(told["content"]) if "content" in told else told["error"]

    def edit(self, seen: dict[str, Any], *edits: tuple[Any, ...], **more: Any) -> dict[str, Any]:
        """(do, number or None, lines) of each; the result, or the error."""
        return self.host.change("edit", self.packed(seen, *edits), **self.message(seen, **more))

    def draft(self, seen: dict[str, Any], *edits: tuple[Any, ...], **more: Any) -> dict[str, Any]:
        return self.host.look("draft", self.packed(seen, *edits), **self.message(seen, **more))

    def message(self, seen: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"path": str(self.path), "version": seen["version"], "base": None, "becomes": None, **more}

    @staticmethod
    def packed(seen: dict[str, Any], *edits: tuple[Any, ...]) -> bytes:
        tags = {number: tag for number, tag, _ in seen["lines"]}
        wishes = []
        for do, number, lines in edits:
            anchor = {"from": f"{number}{tags[number]}"} if number else {}
            wishes.append({"do": do, **anchor, **({"lines": lines} if lines is not None else {})})
        return json.dumps(wishes).encode()

    def only(self, *names: str) -> None:
        assert sorted(os.listdir(self.root)) == sorted(names)
