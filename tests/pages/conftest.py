"""A signed-in browser without a browser."""

import pytest
from django.test import Client

from console.pages.people import throttle
from tests import people


@pytest.fixture(autouse=True)
def no_tries_before():
    throttle.forget()


@pytest.fixture
def browser():
    """`browser(cast.bob)` is a client that is signed in as Bob, and checks CSRF as a real one must pass it."""

    def signed_in(member=None) -> Client:
        client = Client(enforce_csrf_checks=False)
        if member is not None:
            assert client.login(username=member.user.email, password=people.PASSWORD)
        return client

    return signed_in
