"""Connections to a SQLite file that many threads and processes read while one of them writes."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import StoreError, StoreUnavailableError
from polyad.stores.relational.rows import DamageError
from polyad.stores.sqlite.connection import UNSOUND, SqliteConnection
from polyad.text.files import make_folder, open_atomically, resolve_path

BUSY_SECONDS = 60.0
"""Seconds that a writer waits for another process that is writing."""

INDEX_REMEDY = "restore it from a copy, or index again into another --store"
"""Advice to the user in the error message of a damaged index."""

_COPIED_PAGES = 10_000
"""Pages copied at a time; an interrupt is handled in between."""

_MAX_PATH_BYTES = 504
"""SQLite's limit of 512 bytes, minus the suffix of its log files."""

_SHARED_MEMORY_ERRORS = frozenset({sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMMAP})
_LOCK_ERRORS = frozenset(
    {
        sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_RDLOCK,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_UNLOCK,
    }
)
_SPACE_ERRORS = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_SHMSIZE,  # of the shared-memory file, which the first connection creates
        sqlite3.SQLITE_IOERR_WRITE,  # also if a quota or a limit of file sizes is reached
    }
)
_SYSTEM_ERRORS = frozenset(
    (
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    )
)
"""SQLite error codes that do not indicate damage to the file."""


class BusyError(StoreUnavailableError):
    """Raised if another process holds SQLite's write lock for longer than the time limit."""


@dataclass(frozen=True, slots=True)
class _OpenConnection:
    """An open SQLite connection, and for a read-only file the file's state, to detect changes of the file.

    Attributes:
        connection: The connection.
        file_state: Inode, size and modification time of the file when it was opened as immutable; None for a normal
            connection, which sees the writes of other processes.
    """

    connection: SqliteConnection
    file_state: tuple[int, int, int] | None = None


