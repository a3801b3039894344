"""Signing in, the first password, and signing out."""

import pytest

from console.workspaces.models import User
from tests import people

pytestmark = pytest.mark.django_db
NEW = "seventeen blue kettles"


def sign_in(client, member, password=people.PASSWORD, **more):
    return client.post("/sign-in", {"email": member.user.email, "password": password, **more})


def test_sign_in_leads_to_the_first_workspace(cast, browser) -> None:
    client = browser()
    assert sign_in(client, cast.bob).headers["Location"] == "/"
    assert client.get("/").headers["Location"] == f"/w/{cast.workspace.pk}/"
    assert client.get(f"/w/{cast.workspace.pk}/").headers["Location"] == f"/w/{cast.workspace.pk}/queue"


def test_the_address_may_be_typed_in_any_case(cast, browser) -> None:
    client = browser()
    answer = client.post("/sign-in", {"email": " BOB@Example.Test ", "password": people.PASSWORD})
    assert answer.status_code == 302


@pytest.mark.parametrize("wrong", [{"password": "x"}, {"email": "nobody@example.test"}, {"email": ""}])
def test_what_is_wrong_is_not_told_apart(cast, browser, wrong) -> None:
    client = browser()
    answer = client.post("/sign-in", {"email": cast.bob.user.email, "password": people.PASSWORD, **wrong})
    assert answer.status_code == 200
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("next_", ["https://evil.test/", "//evil.test", "javascript:alert(1)", "\\\\evil.test"])
def test_sign_in_leads_nowhere_else(cast, browser, next_) -> None:
    assert sign_in(browser(), cast.bob, next=next_).headers["Location"] == "/"


def test_a_first_password_must_change_before_anything_is_seen(cast, browser) -> None:
    User.objects.filter(pk=cast.bob.user_id).update(password_must_change=True)
    client = browser()
    sign_in(client, cast.bob)
    for url in ("/", f"/w/{cast.workspace.pk}/queue", f"/w/{cast.workspace.pk}/members"):
        assert client.get(url).headers["Location"] == "/password"
    data = {"old": people.PASSWORD, "new": NEW, "again": NEW}
    assert client.post("/password", data).headers["Location"] == "/"
    assert client.get(f"/w/{cast.workspace.pk}/queue").status_code == 200
    assert sign_in(browser(), cast.bob, NEW).status_code == 302


@pytest.mark.parametrize(
    "data",
    [
        {"old": "wrong", "new": NEW, "again": NEW},
        {"old": people.PASSWORD, "new": "short", "again": "short"},
        {"old": people.PASSWORD, "new": NEW, "again": NEW + "x"},
        {"old": people.PASSWORD, "new": people.PASSWORD, "again": people.PASSWORD},
        {"old": people.PASSWORD, "new": "password1234", "again": "password1234"},
        {},
    ],
)
def test_a_bad_change_changes_nothing(cast, browser, data) -> None:
    client = browser(cast.bob)
    assert client.post("/password", data).status_code == 200
    assert User.objects.get(pk=cast.bob.user_id).check_password(people.PASSWORD)


def test_a_new_password_ends_the_other_sessions(cast, browser) -> None:
    here, elsewhere = browser(cast.bob), browser(cast.bob)
    here.post("/password", {"old": people.PASSWORD, "new": NEW, "again": NEW})
    assert here.get(f"/w/{cast.workspace.pk}/queue").status_code == 200
    assert elsewhere.get(f"/w/{cast.workspace.pk}/queue").status_code == 302


def test_signing_out_takes_a_post(cast, browser) -> None:
    client = browser(cast.bob)
    assert client.get("/sign-out").status_code == 405
    client.post("/sign-out")
    assert client.get(f"/w/{cast.workspace.pk}/queue").status_code == 302


def test_who_has_no_workspace_is_told_so(cast, browser) -> None:
    from django.utils import timezone

    type(cast.bob).objects.filter(pk=cast.bob.pk).update(removed_at=timezone.now())
    answer = browser(cast.bob).get("/")
    assert answer.status_code == 403
    assert "No workspace yet" in answer.content.decode()


def test_a_fragment_for_a_signed_out_page_leads_to_the_sign_in(cast, browser) -> None:
    answer = browser().get(f"/w/{cast.workspace.pk}/queue?part=list", headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/sign-in"
