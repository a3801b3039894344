"""The cast: alice (admin), bob (reviewer), mallory (admin of another workspace), and two agents of alice's."""

from dataclasses import dataclass

from console.workspaces import agents, keys, members, permissions
from console.workspaces.keys import Caller
from console.workspaces.models import Agent, Member, Permission, User, Workspace

PASSWORD = "correct horse battery 9"


@dataclass
class Cast:
    workspace: Workspace
    elsewhere: Workspace
    alice: Member
    bob: Member
    mallory: Member
    scout: Agent
    other: Agent

    def key_of(self, agent: Agent) -> str:
        return keys.make_agent_key(agent, name="test", by=None)[1]

    def workspace_key(self, member: Member, *may: str) -> str:
        return keys.make_member_key(member, name="test", may=may or [permissions.SANDBOXES_RUN], by=member)[1]

    def caller(self, holder: Agent | Member, *may: str) -> Caller:
        secret = self.key_of(holder) if isinstance(holder, Agent) else self.workspace_key(holder, *may)
        found = keys.authenticate(secret)
        assert found is not None
        return found


def member(workspace: Workspace, name: str, *preset: str) -> Member:
    user = User.objects.create_user(f"{name}@example.test", PASSWORD, name=name.title())
    found = members.add(workspace, user, by=None)
    # Not one by one with `members.give`: most tests begin with these rows.
    Permission.objects.bulk_create(Permission(workspace=workspace, member=found, name=name) for name in set(preset))
    return found


def agent(workspace: Workspace, name: str) -> Agent:
    found = agents.make(workspace, name=name, by=None)
    members.give(found, permissions.SANDBOXES_RUN, by=None)
    return agents.change_tools(found, by=None, sandbox_enabled=True)


def cast() -> Cast:
    workspace = Workspace.objects.create(name="Harbour Works")
    elsewhere = Workspace.objects.create(name="Elsewhere")
    return Cast(
        workspace=workspace,
        elsewhere=elsewhere,
        alice=member(workspace, "alice", *permissions.PRESETS["admin"], permissions.SANDBOXES_RUN),
        bob=member(workspace, "bob", *permissions.PRESETS["reviewer"]),
        mallory=member(elsewhere, "mallory", *permissions.PRESETS["admin"], permissions.SANDBOXES_RUN),
        scout=agent(workspace, "scout"),
        other=agent(workspace, "other"),
    )
