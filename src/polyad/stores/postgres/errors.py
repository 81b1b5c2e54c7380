"""Errors of PostgreSQL as errors of polyad, each with one line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from polyad.errors import ConfigurationError, PolyadError, StoreError, StoreUnavailableError

_MESSAGES: dict[type[psycopg.Error], tuple[type[PolyadError], str]] = {
    errors.LockNotAvailable: (StoreUnavailableError, "another process is still writing to {name}; wait for it"),
    errors.DiskFull: (StoreUnavailableError, "no space is left on the server of {name}; free some and try again"),
    errors.InsufficientPrivilege: (
        StoreUnavailableError,
        "the database user may not use {name}: {message}; grant the privilege, or connect as another user",
    ),
    errors.ReadOnlySqlTransaction: (
        StoreUnavailableError,
        "{name} is a read-only server; add target_session_attrs=read-write and all hosts to the address",
    ),
    errors.InvalidCatalogName: (ConfigurationError, "no database at {name}: {message}; create it with createdb"),
    errors.UndefinedTable: (StoreError, "the tables of {name} were deleted ({message}); index again"),
    errors.TooManyConnections: (
        StoreUnavailableError,
        "{name} has no free connection: {message}; raise max_connections, or run fewer processes",
    ),
    errors.QueryCanceled: (StoreUnavailableError, "{name} cancelled a query: {message}; raise statement_timeout"),
}
"""Class and message of the error for each error of PostgreSQL that needs a remedy of its own."""

_LOGIN_PHRASES = ("authentication failed", "no password supplied", "pg_hba.conf", 'role "')

_RETRYABLE = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,
)
"""Errors after which the same transaction may succeed, perhaps on another connection."""


def is_retryable(error: Exception) -> bool:
    """Return whether a failed transaction may succeed when repeated: connection lost, or conflict with a writer."""
    return isinstance(error, _RETRYABLE) or (
        isinstance(error, psycopg.OperationalError) and not error.sqlstate and not is_refused(error)
    )


def is_refused(error: psycopg.Error) -> bool:
    """Return whether the server rejected the login or the database name, so that a new attempt cannot succeed."""
    return any(phrase in str(error) for phrase in _LOGIN_PHRASES) or 'database "' in str(error)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Convert PostgreSQL's errors in the ``with`` block into errors of polyad that call the index ``name``.

    The cause is dropped: it could hold connection parameters.

    Args:
        name: The address without the password.
    """
    try:
        yield
    except PoolTimeout:
        raise StoreUnavailableError(f"no connection to {name} became free; repeat the command") from None
    except psycopg.Error as error:
        raise _build_error(name, error) from None


def _build_error(name: str, error: psycopg.Error) -> PolyadError:
    """Return the polyad error, with a message for users, that corresponds to an error of PostgreSQL."""
    message = " ".join((error.diag.message_primary or str(error)).split())
    for kind, (error_type, text) in _MESSAGES.items():
        if isinstance(error, kind):
            return error_type(text.format(name=name, message=message))
    if error.sqlstate is None and is_refused(error):
        reason = message.rpartition("FATAL:")[2].strip()
        remedy = (
            "create it with createdb"
            if "does not exist" in reason and "database" in reason
            else ("check user and password in the address, in PGPASSWORD or in ~/.pgpass")
        )
        return ConfigurationError(f"cannot log in to {name}: {reason}; {remedy}")
    if is_retryable(error):
        return StoreUnavailableError(f"the connection to {name} failed: {message}; check the server and try again")
    return StoreError(f"cannot use {name}: {message}")
