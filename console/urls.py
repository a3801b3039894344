"""Where the doors are: `/v1` for keys, never a session; everything else for people."""

from django.urls import include, path

from console.api.urls import api

urlpatterns = [
    path("v1/", api.urls),
    path("", include("console.pages.urls")),
]
handler400 = "console.pages.hosts.malformed"
