"""Scripts that measure, beside plain Docker on the same runtime in the same run. The engine names its images as the
product's settings do, so those are loaded first."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()
