#!/usr/bin/env python
"""The door to management commands. `manage.py up` serves; `manage.py doctor` proves the parts."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.management import execute_from_command_line

    from console.state import Unusable

    try:
        execute_from_command_line(sys.argv)
    except Unusable as problem:  # while the settings were read
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
