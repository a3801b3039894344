"""Scripts that measure, beside plain Docker on the same runtime in the same run. They stand on what tests stand on, and
so need what pytest gives to those: a state directory of their own, the settings, and `bin/` beside the checkout on the
path."""

import logging
import os
import sys
from pathlib import Path

import django

from tests import own_state as own_state

sys.path.append(str(Path(__file__).resolve().parents[2] / "bin"))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()
logging.getLogger("httpx").setLevel(logging.WARNING)
