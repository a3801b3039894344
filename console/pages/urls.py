"""The addresses of the pages. Every one inside a workspace names it: `/w/<workspace_id>/…`."""

from django.urls import path

from . import agents, audit, kept, keys, members, people, protected, queue, sandboxes, shell, suspensions, workspace

urlpatterns = [
    path("", people.front, name="front"),
    path("sign-in", people.sign_in, name="sign-in"),
    path("sign-out", people.sign_out, name="sign-out"),
    path("password", people.password, name="password"),
    path("w/<str:workspace_id>/", shell.home, name="home"),
    path("w/<str:workspace_id>/queue", queue.queue, name="queue"),
    path("w/<str:workspace_id>/queue/<str:action_id>", queue.queue, name="card"),
    path("w/<str:workspace_id>/queue/<str:action_id>/decide", queue.decide, name="decide"),
    path("w/<str:workspace_id>/queue/<str:action_id>/raw", queue.raw, name="raw"),
    path("w/<str:workspace_id>/queue/<str:action_id>/output/<str:stream>", queue.output, name="output"),
    path("w/<str:workspace_id>/sandboxes", sandboxes.listed, name="sandboxes"),
    path("w/<str:workspace_id>/sandboxes/<str:sandbox_id>", sandboxes.detail, name="sandbox"),
    path("w/<str:workspace_id>/sandboxes/<str:sandbox_id>/delete", sandboxes.delete, name="delete-sandbox"),
    path(
        "w/<str:workspace_id>/sandboxes/<str:sandbox_id>/commands/<str:command_id>/stop",
        sandboxes.stop_command,
        name="stop-command",
    ),
    path("w/<str:workspace_id>/artifacts/<str:artifact_id>", kept.content, name="artifact"),
    path("w/<str:workspace_id>/audit", audit.listed, name="audit"),
    path("w/<str:workspace_id>/agents", agents.listed, name="agents"),
    path("w/<str:workspace_id>/agents/<str:agent_id>", agents.tools, name="agent-tools"),
    path("w/<str:workspace_id>/agents/<str:agent_id>/run", agents.run_permission, name="agent-run"),
    path("w/<str:workspace_id>/agents/<str:agent_id>/network", agents.network_exception, name="agent-network"),
    path("w/<str:workspace_id>/agents/<str:agent_id>/exempt", protected.exemption, name="agent-exempt"),
    path("w/<str:workspace_id>/agents/<str:agent_id>/lift", suspensions.lift, name="lift-suspension"),
    path("w/<str:workspace_id>/members", members.listed, name="members"),
    path("w/<str:workspace_id>/members/<str:member_id>", members.permissions, name="member"),
    path("w/<str:workspace_id>/settings", workspace.changed, name="workspace"),
    path("w/<str:workspace_id>/keys", keys.listed, name="keys"),
    path("w/<str:workspace_id>/keys/<str:key_id>/revoke", keys.revoke, name="revoke-key"),
]
