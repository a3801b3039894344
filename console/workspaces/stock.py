"""The images that `bin/` builds, by the names that everybody may ask for. Plain: the engine needs no database for it."""

STOCK_IMAGES = ("default", "node")
"""The first is what a sandbox gets unless asked."""
