"""What git does in a repository that is there: look, stage and commit. Nothing that reaches another repository, and
nothing that throws work away. Git runs what the repository's configuration, attributes and hooks say, so all of this
rests on `approvals.rules.trust`: it asks once anything was written that no person saw."""

TITLE = "Local git"
ABOUT = "Status, log, diff, show, blame, add and commit. No fetch, no push. Asks after writes that nobody saw."
VERSION = 2
_ELSEWHERE = ("git push", "git fetch", "git -c core.pager=sh log", "git -C / status", "/tmp/git status")
RULES = (
    ("git status", ("git status", "git status --short"), (*_ELSEWHERE, "GIT_DIR=x git status")),
    ("git log", ("git log --oneline -n 3", "git log -p"), ("git log --ext-diff", "git log --output=x", "git log > x",
      "git log --pretty=format:%GG", "git log --format=%GK", "git log --format=%-G?")),
    ("git diff", ("git diff --stat", "git diff HEAD~1"),
     ("git diff --output=x", "git diff --ext-diff", "git diff --textconv", "git diff --outp=x")),
    ("git show", ("git show HEAD", "git show --stat HEAD"), ("git show --ext-diff", "git show --output=x",
      "git show --format=%GG")),
    ("git blame", ("git blame x.py",), _ELSEWHERE),
    ("git rev-parse", ("git rev-parse HEAD",), _ELSEWHERE),
    ("git ls-files", ("git ls-files", "git ls-files src"), _ELSEWHERE),
    ("git describe", ("git describe --tags",), _ELSEWHERE),
    ("git branch --list", ("git branch --list",), ("git branch -D main", "git branch --list -D main",
      "git branch --list --format=%(signature)")),
    ("git branch <nothing>", ("git branch",), ("git branch new", "git branch -D main")),
    ("git remote -v <nothing>", ("git remote -v",), ("git remote add x y", "git remote -v add x y")),
    ("git stash list <nothing>", ("git stash list",), ("git stash", "git stash drop")),
    ("git add", ("git add miniconf.py", "git add -A"), ("git add -f x", "git add -p", "git add --force x")),
    ("git commit", ('git commit -m "Skip blank lines"', "git commit -am x"),
     ("git commit -S -m x", "git commit --template=x", "git commit -e", "git commit", "git commit -a",
      "git commit --author -m x", "git commit -c HEAD -m x", "git commit --amend", "git commit -F x")),
)  # fmt: skip
