"""Programs that print what is there. Those of their options that write or run ask all the same: `approvals.shell`."""

TITLE = "Read-only shell"
ABOUT = "ls, cat, head, wc and others that print what is there. Nothing that writes, fetches or starts programs."
VERSION = 1
_NOT = ("{0} x > out", "{0} $HOME", "{0} x; rm -rf x", "/tmp/{0} x", "X=1 {0} x")
_PLAIN = (
    "basename", "cat", "cksum", "cmp", "comm", "cut", "df", "dirname", "du", "echo", "expand", "fold", "head", "id",
    "join", "ls", "md5sum", "nl", "paste", "pwd", "readlink", "realpath", "rev", "sha1sum", "sha256sum", "stat", "tac",
    "tail", "tr", "uname", "wc", "whoami",
)  # fmt: skip
RULES = (
    *((name, (f"{name} x", f"{name} x | {name}", f"{name} x 2>&1"), tuple(each.format(name) for each in _NOT))
      for name in _PLAIN),
    ("sort", ("sort names.txt", "sort -k2 -n x", "sort -u x"),
     ("sort -o x x", "sort --output=x y", "sort --compress-program=sh x", "sort --out=x y")),
    ("uniq", ("uniq -c", "uniq x"), ("uniq in out",)),
    ("diff", ("diff a b", "diff -u a b"), ("diff <(ls) <(ls)",)),
    ("date", ("date", "date +%s"), ("date -s tomorrow", "date --set=x")),
    ("file", ("file x",), ("file -C -m x",)),
)  # fmt: skip