class SqliteDatabase:
    """A SQLite database file, with one connection for each thread that uses the file.

    A file without write permission, on a read-only disk or of another user, can be read.

    Args:
        path: Path of the file.
        remedy: Advice to the user in the error message of a damaged file.
    """

    def __init__(self, path: Path, remedy: str = INDEX_REMEDY) -> None:
        self.path = path
        self._remedy = remedy
        self.is_read_only = not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
        self._connections: dict[threading.Thread, _OpenConnection] = {}
        self._users: set[threading.Thread] = set()
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Open a read transaction for the ``with`` block and yield its connection; convert errors to StoreError.

        Raises:
            StoreError: The file is damaged, as SQLite or a checksum shows, or cannot be read.
        """
        with self.report_errors(), self._hold_transaction() as connection:
            yield connection

    @contextmanager
    def hold_transaction(self) -> Iterator[SqliteConnection]:
        """Open a read transaction for the ``with`` block and yield its connection; nested blocks share the transaction.

        Exceptions of the block pass unchanged: code of other packages may run in the block, such as a retriever.

        Raises:
            StoreError: The file is damaged, or it is read-only for this user and another user changed it meanwhile.
        """
        with ExitStack() as stack:
            with self.report_errors():
                connection = stack.enter_context(self._hold_transaction())
            yield connection

    @contextmanager
    def _hold_transaction(self) -> Iterator[SqliteConnection]:
        thread = threading.current_thread()
        # Outside a block, another thread may have closed the connection.
        outer = self._connections.get(thread) if thread in self._users else None
        if outer is not None and outer.connection.in_transaction:
            yield outer.connection
            return
        with self._hold_open():
            opened = self._get_connection()
            connection = opened.connection
            connection.execute("BEGIN")
            try:
                yield connection
            except Exception:
                self._require_unchanged(opened)
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._require_unchanged(opened)

    @contextmanager
    def writing(self, seconds: float = BUSY_SECONDS) -> Iterator[SqliteConnection]:
        """Open a write transaction, waiting at most ``seconds`` for other writers; yield its connection and commit.

        Args:
            seconds: Time limit of waiting for other processes that write.

        Raises:
            BusyError: another process is still writing.
            StoreUnavailableError: the file is read-only for this user.
        """
        if self.is_read_only:
            raise StoreUnavailableError(f"{str(self.path)!r} may not be written by this user; it can only be searched")
        with self._writing, self._hold_open(), self.report_errors():
            connection = self._get_connection().connection
            connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite ends the transaction itself when the disk is full
                    connection.execute("ROLLBACK")
                raise

    def put_values(self, namespace: str, values: Mapping[str, bytes | None] | None, *, is_optional: bool) -> None:
        """Store the key-value pairs ``values`` in a namespace; a key whose value is None is deleted.

        ``values=None`` deletes all keys of the namespace. An optional write is left out if the index cannot be
        written now, for example because it is read-only.

        See :meth:`polyad.protocols.store.ValueStore.put_values`.
        """
        if is_optional and self.is_read_only:
            return
        if values is None:  # most runs leave nothing to delete: do not wait for other writers then
            with self.reading() as connection:
                if not connection.execute("SELECT 1 FROM value WHERE namespace = ? LIMIT 1", [namespace]).fetchone():
                    return
        errors = (StoreUnavailableError,) if is_optional else ()
        with suppress(*errors), self.writing(**({"seconds": 0.0} if is_optional else {})) as connection:
            if values is None:
                connection.execute("DELETE FROM value WHERE namespace = ?", [namespace])
            else:
                connection.replace_values(namespace, values)

    @contextmanager
    def report_errors(self) -> Iterator[None]:
        """Convert errors of SQLite, and DamageError, in the ``with`` block into StoreError.

        Other errors are not those of the file and pass unchanged.
        """
        with _translate_errors(self.path, self._remedy):
            yield

    def copy_to(self, path: Path) -> None:
        """Copy one version of the database to the file ``path``, which appears complete or not at all.

        Raises:
            StoreError: The file cannot be written.
        """
        try:
            make_folder(path.parent)
            with (
                self.hold_transaction() as source,
                _translate_errors(path, self._remedy),
                open_atomically(path) as file,
                closing(sqlite3.connect(file.name)) as target,
            ):
                source.backup(target, pages=_COPIED_PAGES)  # copies one version, since a transaction is open
        except OSError as error:
            raise StoreError(f"cannot write {str(path)!r}: {error.strerror or error}") from error

    def get_disk_bytes(self) -> int:
        """Return the size of the database file and its write-ahead log in bytes."""
        return sum(_get_size(file) for file in self.path.parent.glob(f"{self.path.name}*"))

    def close(self) -> None:
        """Close all connections, after waiting for the transactions of other threads."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(self._has_no_other_users)
            for opened in self._connections.values():
                opened.connection.close()
            self._connections.clear()

    @contextmanager
    def _hold_open(self) -> Iterator[None]:
        """Prevent other threads from closing the connections during the ``with`` block."""
        with self._changed:
            if self._closed:
                raise StoreError(f"{str(self.path)!r} was closed; open it again")
            self._users.add(threading.current_thread())
        try:
            yield
        finally:
            with self._changed:
                self._users.discard(threading.current_thread())
                self._changed.notify_all()

    def _has_no_other_users(self) -> bool:
        me = threading.current_thread()
        return all(user is me or not user.is_alive() for user in self._users)

    def _get_connection(self) -> _OpenConnection:
        """Return this thread's connection, opened if necessary, and close connections of threads that have ended."""
        thread = threading.current_thread()
        with self._changed:
            for ended in [other for other in self._connections if not other.is_alive()]:
                self._connections.pop(ended).connection.close()
            opened = self._connections.get(thread)
        if opened is None or self._is_outdated(opened):
            if opened is not None:
                opened.connection.close()
            opened = _connect_read_only(self.path) if self.is_read_only else _OpenConnection(_connect(self.path))
            with self._changed:
                self._connections[thread] = opened
        return opened

    def _is_outdated(self, opened: _OpenConnection) -> bool:
        return opened.file_state is not None and (
            opened.file_state != _get_file_state(self.path) or bool(_get_size(_get_log_path(self.path)))
        )

    def _require_unchanged(self, opened: _OpenConnection) -> None:
        """Raise StoreError if another process modified a read-only file during the transaction of ``opened``.

        The rows that were read could belong to two versions.
        """
        if opened.file_state is not None and opened.file_state != _get_file_state(self.path):
            raise StoreError(f"{str(self.path)!r} was changed by another process while it was read; try again")


