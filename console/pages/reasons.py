"""Why something is denied, in the words that one press gives."""

REASONS = ("Not needed", "Too broad", "Wrong place", "Not safe", "Ask me first")
