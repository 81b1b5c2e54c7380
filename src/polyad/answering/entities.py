"""The entities as the model reads them: one a line, with its type and what the documents say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyad.answering.quoting import on_one_line, shortened
from polyad.answering.room import Room
from polyad.model import Entity

_LONGEST_DESCRIPTION = 500
"""Characters. An entity named all over a corpus has hundreds of descriptions, and one must not crowd out the rest."""


def lay_out_entities(entities: Iterable[Entity], room: Room) -> tuple[str, tuple[Entity, ...]]:
    """List as many entities as fit; those with neither type nor description would only repeat a name.

    Args:
        entities: Best first; one that comes again is listed once.
        room: What the list may fill.

    Returns:
        The text, ending in a blank line unless empty, and the entities in it.
    """
    distinct: dict[str, Entity] = {}
    for entity in entities:
        if entity.name.strip() and (entity.type.strip() or entity.description.strip()):
            distinct.setdefault(entity.key, entity)
    listed = list(distinct.values())
    lines = [_line(entity) for entity in listed]
    count = room.most(len(lines), lambda count: _block(lines[:count]))
    return _block(lines[:count]), tuple(listed[:count])


def _line(entity: Entity) -> str:
    type_ = f" ({entity.type.strip()})" if entity.type.strip() else ""
    description = shortened(" ".join(entity.description.split()), _LONGEST_DESCRIPTION)
    return on_one_line(f"{entity.name}{type_}" + (f": {description}" if description else ""))


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["<entities>", *lines, "</entities>\n\n"]) if lines else ""
