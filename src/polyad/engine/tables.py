"""Tables of names: the rows that come with polyad, and those that other packages add.

A package adds a row by an entry point in the group of the table, ``polyad.retrievers`` and so on, under the name that
users will give. It is imported when its row is asked for. Where that fails, the row is left out with one warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Generic, TypeVar, cast

from polyad.errors import ConfigurationError

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """A row that another package adds.

    Attributes:
        table: Such as ``retrievers``.
        name: Of the row.
        package: That adds it, and its ``version``.
        reference: To the row: ``module:attribute``.
    """

    table: str
    name: str
    package: str
    version: str
    reference: str


@cache
def _plugins(table: str) -> tuple[Plugin, ...]:
    """What other packages add to a table, by name and package; imports none of them."""
    found = (_plugin(table, point) for point in entry_points(group=f"polyad.{table}"))
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.package)))


def _plugin(table: str, point: EntryPoint) -> Plugin:
    package, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
    return Plugin(table, point.name, package, version, point.value)


class Table(Generic[T]):
    """What a name stands for.

    Args:
        name: Of the table, and of its group of entry points.
        what: A row is, in words for messages.
        rows: Those that come with polyad: a row, or a reference to it, which is imported when it is asked for.
        fits: Tells a row from what is none, for those of other packages.
        forms: What names of polyad's own rows look like, where something may follow them.
    """

    def __init__(
        self,
        name: str,
        what: str,
        rows: Mapping[str, T | str],
        fits: Callable[[object], bool],
        forms: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self._what = what
        self._own = rows
        self._fits = fits
        self._forms = forms or tuple(rows)

    @property
    def own(self) -> tuple[str, ...]:
        """The names that come with polyad."""
        return tuple(self._own)

    @property
    def added(self) -> dict[str, Plugin]:
        """The rows of other packages by name; none that has the name of one of polyad's own."""
        found: dict[str, Plugin] = {}
        for plugin in _plugins(self.name):
            if plugin.name not in self._own:
                found.setdefault(plugin.name, plugin)
        return found

    def __iter__(self) -> Iterator[str]:
        """All names: polyad's own first."""
        return iter((*self._own, *self.added))

    def __contains__(self, name: str) -> bool:
        return name in self._own or name in self.added

    def __getitem__(self, name: str) -> T:
        """The row of that name.

        Raises:
            ConfigurationError: there is none, or it is another package's and broken.
        """
        if name in self._own:
            row = self._own[name]
            return cast(T, resolve_name(row) if isinstance(row, str) else row)
        plugin = self.added.get(name)
        if plugin is None:
            raise ConfigurationError(
                f"no {self._what} {name!r}; expected one of {', '.join((*self._forms, *self.added))}"
            )
        found = _loaded(plugin, self._fits)
        if isinstance(found, _Broken):
            raise ConfigurationError(f"the {self._what} {found.why}; mend or remove that package")
        return cast(T, found)

    def rows(self) -> Iterator[tuple[str, T]]:
        """All rows by their names, but for broken ones."""
        return ((name, self[name]) for name in self if name in self._own or self.is_sound(self.added[name]))

    def is_sound(self, plugin: Plugin) -> bool:
        """Whether the row of a plug-in can be had; warns, once, where it cannot."""
        return not isinstance(_loaded(plugin, self._fits), _Broken)


@dataclass(frozen=True, slots=True)
class _Broken:
    """In place of a row that cannot be had."""

    why: str


@cache
def _loaded(plugin: Plugin, fits: Callable[[object], bool]) -> object:
    """The row of a plug-in; where it is broken, that is said, once."""
    try:
        row = resolve_name(plugin.reference)
        if fits(row):
            return row
        reason = f"{plugin.reference} is {row!r}, which no row of polyad.{plugin.table} can be"
    except Exception as error:  # whatever another package's code raises, polyad goes on without it
        reason = f"{type(error).__name__}: {error}"
    why = f"{plugin.name!r} of {plugin.package} {plugin.version} cannot be used: {reason}"
    _LOG.warning("a plug-in is left out: %s", why)
    return _Broken(why)
