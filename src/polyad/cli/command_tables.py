"""Tables of commands, with which other packages add commands to the command line.

A package names such a table, or several, by an entry point in the group ``polyad.commands``. ``polyad_server`` and
``polyad_bench`` add their commands in this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from polyad.plugin_tables import Table


class CommandRow(NamedTuple):
    """A command that is imported when it runs.

    Attributes:
        name: Name of the command.
        reference: The function: ``module:name``.
        summary: First sentence of the help.
    """

    name: str
    reference: str
    summary: str


@dataclass(frozen=True, slots=True)
class CommandTable:
    """Commands of the command line, or of one of its groups.

    Attributes:
        table: A line for each command: its name, the function as ``module:name``, and the first sentence of its help.
            A module without a dot is in the package ``package``.
        package: Package of the modules.
        group: Name of the group, such as ``bench``; empty for commands of ``polyad`` itself.
        help: Help of the group.
        after_interrupt: What each command leaves behind after Ctrl-C; "nothing was changed" if missing.
    """

    table: str
    package: str
    group: str = ""
    help: str = ""
    after_interrupt: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> Iterator[CommandRow]:
        """Yield the rows of the table."""
        for line in filter(None, map(str.strip, self.table.splitlines())):
            name, reference, summary = line.split(maxsplit=2)
            yield CommandRow(name, f"{self.package}.{reference}", summary)


def _are_tables(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, CommandTable) for item in value)


commands: Table[tuple[CommandTable, ...]] = Table("commands", "tuple of command tables", {}, _are_tables)
"""The tables of commands that packages add, by the name of the entry point."""


def load_added_tables() -> list[CommandTable]:
    """Return the tables of installed packages; one that cannot be imported is skipped with a warning."""
    return [table for _, added in commands.rows() for table in added]
