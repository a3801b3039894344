"""What runs inside a sandbox: PID 1 and the keeper of each command.

Standard library only, and nothing of ours from outside this package: it is copied into the sandbox as it stands.
"""
