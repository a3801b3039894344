#!/usr/bin/env python
"""The door to management commands. `manage.py up` serves; `manage.py doctor` proves the parts."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
