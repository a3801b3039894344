"""The door for machines: REST under /v1, one module per noun. Finds, calls one act, answers; decides nothing."""
