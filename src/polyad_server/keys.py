"""API keys of workspaces. A key is stored with the SHA-256 of its secret only, in the store of the workspace.

A key names the index that issued it, and a file beside an index in a folder lists the keys that were added and removed.
So a key is invalid in a copy of the index, and a backup that is restored brings no removed key back.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from urllib.parse import urlsplit

from polyad.engine.loaders import get_place_name
from polyad.errors import ConfigurationError, NotFoundError, StoreError
from polyad.protocols.store import Manifest, ValueStore
from polyad.schemas.objects import JsonObject
from polyad.stores.sqlite import SqliteStore

KEYS = "server-keys"
"""Namespace of keys, by id."""

KEY_USES = "server-key-uses"
"""Namespace of the times of the last use of keys, by id of the key."""

LEDGER = "keys.log"
"""File in the folder of an index, and in ``.keys`` beside that folder: a line ``+id`` or ``-id`` for each change."""

ROOT_KEYS = ".keys"
"""Name of the folder of the keys for all indexes in a folder."""

PREFIX = "pk"
"""Beginning of the text of a key: ``pk_<id>_<secret>``."""

_MIN_USE_INTERVAL = timedelta(minutes=1)
"""Time between two writes of the last use of a key."""


class Scope(IntEnum):
    """The permission of an API key: read, write (includes read), or admin (includes both)."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as the store contains it: id, name, permission, times, and a hash of the secret.

    Attributes:
        id: Random id, part of the text of the key.
        name: Name by which people recognise the key.
        digest: SHA-256 of the secret, in hexadecimal.
        scope: Permission of the key: ``read``, ``write`` or ``admin``.
        created: Time of creation, in UTC.
        last_used: Time of the last use, within a minute; empty if it was never used.
        expires: Time from which the key is invalid; empty for never.
        issuer: Name of the index that issued the key; the key is invalid in any other.
    """

    id: str
    name: str
    digest: str
    scope: str
    created: str
    last_used: str = ""
    expires: str = ""
    issuer: str = ""

    def is_valid(self, secret: str, now: datetime) -> bool:
        """Return whether a secret matches the API key and the key has not expired."""
        return hmac.compare_digest(self.digest, _digest(secret)) and not self.has_expired(now)

    def has_expired(self, now: datetime) -> bool:
        """Return whether the API key is no longer valid at a time."""
        return bool(self.expires) and datetime.fromisoformat(self.expires) <= now


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


NO_KEY = Key("", "", _digest(""), "read", "", expires=datetime.min.replace(tzinfo=UTC).isoformat())
"""A key that is never valid. An unknown id is checked against this key, so that the check takes as long as others."""


class KeySchema(JsonObject):
    """An API key of the server without its secret; ``last_used`` and ``expires`` are empty for never."""

    id: str
    name: str
    scope: str
    created: str
    last_used: str
    expires: str


def add_key(store: ValueStore, name: str, scope: str, now: datetime, expires: datetime | None = None) -> str:
    """Create an API key, store a hash of its secret, and return the text of the key, which is not stored.

    Raises:
        ConfigurationError: The name is blank, another key has it, or there is no such scope.
    """
    if not name.strip():
        raise ConfigurationError("the name of the key is blank; expected a name by which people recognise it")
    if scope.upper() not in Scope.__members__:
        raise ConfigurationError(f"the scope is {scope!r}; expected one of read, write, admin")
    if any(key.name == name for key in list_keys(store)):
        raise ConfigurationError(f"there is a key {name!r} already; remove it first, or choose another name")
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(24).replace("_", "-")
    recorded = now.isoformat(timespec="seconds")
    expiry = expires.isoformat(timespec="seconds") if expires else ""
    key = Key(id, name, _digest(secret), scope, recorded, expires=expiry, issuer=_get_issuer(store))
    store.put_values(KEYS, {id: json.dumps(asdict(key)).encode()})
    _record_change(store, f"+{id}")
    return f"{PREFIX}_{id}_{secret}"


def list_keys(store: ValueStore) -> list[Key]:
    """Return the API keys that an index issued, sorted by name; keys that were copied into the index are left out."""
    uses, issuer, ledgers = store.get_values(KEY_USES), _get_issuer(store), _list_ledgers(store)
    stored = [Key(**json.loads(value)) for value in store.get_values(KEYS).values()]
    keys = [key for key in stored if key.issuer == issuer]
    if ledgers:
        changes = _read_changes(ledgers)
        keys = [key for key in keys if f"+{key.id}" in changes and f"-{key.id}" not in changes]
    used = [replace(key, last_used=uses.get(key.id, key.last_used.encode()).decode()) for key in keys]
    return sorted(used, key=lambda key: key.name)


def has_any_key(store: ValueStore) -> bool:
    """Return whether an index holds any API key, valid or not, so that no copy of it is open to everybody."""
    return bool(store.get_values(KEYS))


def remove_key(store: ValueStore, name: str) -> Key:
    """Remove the API key with a name or id; later requests with this key are rejected.

    Raises:
        NotFoundError: There is no such key.
    """
    for key in list_keys(store):
        if name in (key.name, key.id):
            _record_change(store, f"-{key.id}")
            store.put_values(KEYS, {key.id: None})
            store.put_values(KEY_USES, {key.id: None})
            return key
    raise NotFoundError(f"there is no key {name!r}; `polyad key list` prints the keys")


def record_use(store: ValueStore, key: Key, now: datetime) -> None:
    """Store the time of the last use of a key, at most once a minute; skipped if another writer is busy."""
    if key.last_used and now - datetime.fromisoformat(key.last_used) < _MIN_USE_INTERVAL:
        return
    # apart from the key: another process may have removed the key since it was read, and must not get it back
    store.put_values(KEY_USES, {key.id: now.isoformat(timespec="seconds").encode()}, is_optional=True)


def _get_manifest(store: ValueStore) -> Manifest:
    manifest: Manifest = getattr(store, "manifest")  # noqa: B009  (keys are in indexes, which have one)
    return manifest


def _get_issuer(store: ValueStore) -> str:
    """Return the name of an index as an issuer of keys: of its folder, or of its database and workspace."""
    manifest = _get_manifest(store)
    if manifest.place:
        return urlsplit(manifest.place)._replace(netloc="").geturl()
    return get_place_name(manifest.directory or Path())


def _list_ledgers(store: ValueStore) -> set[Path]:
    """Return the files of an index that list the changes of keys; none for an index in a database server.

    The file in ``.keys`` remains if the folder of a workspace is replaced by an older copy.
    """
    manifest = _get_manifest(store)
    if manifest.place or manifest.directory is None:
        return set()
    folders = (manifest.directory, manifest.directory.parent / ROOT_KEYS)
    return {folder / LEDGER for folder in folders if folder.is_dir()}


def _record_change(store: ValueStore, change: str) -> None:
    """Append a change of keys, ``+id`` or ``-id``, to the ledgers of an index."""
    for path in _list_ledgers(store):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{change}\n")


def _read_changes(ledgers: Iterable[Path]) -> set[str]:
    """Return the changes of keys in ledgers, each ``+id`` or ``-id``."""
    try:
        texts = [path.read_text("utf-8", "replace") for path in ledgers if path.exists()]
    except OSError as error:
        raise StoreError(f"cannot read {str(error.filename)!r}: {error.strerror}") from error
    return {change for text in texts for change in text.split()}


@contextmanager
def open_root_keys(root: Path) -> Iterator[ValueStore]:
    """Yield the API key store for all indexes in a folder, in the hidden sub-folder ``.keys``."""
    store = SqliteStore.open(root / ROOT_KEYS, Manifest("none", 1, "none"))
    try:
        yield store
    finally:
        store.close()


def split_key(text: str) -> tuple[str, str]:
    """Return id and secret from the text of an API key; both are empty if the text is no key."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    return (id, secret) if prefix == PREFIX and id and secret else ("", "")
