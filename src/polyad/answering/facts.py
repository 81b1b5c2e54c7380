"""The hyperedges as the model reads them: one fact a line, under the number of the passage it was taken from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from polyad.answering.numbering import LARGEST_NUMBER, Numbering
from polyad.answering.quoting import on_one_line
from polyad.answering.room import Room
from polyad.model import Hyperedge, HyperedgeKind, ScoredHyperedge
from polyad.text.fact_text import fact_text, roles_in_words


@dataclass(frozen=True, slots=True)
class NumberedFact:
    """A hyperedge under the number of its passage."""

    number: int
    scored: ScoredHyperedge

    @property
    def quoted(self) -> str:
        """The fact and what it joins, as they are shown: of one given as data its relation, and every role."""
        edge = self.scored.hyperedge
        if edge.arguments:
            return on_one_line(edge.text if _says_all(edge) else f"{edge.text} ({_given(edge)})")
        members = "; ".join(member.name for member in self.scored.members)
        return on_one_line(self.scored.hyperedge.text + (f" (members: {members})" if members else ""))


def lay_out_facts(
    hyperedges: Sequence[ScoredHyperedge], shown_in_full: Collection[str], numbering: Numbering, room: Room
) -> tuple[str, tuple[NumberedFact, ...]]:
    """List as many hyperedges as fit.

    A semantic unit is a piece of its passage word for word, so it is listed only when that passage is not quoted, and
    so is a tuple, unless the text that it was given with does not say its relation and roles.

    Args:
        hyperedges: Best first.
        shown_in_full: Ids of the passages that are quoted.
        numbering: Numbers the passages that the facts come from.
        room: What the list may fill.

    Returns:
        The text, ending in a blank line unless empty, and the facts in it.
    """
    facts = list(_numbered(hyperedges, shown_in_full, numbering))
    lines = [f"[{fact.number}] {fact.quoted}" for fact in facts]
    count = room.most(len(lines), lambda count: _block(lines[:count]))
    return _block(lines[:count]), tuple(facts[:count])


def _numbered(
    hyperedges: Sequence[ScoredHyperedge], shown_in_full: Collection[str], numbering: Numbering
) -> Iterator[NumberedFact]:
    seen = set()
    for scored in hyperedges:
        edge = scored.hyperedge
        is_of_passage = edge.kind is HyperedgeKind.SEMANTIC_UNIT or _says_all(edge)
        repeats = is_of_passage and edge.passage_id in shown_in_full
        if repeats or edge.id in seen or not edge.text.strip():
            continue
        seen.add(edge.id)
        number = numbering.number(edge.passage_id)
        if number > LARGEST_NUMBER:  # it could not be cited
            return
        yield NumberedFact(number, scored)


def _given(edge: Hyperedge) -> str:
    return fact_text(edge.relation, edge.arguments) if edge.relation else roles_in_words(edge.arguments)


def _says_all(edge: Hyperedge) -> bool:
    """Whether the text of a tuple, which is its passage's, already is its relation with all its roles."""
    return edge.kind is HyperedgeKind.TUPLE and (not edge.arguments or _given(edge) in edge.text)


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["<facts>", *lines, "</facts>\n\n"]) if lines else ""
