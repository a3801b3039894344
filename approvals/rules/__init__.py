"""Rules and grants: what lets a call through, refuses it, or has it asked, without a person at that moment.

`judging` is pure; `finding` reads what is in force; `acts` and `grants` change it. `gate` asks `finding.judge` alone.
"""
