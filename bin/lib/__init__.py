"""What `bin/up` and `bin/test` share: from a bare Debian to a running engine. No part of the product."""

import sys
from pathlib import Path

# What reads the environment is shared with the product: console/state.py and console/address.py, plain Python both.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
