"""Settings of one instance. All that it writes lies in the state directory (SANDGATE_VAR)."""

import os
import re
from typing import Any
from urllib.parse import unquote, urlsplit
from warnings import filterwarnings

import structlog

from console import address, database, state

VAR = state.directory()
INSTANCE = state.instance(VAR)
SECRET_KEY = state.secret_key(VAR)
DEBUG = False

HOST, PORT = address.host(), address.port()
# The addresses people type, where they are not this machine's own, comma separated. An HTTPS one says that a proxy is
# in front: TLS ends there, cookies are secure, and the client is whom it names.
PUBLIC_ORIGINS = address.origins()
HTTPS = any(origin.startswith("https://") for origin in PUBLIC_ORIGINS)
# A wildcard is no name, and binding to it allows none: see console/pages/hosts.py.
OWN_NAMES = {"127.0.0.1", "localhost", "[::1]", f"[{HOST}]" if ":" in HOST else HOST} - {"", "0.0.0.0", "[::]"}
ALLOWED_HOSTS = [*OWN_NAMES, *(re.sub(r":\d+$", "", urlsplit(origin).netloc) for origin in PUBLIC_ORIGINS)]
CSRF_TRUSTED_ORIGINS = PUBLIC_ORIGINS
# What links outside of the console begin with: notices go to people who are not on it.
SITE = PUBLIC_ORIGINS[0] if PUBLIC_ORIGINS else f"http://localhost:{PORT}"

INSTALLED_APPS = [
    "console",
    "console.workspaces",
    "approvals",
    "sandboxes",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "ninja",  # for the static files of its explorer
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "console.pages.middleware.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "console.pages.middleware.NoNul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "console.pages.middleware.PasswordMustChange",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [state.CHECKOUT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.pages.shell.context",
            ],
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {"default": database.of(VAR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DB_READERS = 6
DB_WRITERS = database.writers(DATABASES["default"])
SYNC_THREADS = 4

AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in"
SESSION_COOKIE_AGE = 12 * 3600
# Two instances on one machine differ by port only, and cookies know no port.
SESSION_COOKIE_NAME = f"sandgate_session_{INSTANCE}"
CSRF_COOKIE_NAME = f"sandgate_csrf_{INSTANCE}"
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# TLS ends at the operator's proxy, which also redirects and sets HSTS: this server speaks plain HTTP on loopback.
# auth.E003 looks for unique=True on the e-mail; ours is unique whatever its case, by a constraint.
SILENCED_SYSTEM_CHECKS = ["auth.E003", "security.W004", "security.W008"] + (
    [] if HTTPS else ["security.W012", "security.W016"]
)
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [state.CHECKOUT / "console" / "static"]
WHITENOISE_USE_FINDERS = True
# Static files are small and ours; what is large is streamed by async generators (docs/decisions/003).
filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "blobs": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": VAR / "blobs",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "outputs": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": VAR / "outputs",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "artifacts": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": VAR / "artifacts",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
}

# Bodies: the doorman counts and refuses them per route; Django's own limit must not be the lower one.
DATA_UPLOAD_MAX_MEMORY_SIZE = 140 << 20
SEND_STALL_S = 60
LINGER_S = 5
STOP_S = 6

# Sandboxes of this host that may be started before anybody asks, over all workspaces; 0: none.
POOL_MOST = int(os.environ.get("SANDGATE_POOL_MOST") or 8)

# Every timer of the product is divided by this in long tests; 1 in real life.
TIMER_DIVISOR = float(os.environ.get("SANDGATE_TIMER_DIVISOR") or 1)


# Who asks /metrics from another machine, or through a proxy, sends this as a bearer; without it nobody may from there.
METRICS_TOKEN = os.environ.get("SANDGATE_METRICS_TOKEN", "")

# What commands printed, and long answers of tools, are kept so long after the end of their action.
OUTPUT_DAYS = int(os.environ.get("SANDGATE_OUTPUT_DAYS") or 30)

# Heads of the audit chains go here each hour, so that no change of the database can hide: see docs/audit.md.
AUDIT_HEADS = {
    place: os.environ.get(f"SANDGATE_AUDIT_HEAD_{place.upper()}", "") for place in ("file", "syslog", "mail", "webhook")
}
# Networks that are not public and that webhooks may reach all the same, comma separated.
WEBHOOK_NETWORKS = [each.strip() for each in os.environ.get("SANDGATE_WEBHOOK_NETWORKS", "").split(",") if each.strip()]
# smtp://user:password@host:587, or smtps:// for TLS from the first byte; STARTTLS is used on 587.
MAIL = urlsplit(os.environ.get("SANDGATE_SMTP") or "smtp://localhost:25")
EMAIL_HOST, EMAIL_PORT, EMAIL_TIMEOUT = MAIL.hostname or "localhost", MAIL.port or 25, 10
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(MAIL.username or ""), unquote(MAIL.password or "")
EMAIL_USE_SSL, EMAIL_USE_TLS = MAIL.scheme == "smtps", MAIL.scheme == "smtp" and MAIL.port == 587
DEFAULT_FROM_EMAIL = SERVER_EMAIL = os.environ.get("SANDGATE_MAIL_FROM") or "sandgate@localhost"

# What `bin/up` found out about Docker and gVisor; None when it never ran on this state directory.
ENGINE = state.engine(VAR)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # The default formatter prints local variables, and with them keys and commands.
                structlog.dev.ConsoleRenderer(
                    colors=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
                ),
            ],
            # What the doorman bound to the request, its id first of all, stands on each line that it caused.
            "foreign_pre_chain": [
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},  # console/pages/hosts.py says it in our words
        "django.channels.server": {"level": "WARNING"},
        "twisted": {"level": "WARNING"},
    },
}
