"""``python -m polyad.adapters.scripted``: a server that answers with what the first passage says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from polyad.adapters.scripted import ScriptedServer, cite_first_passage
from polyad.adapters.scripted.server import serve


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve :func:`cite_first_passage` until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m polyad.adapters.scripted", description=main.__doc__)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    options = parser.parse_args(arguments)
    serve(ScriptedServer(cite_first_passage, port=options.port, delay=options.delay))


if __name__ == "__main__":
    main()
