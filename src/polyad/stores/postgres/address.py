"""Addresses of indexes in PostgreSQL databases."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from platformdirs import user_cache_path
from psycopg.conninfo import conninfo_to_dict

from polyad.errors import ConfigurationError
from polyad.protocols.store import VectorType

_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_FORM = "postgresql://USER@HOST/DATABASE?workspace=NAME"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of an index in PostgreSQL: a database, and a workspace (a schema of the database).

    Attributes:
        connection_info: Connection parameters in the form of libpq, which may include a password.
        name: The address without user, password and parameters, for messages.
        workspace: Name of the workspace; empty for the default workspace.
        vector_type: How vectors are stored; empty for the type of the index, float32 in a new index.
    """

    connection_info: str = field(repr=False)
    name: str
    workspace: str
    vector_type: str = ""

    @classmethod
    def from_url(cls, url: str) -> DatabaseAddress:
        """Parse the address ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?workspace=NAME`` of an index.

        ``vectors=float16`` stores the vectors of a new index in half the bytes, ``vectors=vector`` and
        ``vectors=halfvec`` in columns of the extension pgvector. Other parameters are those of libpq.

        Raises:
            ConfigurationError: The address is malformed; the message does not quote it, since it may hold a password.
        """
        try:
            location, _, query = url.partition("?")
            parameters = parse_qsl(query, keep_blank_values=True)
            rest = [(name, value) for name, value in parameters if name not in ("workspace", "vectors")]
            info = f"{location}?{urlencode(rest, quote_via=quote)}"  # libpq takes "+" as it is
            fields = conninfo_to_dict(info)
            if "@" in str(fields.get("host")) or not re.fullmatch("[0-9,]*", str(fields.get("port") or "")):
                raise ValueError("the host is part of a password")
        except (ValueError, psycopg.Error):
            raise ConfigurationError(
                f"the address of the PostgreSQL database is malformed; expected {_FORM}, and %40, %2F, ... in place of "
                "@, / and other special characters of a password"
            ) from None
        host = location.partition("://")[2].partition("/")[0].rpartition("@")[2]
        host = host or str(fields.get("host") or "localhost")
        workspace = dict(parameters).get("workspace", "")
        if workspace and not _WORKSPACE.fullmatch(workspace):
            raise ConfigurationError(
                f"the workspace is {workspace!r}; expected at most 50 letters, digits, '.', '_' and '-', a letter or "
                "digit first"
            )
        vector_type = dict(parameters).get("vectors", "")
        if vector_type not in ("", *get_args(VectorType)):
            expected = ", ".join(get_args(VectorType))
            raise ConfigurationError(f"vectors is {vector_type!r} in the address; expected one of {expected}")
        suffix = f"?workspace={workspace}" if workspace else ""
        return cls(info, f"postgresql://{host}/{fields.get('dbname') or ''}{suffix}", workspace, vector_type)

    @property
    def schema(self) -> str:
        """The name of the PostgreSQL schema with the index's tables."""
        return f"polyad_{self.workspace}" if self.workspace else "polyad"

    def get_cache_directory(self, token: str) -> Path:
        """Return the local folder for snapshot files of the index that has the random token ``token``.

        Args:
            token: Random token of the index; an index that is created at the same address has another one.
        """
        digest = hashlib.sha256(f"{self.name}\n{token}".encode()).hexdigest()[:16]
        return user_cache_path("polyad") / f"{self.schema}-{digest}"
