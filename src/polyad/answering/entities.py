"""The entities as the model reads them: one a line, with its type and what the documents say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyad.answering.quoting import on_one_line, shortened
from polyad.answering.room import Room
from polyad.model import Entity
from polyad.text.quoting import in_one_line

_LONGEST_DESCRIPTION = 500
"""Characters. An entity named all over a corpus has hundreds of descriptions, and one must not crowd out the rest."""

_UNTOLD = frozenset({"", "name", "acronym", "date", "quantity", "phrase"})
"""Types that say nothing of an entity: what rules make out of how a name is written. A reader sees that too."""


def lay_out_entities(entities: Iterable[Entity], room: Room) -> tuple[str, tuple[Entity, ...]]:
    """List as many entities as fit; those of which no more is known than how they are written only repeat a name.

    Args:
        entities: Best first; one that comes again is listed once.
        room: What the list may fill.

    Returns:
        The text, ending in a blank line unless empty, and the entities in it.
    """
    distinct: dict[str, Entity] = {}
    for entity in entities:
        if entity.name.strip() and (entity.type.strip() not in _UNTOLD or entity.description.strip()):
            distinct.setdefault(entity.key, entity)
    listed = list(distinct.values())
    lines = [_line(entity) for entity in listed]
    count = room.most(len(lines), lambda count: _block(lines[:count]))
    return _block(lines[:count]), tuple(listed[:count])


def _line(entity: Entity) -> str:
    type_ = f" ({entity.type.strip()})" if entity.type.strip() else ""
    description = shortened(in_one_line(entity.description), _LONGEST_DESCRIPTION)
    return on_one_line(f"{entity.name}{type_}" + (f": {description}" if description else ""))


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["<entities>", *lines, "</entities>\n\n"]) if lines else ""
