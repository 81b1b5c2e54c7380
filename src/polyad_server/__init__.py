"""polyad as a service: an HTTP API, an OpenAI-compatible API, an MCP server and a web page.

Endpoints are synchronous functions of a few lines over :class:`polyad.engine.engine.Engine`. They run in threads and
return the JSON that the commands print. Needs the extra ``server``.
"""
