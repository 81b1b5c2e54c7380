"""Tables of components by name: rows of polyad and rows that other packages add as plug-ins.

A package adds a row by an entry point in the group of the table (``polyad.retrievers`` and so on). The entry point's
name is the name that users write. It is imported when its row is requested. A row that cannot be imported is skipped
with one warning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Generic, TypeVar, cast

from polyad.errors import ConfigurationError

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

_SLOW_SECONDS = 5.0
"""Seconds after which a plug-in that is still being imported is named in a warning."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A component that another installed package registers as a Python entry point.

    Attributes:
        table: Name of the table, such as ``retrievers``.
        name: Name of the row.
        package: Name of the package.
        version: Version of the package.
        reference: Location of the row: ``module:attribute``.
    """

    table: str
    name: str
    package: str
    version: str
    reference: str


@cache
def _list_plugins(table: str) -> tuple[Plugin, ...]:
    """Return the plug-ins of a table, sorted by name and package, without importing them."""
    plugins = (_build_plugin(table, point) for point in entry_points(group=f"polyad.{table}"))
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.package)))


def _build_plugin(table: str, point: EntryPoint) -> Plugin:
    package, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
    return Plugin(table, point.name, package, version, point.value)


class Table(Generic[T]):
    """A table of the components of one type by name, such as all retrievers, including plug-ins.

    Args:
        name: Name of the table and of its group of entry points.
        label: What a row is, for messages ("retriever").
        rows: The rows of polyad: a row, or a reference that is imported when it is requested.
        is_valid: Returns whether an object is a row; checked for rows of other packages.
        forms: Names of polyad's rows with their arguments ("endpoint:MODEL"), for messages.
        normalize_name: Converts the name of an entry point to the name of a row.
    """

    def __init__(
        self,
        name: str,
        label: str,
        rows: Mapping[str, T | str],
        is_valid: Callable[[object], bool],
        forms: tuple[str, ...] = (),
        normalize_name: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self._label = label
        self._builtin_rows = rows
        self._is_valid = is_valid
        self._forms = forms or tuple(rows)
        self._normalize_name = normalize_name

    @property
    def builtin_names(self) -> tuple[str, ...]:
        """The names of the table's components that polyad itself provides."""
        return tuple(self._builtin_rows)

    @property
    def plugins(self) -> dict[str, Plugin]:
        """The plug-ins of the table by name, without the ones that are ignored because of a name conflict."""
        plugins: dict[str, Plugin] = {}
        for plugin in self._list_renamed():
            if plugin.name not in self._builtin_rows:
                plugins.setdefault(plugin.name, plugin)
        return plugins

    @property
    def shadowed(self) -> list[Plugin]:
        """The plug-ins that are ignored because another component in the table has the same name."""
        usable = self.plugins.values()
        return [plugin for plugin in self._list_renamed() if plugin not in usable]

    def _list_renamed(self) -> list[Plugin]:
        return [replace(plugin, name=self._normalize_name(plugin.name)) for plugin in _list_plugins(self.name)]

    def __iter__(self) -> Iterator[str]:
        """Iterate over all names, built-in names first."""
        return iter((*self._builtin_rows, *self.plugins))

    def __contains__(self, name: str) -> bool:
        return name in self._builtin_rows or name in self.plugins

    def __getitem__(self, name: str) -> T:
        """Return the row of a name.

        Raises:
            ConfigurationError: The name is unknown, or its plug-in cannot be imported.
        """
        if name in self._builtin_rows:
            row = self._builtin_rows[name]
            return cast(T, resolve_name(row) if isinstance(row, str) else row)
        plugin = self.plugins.get(name)
        if plugin is None:
            raise ConfigurationError(
                f"no {self._label} {name!r}; expected one of {', '.join((*self._forms, *self.plugins))}"
            )
        row_or_error = _load_plugin(plugin, self._is_valid)
        if isinstance(row_or_error, _PluginFailure):
            raise ConfigurationError(f"the {self._label} {row_or_error.reason}; repair or remove that package")
        return cast(T, row_or_error)

    def rows(self) -> Iterator[tuple[str, T]]:
        """Yield name and component of each row of the table, without plug-ins that cannot be imported."""
        return ((name, self[name]) for name in self if name in self._builtin_rows or self.is_usable(self.plugins[name]))

    def is_usable(self, plugin: Plugin) -> bool:
        """Return whether a plug-in can be imported; log one warning if not."""
        return not isinstance(_load_plugin(plugin, self._is_valid), _PluginFailure)


@dataclass(frozen=True, slots=True)
class _PluginFailure:
    """The reason why a plug-in cannot be used: it cannot be imported, or it has the wrong type."""

    reason: str


@cache
def _load_plugin(plugin: Plugin, is_valid: Callable[[object], bool]) -> object:
    """Import a plug-in and return its component; return a failure if ``is_valid`` rejects the component.

    A failure, or an import that takes long, is logged once.
    """
    slow = "importing the plug-in %r of %s takes more than %g seconds; if it does not end, remove that package"
    timer = threading.Timer(_SLOW_SECONDS, _LOG.warning, (slow, plugin.name, plugin.package, _SLOW_SECONDS))
    timer.daemon = True
    timer.start()
    try:
        _LOG.info("importing the plug-in %r of %s", plugin.name, plugin.package)  # the last line if it ends polyad
        row = resolve_name(plugin.reference)
        if is_valid(row):
            return row
        reason = (
            f"{plugin.reference} is {row!r}, which is not a valid row of polyad.{plugin.table}; expected an object "
            f"as docs/how-to/plug-in.md shows it for polyad.{plugin.table}"
        )
    except (Exception, SystemExit) as error:  # a broken plug-in must not stop polyad
        reason = f"{type(error).__name__}: {error}"
    finally:
        timer.cancel()
    message = f"{plugin.name!r} of {plugin.package} {plugin.version} cannot be used: {reason}"
    _LOG.warning("skipping a plug-in: %s", message)
    return _PluginFailure(message)
