"""Lines and JSON on the standard streams: results on the output, warnings and errors on the error stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import typer

from polyad.schemas import versioned
from polyad.text.words import sanitize


def say_json(value: Mapping[str, object]) -> None:
    """Print a value as JSON with the version of the schema."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(versioned(value), ensure_ascii=not is_unicode, indent=2))


def say(text: str = "") -> None:
    """Print a line of a result."""
    typer.echo(sanitize(text))


def say_piece(text: str) -> None:
    """Print a piece of a streamed answer."""
    typer.echo(sanitize(text), nl=False)


def warn(kind: str, text: str) -> None:
    """Print one line on the error stream, for example ``polyad: error: ...``."""
    typer.echo(f"polyad: {kind}: {' '.join(sanitize(text).split())}", err=True)
