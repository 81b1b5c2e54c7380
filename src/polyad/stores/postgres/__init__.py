"""The shared store: a schema of a PostgreSQL database, which many machines read and write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polyad.errors import MissingExtraError
from polyad.protocols.store import Manifest

if TYPE_CHECKING:
    from polyad.stores.postgres.store import PostgresStore


def open_postgres(place: str | Path, manifest: Manifest | None = None, *, replies: Path | None = None) -> PostgresStore:
    """Open the index at the PostgreSQL address ``place``, or create it with ``manifest``.

    See :meth:`polyad.stores.postgres.store.PostgresStore.open`.

    Raises:
        MissingExtraError: psycopg is not installed.
    """
    try:
        from polyad.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "postgres") from error
    return PostgresStore.open(str(place), manifest, replies=replies)
