"""Where the doors are. `/v1` is for keys and never takes a session; everything else is for people, or says how we are."""

from django.urls import include, path

from console.api.urls import api

urlpatterns = [
    path("v1/", api.urls),
    path("", include("console.pages.urls")),
]
