"""The embedded store: one SQLite file in the index's directory, and files of jobs and of cached replies."""

from polyad.stores.sqlite.jobs import JOBS_FILE_NAME
from polyad.stores.sqlite.store import FILE_NAME, SqliteStore
from polyad.stores.sqlite.values import REPLIES_FILE_NAME, SqliteValueFile

__all__ = ["FILE_NAME", "JOBS_FILE_NAME", "REPLIES_FILE_NAME", "SqliteStore", "SqliteValueFile"]
