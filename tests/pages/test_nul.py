"""A NUL in what a browser sends: no row of PostgreSQL takes one, so it is refused for every page, in a page."""

from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import URLPattern

from approvals.models import Action
from console.pages.urls import urlpatterns

pytestmark = [pytest.mark.django_db, pytest.mark.database]


def addresses(workspace_id):
    """Of every page that has a name of something in its address."""
    for each in urlpatterns:
        assert isinstance(each, URLPattern)
        route = str(each.pattern)
        for name in each.pattern.converters:
            known = {other: "x" for other in each.pattern.converters if other != name} | {"workspace_id": workspace_id}
            known[name] = "a%00b"
            for other, value in known.items():
                route = route.replace(f"<str:{other}>", value)
            yield f"/{route}"


def refused(answer):
    return answer.status_code == 400 and "holds a NUL" in answer.content.decode()


def test_in_an_address(cast, browser):
    client = browser(cast.bob)
    found = list(addresses(cast.workspace.pk))
    assert len(found) > 40
    assert [path for path in found if not refused(client.get(path))] == []


@pytest.mark.parametrize("query", ["conversation=a%00b", "a%00b=1", "x=1&x=%00"])
@pytest.mark.parametrize("page", ["queue", "audit", "insights", "rules"])
def test_in_a_query(cast, browser, page, query):
    answer = browser(cast.bob).get(f"/w/{cast.workspace.pk}/{page}?{query}")
    assert refused(answer)
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("form", [{"reason": "a\0b"}, {"a\0b": "1"}, {"reason": ["ok", "\0"]}])
@pytest.mark.parametrize("page", ["halt", "rules/new", "settings", "queue/decide"])
@pytest.mark.parametrize("kind", ["multipart", "urlencoded"])
def test_in_a_form(cast, browser, page, form, kind):
    more = {}
    if kind == "urlencoded":
        form, more = urlencode(form, doseq=True), {"content_type": "application/x-www-form-urlencoded"}
    assert refused(browser(cast.bob).post(f"/w/{cast.workspace.pk}/{page}", form, **more))
    assert not Action.objects.exists()


def test_in_a_cookie_and_for_who_is_not_signed_in():
    client = Client()
    assert refused(client.post("/sign-in", {"email": "a\0b", "password": "x"}))
    client.cookies["sessionid"] = "a\0b234567890"
    assert refused(client.get("/"))


def test_what_holds_none_is_answered(cast, browser):
    client = browser(cast.bob)
    assert client.get(f"/w/{cast.workspace.pk}/queue?conversation=a%2500b").status_code == 200
    assert client.get(f"/w/{cast.workspace.pk}/queue/act_x").status_code in (200, 404)
