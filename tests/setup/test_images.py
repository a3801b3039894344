"""What `bin/` builds is what the product knows by name, and another recipe is another image."""

import shutil

import pytest

from console.workspaces.stock import STOCK_IMAGES
from lib import engine, image
from lib.place import Place


def test_bin_builds_the_images_that_the_product_names():
    assert tuple(image.STOCK) == STOCK_IMAGES
    for stock in STOCK_IMAGES:
        assert all(path.is_file() for path in image.packages(stock))
        assert (image.RECIPES / stock / "Dockerfile").is_file()


@pytest.mark.parametrize("part", ["build", "in-image.sh", "default/packages"])
def test_another_recipe_is_another_image(tmp_path, monkeypatch, part):
    before = {stock: image.name(stock) for stock in image.STOCK}
    shutil.copytree(image.RECIPES, tmp_path / "images")
    monkeypatch.setattr(image, "RECIPES", tmp_path / "images")
    assert {stock: image.name(stock) for stock in image.STOCK} == before
    with (tmp_path / "images" / part).open("a") as recipe:
        recipe.write("# changed\n")
    after = {stock: image.name(stock) for stock in image.STOCK}
    assert all(after[stock] != before[stock] for stock in image.STOCK)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"images": {}}'])
def test_what_the_last_start_wrote_may_be_anything(tmp_path, text):
    place = Place(var=tmp_path, cache=tmp_path)
    place.engine_json.write_text(text)
    assert not engine.remembered(place).get("images")
