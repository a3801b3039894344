"""Which image of Docker's a name means. A stock name is never looked up there: it may be anything to Docker."""

import json
from pathlib import Path

import pytest

from sandboxes.engine import EngineConfig
from sandboxes.errors import NoRuntime

FACTS = {"docker_host": "unix:///x", "runtime": "runsc", "image": "sandgate/default:1", "keeper": "/k"}


def loaded(var: Path, **more: object) -> EngineConfig:
    (var / "engine.json").write_text(json.dumps({**FACTS, **more}))
    return EngineConfig.load(var, "0test000")


def test_default_is_what_was_set_up_and_others_are_named_as_docker_names_them(tmp_path):
    config = loaded(tmp_path)
    assert config.image_in_docker("default") == "sandgate/default:1"
    assert config.image_in_docker("team/tools:2") == "team/tools:2"


def test_a_stock_image_that_was_not_built_is_refused_with_the_command_that_builds_it(tmp_path):
    with pytest.raises(NoRuntime, match="bin/up --image node"):
        loaded(tmp_path).image_in_docker("node")
    assert loaded(tmp_path, images={"node": "sandgate/node:2"}).image_in_docker("node") == "sandgate/node:2"
