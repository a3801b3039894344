"""Toolset 1: the plain previous tools, for agents pinned to it. No tags, no versions. What is here does not change."""
