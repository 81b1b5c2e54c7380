"""Lines and JSON on the standard streams: results on the output, warnings and errors on the error stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from polyad.schemas import versioned
from polyad.text.words import sanitize

P = ParamSpec("P")


def say_json(value: object) -> None:
    """Print an object as JSON on stdout, with the version of the output schema."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(versioned(value), ensure_ascii=not is_unicode, indent=2))


def say(text: str = "") -> None:
    """Print one line of a result on stdout."""
    typer.echo(sanitize(text))


def say_result(
    as_json: bool, shape: object, show: Callable[P, object], *arguments: P.args, **options: P.kwargs
) -> None:
    """Print a command's result: ``shape`` as JSON if ``as_json``, otherwise as text by calling ``show``."""
    if as_json:
        say_json(shape)
    else:
        show(*arguments, **options)


def say_piece(text: str) -> None:
    """Print a piece of a streamed answer on stdout, without a line break."""
    typer.echo(sanitize(text), nl=False)


def warn(kind: str, text: str) -> None:
    """Print ``text`` as one line on stderr, with its kind: ``polyad: error: ...``."""
    typer.echo(f"polyad: {kind}: {' '.join(sanitize(text).split())}", err=True)
