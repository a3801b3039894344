"""What a command would run, read and never run: the one place that knows the shell.

Pure: text in, plain data out. `read` and `read_argv` never raise and never take long; what they cannot read is not
plain, and what is not plain asks. Must never decide: rules say what is allowed (`allows`), denied (`forbids`) and
whether they may be made at all (`pattern_fault`); flags explain a card and lower nothing.
"""

from .flags import flags
from .never import never_by_rule
from .patterns import allows, forbids, matches, pattern_fault
from .reading import Read, Simple, read, read_argv
from .scripts import FIRST_LINE, Script, likely_script, program_of, script_in

__all__ = [
    "FIRST_LINE",
    "Read",
    "Script",
    "Simple",
    "allows",
    "flags",
    "forbids",
    "likely_script",
    "matches",
    "never_by_rule",
    "pattern_fault",
    "program_of",
    "read",
    "read_argv",
    "script_in",
]
