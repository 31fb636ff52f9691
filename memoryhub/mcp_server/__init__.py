"""The door for MCP clients: eight tools over memories, sessions and the tool cache, at `/mcp`.

`tools.py` has the tools as plain functions (parse, one call, shape), `shapes.py` what they answer, `server.py` hands
them to the SDK, `views.py` is the HTTP side: POST only, Bearer key, no state between requests. A new tool is one
function and one line in `tools.TOOLS`.
"""
