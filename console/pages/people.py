"""Signing in and out, and changing one's password. By Django's own sessions; nothing here knows workspaces."""

import math
from typing import Any

from django import forms
from django.contrib.auth import authenticate, login, logout, password_validation, update_session_auth_hash
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from . import presence, proof
from .shell import memberships, say
from .throttle import Throttle, key_of

throttle = Throttle()


def _password() -> forms.CharField:
    return forms.CharField(max_length=4096, strip=False)


class SignIn(forms.Form):
    email = forms.CharField(max_length=254)
    password = _password()
    wait_s = 0.0  # nothing was tried: so long until the next try counts

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.POST or None)
        self.request = request

    def clean(self) -> dict[str, Any]:
        found = self.cleaned_data
        if "email" not in found or "password" not in found:
            return found
        key = key_of(self.request, found["email"])
        if wait_s := throttle.begin(key):
            self.wait_s = wait_s
            self.add_error("password", f"Too many tries, so this one was not looked at. {_wait(wait_s)}")
            return found
        self.user = authenticate(username=found["email"].strip(), password=found["password"])
        if self.user is None:
            self.add_error("password", f"Email and password do not match. {_left(throttle.left(key), key)}".strip())
        else:
            throttle.succeeded(key)
        return found


def _left(tries: int, key: tuple[str, str]) -> str:
    if wait_s := throttle.wait_s(key):
        return _wait(wait_s)
    return f"{tries} {'try' if tries == 1 else 'tries'} left, then a pause." if tries < 4 else ""


def _wait(wait_s: float) -> str:
    """Rounded up: who waits that long is let in."""
    length = f"{math.ceil(wait_s)} s" if wait_s <= 90 else f"{math.ceil(wait_s / 60)} min"
    return f"The next try counts in {length}."


class NewPassword(forms.Form):
    old = _password()
    new = _password()
    again = _password()

    def __init__(self, user: Any, *args: Any) -> None:
        super().__init__(*args)
        self.user = user

    def clean_old(self) -> str:
        if not self.user.check_password(self.cleaned_data["old"]):
            raise forms.ValidationError("This is not your password now.")
        return str(self.cleaned_data["old"])

    def clean_new(self) -> str:
        new = str(self.cleaned_data["new"])
        if new == self.cleaned_data.get("old"):
            raise forms.ValidationError("This is the old one. Choose another.")
        password_validation.validate_password(new, self.user)
        return new

    def clean_again(self) -> str:
        if self.cleaned_data.get("new") not in (None, self.cleaned_data["again"]):
            raise forms.ValidationError("The two do not match.")
        return str(self.cleaned_data["again"])


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    next_ = request.POST.get("next") or request.GET.get("next") or "/"
    if not url_has_allowed_host_and_scheme(next_, {request.get_host()}, request.is_secure()):
        next_ = "/"
    if request.user.is_authenticated:
        return HttpResponseRedirect(next_)
    form = SignIn(request)
    if request.method == "POST" and form.is_valid():
        login(request, form.user)
        presence.began(request)
        proof.note(request)
        return HttpResponseRedirect(next_)
    shown = {"form": form, "next": next_, "host": request.get_host()}
    answer = render(request, "people/sign-in.html", shown, status=429 if form.wait_s else 200)
    if form.wait_s:
        answer.headers["Retry-After"] = str(math.ceil(form.wait_s))
    return answer


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        presence.record(request, "member.signed_out")
    logout(request)
    return redirect("sign-in")


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return redirect("sign-in")
    form = NewPassword(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = request.user
        user.set_password(form.cleaned_data["new"])
        user.password_must_change = False
        user.save(update_fields=["password", "password_must_change"])
        update_session_auth_hash(request, user)  # the other sessions of this person end
        presence.record(request, "member.password_changed")
        say(request, "Your password is changed. You are signed out everywhere else.")
        return redirect("/")
    return render(request, "people/password.html", {"form": form})


@never_cache
def front(request: HttpRequest) -> HttpResponse:
    """`/`: to the first workspace of whoever is signed in."""
    if not request.user.is_authenticated:
        return redirect("sign-in")
    if found := memberships(request.user):
        return HttpResponseRedirect(reverse("home", args=[found[0].workspace_id]))
    return render(request, "people/nowhere.html", status=403)
