"""The images that `bin/` builds, which everybody may ask for. The engine needs no database for it."""

STOCK_IMAGES = ("default", "node")
"""The first is what a sandbox gets unless asked."""
