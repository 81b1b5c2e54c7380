"""The embedded store: one SQLite file in the index's directory."""

from polyad.adapters.sqlite.store import FILE_NAME, SqliteStore

__all__ = ["FILE_NAME", "SqliteStore"]
