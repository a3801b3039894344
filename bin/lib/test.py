"""`bin/test`: makes everything ready, runs every check and test in parts, says what failed, ends what it started."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from console import address
from lib import child, debian, lock, postgres, signals, venv
from lib.place import CHECKOUT, Place, place, told
from lib.say import Stop, say

ABOUT = """Runs every check and test, or one part with arguments for pytest: bin/test gvisor -k timeout
A skipped test is a failure: what cannot run here is not tested here.
`bench` runs only when it is named. It measures and does not judge: tables of ratios, kept in tests/bench/out too.
Its arguments go to the scripts in tests/bench: bin/test bench --runs 200"""
NEEDS_ENGINE = {"gvisor", "browser", "bench"}
IMAGES = ("node",)
BIN = CHECKOUT / ".venv/bin"
CHECKS: dict[str, list[str | Path]] = {
    "ruff": [BIN / "ruff", "check", "."],
    "format": [BIN / "ruff", "format", "--check", "."],
    "mypy": [BIN / "mypy"],
    "imports": [BIN / "lint-imports"],
    "migrations": [BIN / "python", "manage.py", "makemigrations", "--check", "--dry-run"],
    "deploy": [BIN / "python", "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
}
NOT_UNIT = ("gvisor", "browser", "bench")
TESTS = {
    "unit": ["tests", *(f"--ignore=tests/{part}" for part in NOT_UNIT)],
    "gvisor": ["tests/gvisor"],
    "browser": ["tests/browser"],
}
# What PostgreSQL does otherwise than SQLite: locks, constraints, text. The same tests, marked `database`.
TESTS["postgresql"] = [*TESTS["unit"], "-m", "database"]
PARTS = ("lint", *TESTS)  # what runs when nothing is named
# Each worker is a process with a state directory and an instance of its own, as two consoles on one machine are. A file
# stays with one worker: its tests share sandboxes. A browser is enough for two cores: with two workers it took as long.
TWO_WORKERS = ["-n", "2", "--dist", "loadfile"]


def main(arguments: Sequence[str]) -> int:
    options, more = parse(arguments)
    signals.stop_on_signals()
    parts = [options.part] if options.part else list(PARTS)
    try:
        told(address.port), told(address.origins)  # every part reads them
        venv.enter("requirements.txt", "requirements-test.txt")
        return run_all(place("var/test"), parts, more, own_docker=options.own_docker)
    except Stop as stop:
        print(f"sandgate: {stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="bin/test", description=ABOUT, formatter_class=form)
    parser.add_argument("part", nargs="?", choices=[*PARTS, "bench"], help="only this part, with further arguments")
    parser.add_argument("--own-docker", action="store_true", help="a Docker daemon of our own beside yours")
    return parser.parse_known_args(arguments)


def run_all(here: Place, parts: list[str], more: list[str], *, own_docker: bool) -> int:
    from lib import engine  # needs .venv

    env = {**os.environ, "SANDGATE_VAR": str(here.var)}
    held = lock.take(here)
    own = engine.own(here, own_docker=own_docker) if NEEDS_ENGINE & set(parts) else None
    try:
        if "browser" in parts:
            debian.need("chromium", "chromium fonts-liberation", why="browser tests")
        if NEEDS_ENGINE & set(parts):
            engine.ready(here, own, IMAGES if "gvisor" in parts else ())
        failed = [name for part in parts for name in run_part(here, part, more, env)]
    finally:
        signals.stopping()
        if own:
            own.stop()
        held.close()
    good = "measured" if parts == ["bench"] else "passed"
    say(f"failed: {', '.join(failed)}" if failed else f"{good}: {', '.join(parts)}")
    return 1 if failed else 0


def run_part(here: Place, part: str, more: list[str], env: Mapping[str, str]) -> list[str]:
    """Names of what failed. One failure does not keep the rest from running."""
    if part == "bench":
        return [script for script in benches() if not timed(script, measuring(script, more, env), good="measured")]
    if part == "postgresql":
        return [] if timed(part, partial(on_postgresql, here, part, more, env)) else [part]
    if part != "lint":
        return [] if timed(part, partial(run_tests, here, part, more, env)) else [part]
    return [name for name, command in CHECKS.items() if not timed(name, partial(succeeds, command, env))]


def timed(name: str, judge: Callable[[], bool], good: str = "passed") -> bool:
    say(f"{name} …")
    began = time.monotonic()
    is_good = judge()
    say(f"{name}: {good if is_good else 'FAILED'} in {time.monotonic() - began:.1f} s")
    return is_good


def benches() -> list[str]:
    """Modules of tests/bench that can be run by themselves."""
    files = sorted((CHECKOUT / "tests/bench").glob("*.py"))
    return [f"tests.bench.{file.stem}" for file in files if 'if __name__ == "__main__"' in file.read_text()]


def measuring(script: str, more: list[str], env: Mapping[str, str]) -> Callable[[], bool]:
    return partial(succeeds, [BIN / "python", "-m", script, *more], env)


def run_tests(here: Place, part: str, more: list[str], env: Mapping[str, str]) -> bool:
    """Each part is a process of its own: what one leaves in a process (Playwright's loop) breaks another."""
    report = here.var / "reports" / f"{part}.xml"
    report.unlink(missing_ok=True)
    workers = [] if part == "browser" else TWO_WORKERS
    command: list[str | Path] = [BIN / "python", "-m", "pytest", *TESTS[part], f"--junitxml={report}", *workers, *more]
    return succeeds(command, env) and none_skipped(report)


def on_postgresql(here: Place, part: str, more: list[str], env: Mapping[str, str]) -> bool:
    with postgres.cluster() as url:
        return run_tests(here, part, more, {**env, "SANDGATE_DATABASE_URL": url})


def succeeds(command: Sequence[str | Path], env: Mapping[str, str]) -> bool:
    code, told = child.run([str(word) for word in command], env)
    if told:
        raise KeyboardInterrupt  # a person stopped this part: the others must not start
    return code == 0


def none_skipped(report: Path) -> bool:
    cases = ElementTree.parse(report).iter("testcase")
    skipped = [f"{case.get('classname')}.{case.get('name')}" for case in cases if case.find("skipped") is not None]
    for name in skipped:
        say(f"skipped: {name}")
    return not skipped
