"""MCP (streamable HTTP), for agents whose tools come that way: the same tools and the same gate as at /v1/tools.

`door` is what the server routes to; `server` lists and calls; `shown` shapes what goes out. The protocol itself, in
both revisions that are current, is the official SDK's.
"""
