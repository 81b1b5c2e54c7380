"""The commands that this package adds to the command line."""

from polyad.cli.command_tables import CommandTable

TABLES = (
    CommandTable(
        """
        serve commands:serve Serve indexes: a web page, an HTTP API, an OpenAI-compatible API and an MCP server.
        mcp commands:mcp Offer an index to an agent on this machine over MCP, on the standard streams.
        worker commands:worker Run a worker that takes uploads, and jobs of `polyad index --workers`, until Ctrl-C.
        """,
        package="polyad_server",
        after_interrupt={"worker": "other workers continue with the jobs of this one"},
    ),
    CommandTable(
        """
        add commands:add Add an API key for an index, and print it once.
        list commands:list_ List the API keys of an index, without their secrets.
        remove commands:remove Remove an API key; a running server rejects it within a second.
        """,
        package="polyad_server",
        group="key",
        help="Manage the API keys of `polyad serve`.",
    ),
    CommandTable(
        """
        install agents:install Connect an agent program with an index: write its MCP entry and a skill.
        """,
        package="polyad_server",
        group="agent",
        help="Connect agent programs with an index.",
    ),
)
