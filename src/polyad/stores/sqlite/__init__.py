"""The embedded store: one SQLite file in the index's directory, and one of replies beside it or elsewhere."""

from polyad.stores.sqlite.replies import REPLIES_FILE_NAME, SqliteReplies
from polyad.stores.sqlite.store import FILE_NAME, SqliteStore

__all__ = ["FILE_NAME", "REPLIES_FILE_NAME", "SqliteReplies", "SqliteStore"]
