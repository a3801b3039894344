"""Which part of a content is asked for, and the name that it goes out under."""

import pytest
from django.test import RequestFactory

from console.api import downloads

NAMES = ["plain.txt", "a b.txt", 'q"uo\\te', "new\r\nline: x", "отчёт.pdf", "\udcff", "..", "%41", "é" * 100, ";x=y"]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_ends_the_header_or_becomes_another(name):
    told = downloads.disposition(f"/work/{name}")
    told.encode("ascii")
    assert told.startswith('attachment; filename="')
    assert told.count('"') == 2
    assert not set(told) & set("\r\n\\")
    assert told.count(";") == 2


@pytest.mark.parametrize(
    ("header", "size", "span"),
    [
        ("bytes=0-", 10, (0, 10)),
        ("bytes=0-0", 10, (0, 1)),
        ("bytes=9-9", 10, (9, 1)),
        ("BYTES = 2 - 5", 10, (2, 4)),
        ("bytes=-1", 10, (9, 1)),
        ("bytes=-11", 10, (0, 10)),
        ("bytes=0-99", 10, (0, 10)),
        ("bytes=10-", 10, None),
        ("bytes=0-", 0, None),
        ("bytes=-5", 0, None),
        ("bytes=-0", 10, None),
        ("bytes=99999999999999999999-", 10, None),
    ],
)
def test_a_part(header, size, span):
    part = downloads.part_of(RequestFactory().get("/", headers={"Range": header}))
    assert part is not None
    assert part.within(size) == span


@pytest.mark.parametrize(
    "header",
    [
        "", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=0-1,2-3", "items=0-1", "bytes=1", "bytes=²-", "0-5",
        "bytes=--5",
    ],
)  # fmt: skip
def test_what_is_no_part_is_all_of_it(header):
    assert downloads.part_of(RequestFactory().get("/", headers={"Range": header})) is None


def test_a_part_of_other_bytes_is_all_of_it():
    asked = RequestFactory().get("/", headers={"Range": "bytes=0-1", "If-Range": '"one"'})
    assert downloads.part_of(asked, etag='"one"') == downloads.Part(0, 2)
    assert downloads.part_of(asked, etag='"other"') is None
    assert downloads.part_of(asked) is None
