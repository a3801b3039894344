"""What surrounds every page: who looks at which workspace, what they may do there, and the rail.

`member_page` is the one way into a workspace: a workspace of others does not exist. Must never decide what an
act needs: acts check permissions themselves, here it is decided what is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from approvals.models import Action
from console import first_run, whence
from console.workspaces import origin, permissions
from console.workspaces.models import Halt, Member, Workspace

from .words import listed

HALTS_SHOWN = 3
LOOK = frozenset({permissions.APPROVALS_REVIEW, permissions.SANDBOXES_READ})
NAV = (
    (
        "Review",
        (
            ("queue", "Queue", "inbox", LOOK),
            ("sandboxes", "Sandboxes", "box", {permissions.SANDBOXES_READ}),
            ("audit", "Audit", "scroll-text", {permissions.AUDIT_READ}),
            ("insights", "Insights", "chart-no-axes-column", {permissions.AUDIT_READ, permissions.APPROVALS_REVIEW}),
        ),
    ),
    (
        "Set up",
        (
            ("agents", "Agents", "bot", {permissions.AGENTS_MANAGE}),
            ("rules", "Rules", "list-checks", {permissions.RULES_MANAGE}),
            ("members", "Members", "users", {permissions.MEMBERS_MANAGE}),
            ("keys", "Keys", "key-round", {permissions.KEYS_MANAGE}),
            ("notices", "Notices", "bell", {permissions.WORKSPACE_MANAGE, permissions.APPROVALS_REVIEW}),
            ("workspace", "Workspace", "settings", {permissions.WORKSPACE_MANAGE}),
        ),
    ),
)
View = TypeVar("View", bound=Callable[..., HttpResponseBase])


@dataclass
class Here:
    """A member in a workspace, for one request."""

    member: Member
    page: str

    @property
    def workspace(self) -> Workspace:
        return self.member.workspace

    @cached_property
    def may(self) -> frozenset[str]:
        return frozenset(self.member.permissions.values_list("name", flat=True))

    @property
    def may_look(self) -> bool:
        return bool(LOOK & self.may)

    @property
    def may_review(self) -> bool:
        return permissions.APPROVALS_REVIEW in self.may

    @property
    def may_manage_rules(self) -> bool:
        return permissions.RULES_MANAGE in self.may

    @property
    def may_read_sandboxes(self) -> bool:
        return permissions.SANDBOXES_READ in self.may

    @property
    def may_lift(self) -> bool:
        return permissions.AGENTS_MANAGE in self.may

    @cached_property
    def _halts(self) -> list[Halt]:
        found = Halt.objects.current().filter(workspace=self.workspace).select_related("agent", "halted_by__user")
        return sorted(found, key=lambda halt: (halt.agent is not None, halt.halted_at))

    @property
    def halts(self) -> list[Halt]:
        """Those that every page tells of: the workspace's first."""
        return self._halts[:HALTS_SHOWN]

    @property
    def more_halts(self) -> int:
        return len(self._halts[HALTS_SHOWN:])

    @cached_property
    def waiting(self) -> int:
        return Action.objects.visible_to(self.member).pending().count()

    @cached_property
    def workspaces(self) -> list[Workspace]:
        return [member.workspace for member in memberships(self.member.user)]

    @property
    def nav(self) -> list[dict[str, Any]]:
        groups = [
            {"title": title, "items": [self._item(*item[:3]) for item in items if item[3] & self.may]}
            for title, items in NAV
        ]
        return [group for group in groups if group["items"]]

    def _item(self, name: str, title: str, icon: str) -> dict[str, Any]:
        href = reverse(name, args=[self.workspace.pk])
        return {"name": name, "title": title, "icon": icon, "href": href, "current": name == self.page}

    @property
    def first_run(self) -> str:
        """Where the first keys still lie as text, for those who can do something about it."""
        return str(first_run.path()) if permissions.WORKSPACE_MANAGE in self.may and first_run.exists() else ""

    @property
    def forget_command(self) -> tuple[str, str]:
        """What is run and its option, in which no line may break."""
        run, _, option = first_run.forget_command().rpartition(" ")
        return run, option

    @property
    def no_engine(self) -> bool:
        return settings.ENGINE is None


def memberships(user: Any) -> list[Member]:
    return list(Member.objects.of(user).select_related("workspace", "user").order_by("workspace__name", "pk"))


def member_page(name: str, *needs: str, methods: tuple[str, ...] = ("GET", "HEAD")) -> Callable[[View], View]:
    """For views of `/w/<workspace_id>/…`: a member with any of `needs`, or 404 for others and 403 for members.
    The view gets `request.here`."""

    def decorate(view: View) -> View:
        @never_cache
        @require_http_methods(list(methods))
        @wraps(view)
        def guarded(request: Any, workspace_id: str, **kwargs: str) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            request.here = Here(_member(request.user, workspace_id), page=name)
            if needs and not request.here.may & set(needs):
                return refused(request, needs[0])
            with origin.given(whence.of_person(request, request.here.member)):
                return view(request, **kwargs)

        return guarded  # type: ignore[return-value]

    return decorate


def _member(user: Any, workspace_id: str) -> Member:
    found = Member.objects.of(user).select_related("workspace", "user").filter(workspace_id=workspace_id).first()
    if found is None:
        raise Http404
    return found


def _to_sign_in(request: Any) -> HttpResponseBase:
    if request.htmx:  # a fragment is no place for a form to sign in
        return HttpResponseClientRedirect(reverse("sign-in"))
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")


def refused(request: HttpRequest, permission: str) -> HttpResponse:
    givers = listed(givers_in(request.here.workspace))  # type: ignore[attr-defined]
    return render(request, "refused.html", {"permission": permission, "givers": givers}, status=403)


def givers_in(workspace: Workspace, *, but: Member | None = None) -> list[str]:
    """Names of those who may give permissions."""
    found = Member.objects.current().filter(workspace=workspace).exclude(pk=but.pk if but else "")
    return [str(member) for member in found.with_permission(permissions.MEMBERS_MANAGE).select_related("user")]


def context(request: HttpRequest) -> dict[str, Any]:
    """For every template: `here`, where there is a workspace."""
    return {"here": getattr(request, "here", None)}


def say(request: HttpRequest, text: str) -> None:
    messages.success(request, text)


def complain(request: HttpRequest, text: str) -> None:
    messages.error(request, text)


@member_page("home")
def home(request: Any) -> HttpResponseBase:
    """To the first page that this member may see."""
    if groups := request.here.nav:
        return redirect(groups[0]["items"][0]["href"])
    return refused(request, permissions.SANDBOXES_READ)
