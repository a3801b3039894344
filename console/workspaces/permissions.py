"""The permissions there are, and the presets that fill a form. `sandboxes:run` is in none, and nothing implies it."""

SANDBOXES_RUN = "sandboxes:run"
SANDBOXES_READ = "sandboxes:read"
APPROVALS_REVIEW = "approvals:review"
RULES_MANAGE = "rules:manage"
AGENTS_MANAGE = "agents:manage"
MEMBERS_MANAGE = "members:manage"
KEYS_MANAGE = "keys:manage"
AUDIT_READ = "audit:read"
WORKSPACE_MANAGE = "workspace:manage"

MEANINGS = {
    APPROVALS_REVIEW: "Approve or deny what agents propose.",
    SANDBOXES_READ: "See sandboxes, their files and what ran.",
    AUDIT_READ: "Read the audit log.",
    RULES_MANAGE: "Make and change rules that let calls through, ask, or deny them.",
    AGENTS_MANAGE: "Make agents and change their Agent Tools.",
    KEYS_MANAGE: "Make and revoke keys.",
    MEMBERS_MANAGE: "Add members and give permissions.",
    WORKSPACE_MANAGE: "Change workspace settings, deciding by key among them.",
    SANDBOXES_RUN: "Run commands and write files in sandboxes without asking.",
}
ALL = tuple(MEANINGS)

PRESETS = {
    "admin": frozenset(ALL) - {SANDBOXES_RUN},
    "reviewer": frozenset({APPROVALS_REVIEW, SANDBOXES_READ, AUDIT_READ}),
    "developer": frozenset({SANDBOXES_READ, AGENTS_MANAGE, KEYS_MANAGE}),
}
# Whoever decides must not be who runs: no key holds both.
NEVER_TOGETHER_ON_A_KEY = frozenset({SANDBOXES_RUN, APPROVALS_REVIEW})
