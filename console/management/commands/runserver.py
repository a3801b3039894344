"""`manage.py runserver` would serve no sockets, start no sandbox host and hold no lock: it points to `up`."""

from argparse import ArgumentParser

from django.core.management import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Not here: use `manage.py up`."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("anything", nargs="*")

    def handle(self, *_: object, **__: object) -> None:
        raise CommandError("`runserver` cannot serve this console; start it with `manage.py up`.")
