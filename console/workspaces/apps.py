from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    name = "console.workspaces"
    label = "workspaces"
