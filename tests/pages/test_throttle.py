"""Guessing passwords takes longer and longer; nobody is kept out for good, and nothing tells who exists."""

import logging
import re

import pytest
from django.test import Client, RequestFactory

from console.pages import people as pages
from console.pages import throttle
from console.pages.throttle import FREE_TRIES, LONGEST_WAIT_S, MOST_KEYS, WITHIN_S, Throttle, client_of
from tests import people

KEY = ("bob@example.test", "192.0.2.1")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Of the console's own throttle, to be turned by hand."""
    clock = Clock()
    monkeypatch.setattr(pages, "throttle", Throttle(clock))
    return clock


def test_five_tries_are_free_then_each_wait_is_longer_up_to_a_limit() -> None:
    clock = Clock()
    tries, waits = Throttle(clock), []
    assert [tries.begin(KEY) for _ in range(FREE_TRIES)] == [0.0] * FREE_TRIES
    for _ in range(8):
        waits.append(tries.begin(KEY))
        clock.now += waits[-1] - 0.01
        assert tries.begin(KEY) == pytest.approx(0.01), "a try that is refused makes no wait longer"
        clock.now += 0.01
        assert tries.begin(KEY) == 0.0, "who waits is let in"
    assert waits == [30, 60, 120, 240, 480, 900, 900, LONGEST_WAIT_S]


def test_tries_far_apart_are_free_and_waits_are_forgotten() -> None:
    clock = Clock()
    tries = Throttle(clock)
    for _ in range(20):
        assert tries.begin(KEY) == 0.0
        clock.now += WITHIN_S / (FREE_TRIES - 1) + 0.1
    for _ in range(FREE_TRIES):
        tries.begin(KEY)
    clock.now += tries.wait_s(KEY) + WITHIN_S + 0.1
    assert [tries.begin(KEY) for _ in range(FREE_TRIES)] == [0.0] * FREE_TRIES


def test_others_are_not_held_up_and_success_forgets() -> None:
    tries = Throttle(Clock())
    for _ in range(FREE_TRIES):
        tries.begin(KEY)
    assert tries.begin(KEY) > 0
    assert tries.begin((KEY[0], "192.0.2.2")) == 0.0
    assert tries.begin(("ines@example.test", KEY[1])) == 0.0
    tries.succeeded(KEY)
    assert tries.begin(KEY) == 0.0


def test_memory_is_bounded() -> None:
    tries = Throttle(Clock())
    for number in range(MOST_KEYS + 50):
        tries.begin((str(number), ""))
    assert len(tries._tries) == MOST_KEYS


@pytest.mark.parametrize(
    ("origins", "named", "remote", "client"),
    [
        ([], "198.51.100.7", "127.0.0.1", "127.0.0.1"),
        (["https://sandgate.example"], "203.0.113.9, 198.51.100.7", "127.0.0.1", "198.51.100.7"),
        (["https://sandgate.example"], "", "127.0.0.1", "127.0.0.1"),
        ([], "", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (["https://sandgate.example"], "x" * 99, "127.0.0.1", "x" * 64),
    ],
)
def test_a_client_is_who_the_proxy_names_where_there_is_one(settings, origins, named, remote, client) -> None:
    settings.HTTPS = bool(origins)
    headers = {"x-forwarded-for": named} if named else {}
    assert client_of(RequestFactory(headers=headers, REMOTE_ADDR=remote).get("/")) == client


def attempt(email: str, password: str = "wrong") -> tuple[int, str]:
    answer = Client().post("/sign-in", {"email": email, "password": password})
    said = re.search(r'id="pw-e">.*?</svg>\s*(.*?)</p>', answer.content.decode())
    return answer.status_code, said[1] if said else ""


@pytest.mark.django_db
def test_the_page_says_what_is_left_and_how_long_to_wait(cast, clock) -> None:
    said = [attempt(cast.bob.user.email) for _ in range(FREE_TRIES)]
    assert said == [
        (200, "Email and password do not match."),
        (200, "Email and password do not match. 3 tries left, then a pause."),
        (200, "Email and password do not match. 2 tries left, then a pause."),
        (200, "Email and password do not match. 1 try left, then a pause."),
        (200, "Email and password do not match. The next try counts in 30 s."),
    ]
    clock.now += 12
    waits = (429, "Too many tries, so this one was not looked at. The next try counts in 18 s.")
    assert attempt(cast.bob.user.email) == waits
    assert attempt(f" {cast.bob.user.email.upper()} ", people.PASSWORD) == waits, "the right one waits too"
    clock.now += 18
    assert attempt(cast.bob.user.email, people.PASSWORD) == (302, "")
    assert attempt(cast.bob.user.email)[0] == 200, "signing in has cleared the slate"


@pytest.mark.django_db
def test_nothing_tells_whether_an_address_is_anybodys(cast, clock) -> None:
    for _ in range(FREE_TRIES + 3):
        assert attempt(cast.bob.user.email) == attempt("nobody@example.test")
        clock.now += 1


@pytest.mark.django_db
def test_a_wait_is_logged_with_the_address_drawn(cast, clock, caplog) -> None:
    with caplog.at_level(logging.WARNING, logger=throttle.__name__):
        for _ in range(FREE_TRIES + 2):
            attempt("bob\u202e@example.test")
    assert [record.getMessage() for record in caplog.records] == [
        "Sign-in: wait of 30 s for bob⟨U+202E⟩@example.test from 127.0.0.1"
    ]


@pytest.mark.django_db
def test_a_wait_says_when_to_come_back(cast, clock) -> None:
    for _ in range(FREE_TRIES):
        attempt(cast.bob.user.email)
    answer = Client().post("/sign-in", {"email": cast.bob.user.email, "password": "x"})
    assert answer.headers["Retry-After"] == "30"
