"""One SQLite file that many threads and processes read, beside one that writes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from polyad.errors import StoreError
from polyad.stores.sqlite.checksums import UNSOUND, define_checksums

BUSY_SECONDS = 60.0
"""How long a writer waits for another process that is writing."""

INDEX_REMEDY = "restore it from a copy, or index again into another --store"
"""What to do about a damaged index."""

_LONGEST_PATH = 504
"""Bytes: SQLite's 512, less what it puts behind the names of its logs."""

_OF_THE_SYSTEM = frozenset(
    (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    )
)
"""What SQLite reports that says nothing about the contents of the file."""

_OF_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""What rows raise that are not as they were written: SQLite hands out whatever a damaged file says."""


class BusyError(StoreError):
    """Another process is writing."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A connection, and what it shows.

    Attributes:
        connection: To the file.
        shows: The state of the file that was opened as one that never changes; None where SQLite sees what others
            write.
    """

    connection: sqlite3.Connection
    shows: tuple[int, int, int] | None = None


class Database:
    """The file at ``path``; each thread has a connection of its own.

    A file that may not be written, on a read-only disk or of another user, can be read.

    Args:
        path: Of the file.
        remedy: What the user can do if it is damaged.
    """

    def __init__(self, path: Path, remedy: str = INDEX_REMEDY) -> None:
        self.path = path
        self._remedy = remedy
        self.is_read_only = not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
        self._connections: dict[threading.Thread, _Opened] = {}
        self._users: set[threading.Thread] = set()
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent snapshot of the file for as long as the block runs; within it, the same on this thread.

        Raises:
            StoreError: the file is damaged, which also shows in what the block makes of its rows; or this user may not
                write it, and another wrote it meanwhile.
        """
        thread = threading.current_thread()
        outer = self._connections.get(thread) if thread in self._users else None  # no block: it may have been closed
        if outer is not None and outer.connection.in_transaction:
            yield outer.connection
            return
        with self._using(), _translated(self.path, self._remedy), self.understanding():
            opened = self._connection()
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
    def writing(self, seconds: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
        """One transaction, committed when the block ends; waits up to ``seconds`` for other processes that write.

        Raises:
            BusyError: another process is still writing.
            StoreError: the file may not be written.
        """
        if self.is_read_only:
            raise StoreError(f"{str(self.path)!r} may not be written by this user; it can only be searched")
        with self._writing, self._using(), _translated(self.path, self._remedy):
            connection = self._connection().connection
            connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite itself ends it when the disk is full
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def understanding(self) -> Iterator[None]:
        """Takes what is raised in the block, by rows that are not as they were written, for damage to the file."""
        try:
            yield
        except UnicodeEncodeError:  # of what was given, not of what is there
            raise
        except _OF_DAMAGE as error:
            raise _damaged(self.path, error, self._remedy) from error

    def disk_bytes(self) -> int:
        """The size of the file and of its log."""
        return sum(_size(file) for file in self.path.parent.glob(f"{self.path.name}*"))

    def close(self) -> None:
        """Release the file, which cannot be used afterwards, once other threads have ended what they do with it now."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(self._is_unused_by_others)
            for opened in self._connections.values():
                opened.connection.close()
            self._connections.clear()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Keeps the connections open while the block runs: to close one in another thread's use ends the process."""
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

    def _is_unused_by_others(self) -> bool:
        me = threading.current_thread()
        return all(user is me or not user.is_alive() for user in self._users)

    def _connection(self) -> _Opened:
        """This thread's."""
        thread = threading.current_thread()
        with self._changed:
            for ended in [other for other in self._connections if not other.is_alive()]:
                self._connections.pop(ended).connection.close()
            opened = self._connections.get(thread)
        if opened is None or self._is_outdated(opened):
            if opened is not None:
                opened.connection.close()
            opened = _open_to_read(self.path) if self.is_read_only else _Opened(_connect(self.path))
            with self._changed:
                self._connections[thread] = opened
        return opened

    def _is_outdated(self, opened: _Opened) -> bool:
        return opened.shows is not None and (opened.shows != _state(self.path) or bool(_size(_log_of(self.path))))

    def _require_unchanged(self, opened: _Opened) -> None:
        """Raise StoreError if what was read of a file that was not to change may be of two moments."""
        if opened.shows is not None and opened.shows != _state(self.path):
            raise StoreError(f"{str(self.path)!r} was changed by another process while it was read; try again")


def is_laid_out(path: Path) -> bool:
    """Whether the file has any tables; one that cannot be read as a database counts, since it is not empty."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return _has_tables(connection)
    except (sqlite3.Error, UnicodeDecodeError):
        return True


def require_length(path: Path, option: str) -> None:
    """Raise StoreError for a path, given by ``option``, that is longer than SQLite opens."""
    length = len(os.fsencode(path.resolve()))
    if length > _LONGEST_PATH:
        raise StoreError(
            f"the path {str(path)!r} has {length:,} bytes; SQLite opens those of at most {_LONGEST_PATH}; choose a "
            f"shorter one for {option}"
        )


def lay_out(path: Path, make_tables: Callable[[sqlite3.Connection], None], remedy: str = INDEX_REMEDY) -> None:
    """Call ``make_tables`` within one transaction, unless the file has tables; it is made when missing.

    Raises:
        StoreError: the file cannot be written, or is no database.
    """
    with _translated(path, remedy), closing(_connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if not _has_tables(connection):
            make_tables(connection)
        connection.execute("COMMIT")


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Execute some statements within the transaction that is under way."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _open_to_read(path: Path) -> _Opened:
    """A connection that writes nothing, not even the files that readers and writers have in common.

    Without a log, which nobody may have left or be writing, SQLite would want to make these files; it does not where it
    is told that the file never changes, and then sees no change.
    """
    state = _state(path)
    is_logged = _size(_log_of(path)) > 0
    mode = "mode=ro" if is_logged else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    define_checksums(connection)
    return _Opened(connection, None if is_logged else state)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # with WAL: survives any crash of the process, never torn
        connection.execute("PRAGMA foreign_keys = ON")
        define_checksums(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers and the writer pass each other.

    Two that change a new file at once are refused without the wait that SQLite was asked for, so the wait is here.
    """
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


@contextmanager
def _translated(path: Path, remedy: str) -> Iterator[None]:
    """Say what SQLite's errors mean for the user."""
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{str(path)!r} is gone; index again, or restore it") from error
    except sqlite3.OperationalError as error:
        if _is_busy(error):
            raise BusyError(
                f"another process has been writing to {str(path)!r} for {BUSY_SECONDS:.0f} s; wait for it"
            ) from error
        if _primary_code(error) in _OF_THE_SYSTEM:
            raise StoreError(f"cannot use {str(path)!r}: {error}") from error
        raise _damaged(path, error, remedy) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # messages that quote a damaged file are no Unicode
        raise _damaged(path, error, remedy) from error


def _damaged(path: Path, error: Exception, remedy: str) -> StoreError:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if str(error) == UNSOUND:
        what = "a row is not as it was written"
    return StoreError(f"{str(path)!r} is damaged or not an index ({what}); {remedy}")


def _primary_code(error: sqlite3.Error) -> int:
    """Without what extended codes add; errors of the module itself have none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether it says that another connection holds the file, in any of the extended codes for that."""
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _log_of(path: Path) -> Path:
    """What was written and is not yet in the file itself."""
    return path.with_name(f"{path.name}-wal")


def _state(path: Path) -> tuple[int, int, int]:
    """What differs after a change of the file."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # the last connection of another process removed its log
        return 0
