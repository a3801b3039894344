"""Settings of the little site that the server's tests serve in a process of its own."""

import os
from pathlib import Path

STATE = Path(os.environ["SERVER_TEST_STATE"])
SECRET_KEY = "tests only"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]  # hops to a thread, as the product's do
ROOT_URLCONF = "tests.server.site"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": STATE / "db.sqlite3", "CONN_MAX_AGE": None}}
DATA_UPLOAD_MAX_MEMORY_SIZE = 140 << 20
USE_TZ = True
DB_READERS = 6
DB_WRITERS = 1
SYNC_THREADS = 4
SEND_STALL_S = 2
LINGER_S = 1
STOP_S = int(os.environ["SERVER_TEST_STOP_S"])
IDLE_S = 1  # Twisted gives a silent client 60 s
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
