"""Programs that run what files of the workspace say, and paths where such files lie hidden. Pure.

What they are told by words, a rule can see; what a file tells them, it cannot: a repository's configuration and hooks,
a registry's address, a target's recipe. Must never be read as a promise about what is not named.
"""

import posixpath
from itertools import chain

from approvals import shell

from . import patterns

PROGRAMS = frozenset(
    "git hg svn jj gh glab npm npx pnpm pnpx yarn bun bunx corepack pip pip3 uv poetry pdm hatch tox nox"
    " pre-commit pytest py.test coverage mypy pylint flake8 sphinx-build mkdocs make gmake ninja cmake ctest meson"
    " bazel buck scons just task rake cargo rustup go mvn gradle ant sbt lein mill gem bundle bundler rspec"
    " composer phpunit mix rebar3 stack cabal dotnet msbuild swift zig dune opam docker podman kubectl helm"
    " terraform tofu ansible ansible-playbook vagrant jest vitest mocha eslint prettier stylelint webpack vite"
    " rollup esbuild parcel tsc tsup turbo nx lerna grunt gulp next nuxt astro playwright cypress celery gunicorn"
    " uvicorn flask django-admin alembic latexmk conda mamba direnv behave inv invoke".split()
)
QUIET_PACKS = frozenset(("read_only_shell", "search", "local_git"))
"""What their rules let through changes no file that one of PROGRAMS would run."""
WORK = "/work"


def program_in(line: shell.Read) -> str:
    """The first of PROGRAMS that it may reach; empty when there is none."""
    argvs = chain(line.reached, (each.argv for each in line.plain or ()))
    return next(filter(None, map(_named, argvs)), "")


def _named(argv: tuple[str, ...]) -> str:
    name = posixpath.basename(argv[0]) if argv else ""
    return name if {name, name.rstrip("0123456789.-")} & PROGRAMS else ""


def why_not_unseen(path: str) -> str:
    """Why no rule or grant may let a file be written there; empty when one may. Names are compared as protected ones
    are."""
    whole = patterns.folded(posixpath.normpath(path))
    if not whole.startswith(f"{WORK}/"):
        return "no rule can allow writing outside /work."
    if any(part.startswith(".") for part in whole.split("/")):
        return "no rule can allow writing to a hidden name: programs take their settings from such files."
    return ""
