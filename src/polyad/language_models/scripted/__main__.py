"""The command ``python -m polyad.language_models.scripted``: a server that answers from the first passage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from polyad.language_models.scripted import ScriptedServer, cite_first_passage
from polyad.language_models.scripted.server import add_server_options, serve


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a test server whose model cites the first passage of each request, until the process is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m polyad.language_models.scripted", description=main.__doc__)
    add_server_options(parser)
    options = parser.parse_args(arguments)
    serve(parser, lambda: ScriptedServer(cite_first_passage, port=options.port, delay=options.delay))


if __name__ == "__main__":
    main()
