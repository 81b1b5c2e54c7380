"""The command line."""

from polyad.cli.commands import app, main

__all__ = ["app", "main"]