def has_tables(path: Path) -> bool:
    """Return whether a database file has tables; True also for a non-empty file that is no database."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _has_tables(connection)
    except (sqlite3.Error, UnicodeDecodeError):
        return True


def check_path(path: Path, option: str) -> None:
    """Raise StoreError if SQLite could not open ``path``, the value of a command-line option, or would wait for ever.

    A path may be too long. The file, and its journals, may be pipes or devices.
    """
    for file in (path.with_name(f"{path.name}{suffix}") for suffix in ("", "-journal", "-shm", "-wal")):
        mode = stat.S_IFREG
        with suppress(OSError, ValueError):  # missing; SQLite deletes journals at any time
            mode = file.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise StoreError(f"{str(file)!r} is a pipe or a device; expected a file that SQLite wrote, or none")
    length = len(os.fsencode(resolve_path(path)))
    if length > _MAX_PATH_BYTES:
        raise StoreError(
            f"the path {str(path)!r} has {length:,} bytes; SQLite opens paths of at most {_MAX_PATH_BYTES}; choose a "
            f"shorter one for {option}"
        )


def create_tables(path: Path, create: Callable[[SqliteConnection], None], remedy: str = INDEX_REMEDY) -> None:
    """Create the tables of a new database file with ``create(connection)``; leave a file with tables unchanged.

    ``remedy`` is the advice to the user in the error message of a damaged file.

    Raises:
        StoreError: the file cannot be written, or is not a database.
    """
    with _translate_errors(path, remedy), closing(_connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if not _has_tables(connection):
            create(connection)
        connection.execute("COMMIT")


@contextmanager
def open_lock(path: Path) -> Iterator[Callable[[], bool]]:
    """Yield a function that takes the lock of a file if it is free, and returns whether this block has the lock.

    SQLite's lock of a database without tables works on each system, and ends with the process.
    """
    with _translate_errors(path, INDEX_REMEDY):
        connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
    with closing(connection):

        def take() -> bool:
            if not connection.in_transaction:
                with suppress(sqlite3.OperationalError):  # another process has it
                    connection.execute("BEGIN EXCLUSIVE")
            return connection.in_transaction

        yield take


def run_script(connection: SqliteConnection, script: str) -> None:
    """Execute the SQL statements of ``script`` one after the other inside the current transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _connect_read_only(path: Path) -> _OpenConnection:
    """Open a read-only connection that creates no file, not even SQLite's shared-memory and log files.

    If there is no log, SQLite creates these files unless the connection declares the file immutable. An immutable file
    is not checked for changes by SQLite, so changes are detected by :func:`_get_file_state`.
    """
    state = _get_file_state(path)
    is_logged = _get_size(_get_log_path(path)) > 0
    mode = "mode=ro" if is_logged else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteConnection,
    )
    return _OpenConnection(connection, None if is_logged else state)


def _connect(path: Path) -> SqliteConnection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=SqliteConnection
    )
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power failure, for 2 ms
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: SqliteConnection) -> None:
    """Switch the file to write-ahead logging, so that readers and the writer do not wait for each other.

    If two processes switch a new file at once, SQLite ignores its busy timeout and fails at once: wait here.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


@contextmanager
def _translate_errors(path: Path, remedy: str) -> Iterator[None]:
    """Convert errors of SQLite and DamageError into StoreError, whose message contains ``path`` and ``remedy``."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{str(path)!r} no longer exists; index again, or restore it") from error
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code in _LOCK_ERRORS | _SHARED_MEMORY_ERRORS or (_is_busy(error) and not _can_lock(path.parent)):
            ability = "map files into memory" if code in _SHARED_MEMORY_ERRORS else "lock files"
            raise StoreUnavailableError(
                f"the file system of {str(path)!r} cannot {ability}, which SQLite needs to coordinate processes; keep "
                "the index on a local disk"
            ) from error
        if _is_busy(error):
            raise BusyError(
                f"another process has been writing to {str(path)!r} for {BUSY_SECONDS:.0f} s; wait for it"
            ) from error
        if code in _SPACE_ERRORS:
            raise StoreUnavailableError(f"no space is left to write {str(path)!r}; free some and try again") from error
        if _get_error_code(error) == sqlite3.SQLITE_CANTOPEN:
            raise StoreUnavailableError(f"cannot use {str(path)!r}: {error}") from error
        if _get_error_code(error) in _SYSTEM_ERRORS:
            raise StoreError(f"cannot use {str(path)!r}: {error}") from error
        raise _build_damage_error(path, error, remedy) from error
    except (
        sqlite3.DatabaseError,
        DamageError,
        UnicodeDecodeError,
    ) as error:  # a message may quote invalid UTF-8 of a damaged file
        raise _build_damage_error(path, error, remedy) from error


def _can_lock(folder: Path) -> bool:
    """Return whether the file system of a folder has locks.

    If it has none, as a file system of a network may, SQLite reports that another process has the lock.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        # Not the file of the index, since closing a file releases the locks that the process has on it.
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno != errno.ENOLCK
    return True


def _build_damage_error(path: Path, error: Exception, remedy: str) -> StoreError:
    what = str(error) if isinstance(error, DamageError) else f"{type(error).__name__}: {error}"
    if str(error) == UNSOUND:
        what = "a row was changed since it was written"
    return StoreError(f"{str(path)!r} is damaged or not an index ({what}); {remedy}")


def _get_error_code(error: sqlite3.Error) -> int:
    """Return the primary SQLite error code of an exception, such as SQLITE_BUSY; 0 if it has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _is_busy(error: sqlite3.Error) -> bool:
    """Return whether an error means that another connection has locked the database file."""
    return _get_error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _get_log_path(path: Path) -> Path:
    """Return the path of a SQLite database's write-ahead log."""
    return path.with_name(f"{path.name}-wal")


def _get_file_state(path: Path) -> tuple[int, int, int]:
    """Return inode, size and modification time of a file, at least one of which differs after a change."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _get_size(file: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    try:
        return file.stat().st_size
    except FileNotFoundError:  # the last connection of another process removed its log
        return 0
