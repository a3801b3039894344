"""Toolset 2: tagged reads, edits that are refused rather than guessed, search that cannot flood, commands to follow."""
