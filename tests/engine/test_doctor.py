"""What doctor says of images: a stock one is allowed everywhere, and may be built or not; others are named."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from sandboxes.engine import EngineConfig, doctor

FACTS = {"docker_host": "unix:///x", "runtime": "runsc", "image": "sandgate/default:1", "keeper": "/k"}


class Docker:
    """A daemon with these images."""

    def __init__(self, *tags):
        self.images = SimpleNamespace(list=lambda: [SimpleNamespace(tags=[tag], id=f"sha256:{tag}") for tag in tags])

    async def call(self, work, *, timeout_s):
        return work(self)


@pytest.mark.parametrize(
    ("tags", "named", "ok", "says"),
    [
        (["sandgate/node:2"], set(), True, "node is there; no more are named"),
        ([], set(), True, "node is not built (bin/up --image node); no more"),
        (["sandgate/node:2", "team/a:1"], {"node", "team/a:1"}, True, "node is there; 1 more are named by admins, all"),
        (["sandgate/node:2"], {"team/a:1"}, False, "node is there; not in Docker: team/a:1"),
    ],
)
def test_images_are_told_apart_by_who_allows_them(tmp_path, tags, named, ok, says):
    built = {"node": "sandgate/node:2"} if tags else {}
    (tmp_path / "engine.json").write_text(json.dumps({**FACTS, "images": built}))
    config = EngineConfig.load(tmp_path, "0test000")
    check = asyncio.run(doctor._images(Docker(*tags), config, named))
    assert (check.ok, check.detail.startswith(says)) == (ok, True), check.detail
