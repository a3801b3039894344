"""The project as an app: it brings the management commands. It has no models."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
