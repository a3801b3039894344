"""Programs that look for text. `find` is none of them: it is made to start other programs, so no rule can allow it."""

TITLE = "Search"
ABOUT = "rg, grep and git grep. find always asks, for it can start other programs; agents have glob for names."
VERSION = 1
_NOT = ("{0} x > out", "{0} $(id) .", "/tmp/{0} x .")
RULES = (
    *((name, (f"{name} -n main src", f"{name} -c deferred queue.log", f"{name} 'a b' x | {name} c"),
       tuple(each.format(name) for each in _NOT))
      for name in ("grep", "egrep", "fgrep")),
    ("rg", ("rg -n main src", "rg --files"), ("rg --pre sh x", "rg --pre=sh x", "rg --hostname-bin=x y", "rg x > y")),
    ("git grep", ("git grep -n main",), ("git grep -O x", "git grep --open-files-in-pager=sh x", "git -c a=b grep x")),
)  # fmt: skip
