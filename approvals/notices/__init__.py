"""Notices: telling people outside the console that something waits for them, and never what.

`deciding` is pure: when is whom told of what. `planning` writes it down, `sending` delivers what is written, `loop`
does both beside everything else; `acts` changes who is told. Must never hold or send a command, a path or a reason.
"""
