"""How each sort of evidence is shown in a prompt: hyperedges, entities and passages, as many as fit.

A hyperedge is shown as a fact, which is what the prompt calls it.

Text that could pass itself off as the prompt's own marks is defused. Those marks are the tags around each sort of
evidence, the tags a reply may be asked for, and numbers in square brackets, by which passages are cited.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from polyad.answering.citations import CITATION_LABEL, Numbering
from polyad.model import Entity, Hyperedge, HyperedgeKind, Passage, ScoredHyperedge, ScoredPassage
from polyad.text.fact_text import format_arguments, format_fact
from polyad.text.prompts import INVISIBLE, escape_tags, join_lines
from polyad.text.words import shorten_at_word

CountTokens = Callable[[str], int]

_OUR_TAGS = ("passage", "facts", "entities", "descriptions", "answer", "think", "thinking")
_GAP = rf"[\s{INVISIBLE}]*"
_BRACKETED_NUMBER = re.compile(
    rf"[\[\u3010\uff3b]({_GAP}{CITATION_LABEL}\d[\d\s,;\u2013{INVISIBLE}-]*(?:\u2020[^\]\u3011\uff3d\n]{{0,40}})?)"
    r"[\]\u3011\uff3d]",
    re.IGNORECASE,
)

_LONGEST_DESCRIPTION = 500
"""Characters. An entity named all over a corpus has hundreds of descriptions, and one must not crowd out the rest."""

_UNTOLD = frozenset({"", "name", "acronym", "date", "quantity", "phrase"})
"""Types that say nothing of an entity: what rules make out of how a name is written. A reader sees that too."""

_SHORTEST_CUT = 40
"""Characters of a passage below which showing its beginning is of no use."""

_SENTENCE_END = re.compile(r"[.!?](?=[\"')\]]*\s)|[\u3002\uff01\uff1f]|\n")
_WORD_END = re.compile(r"\S(?=\s)|[\u2e80-\U0003ffff]")  # scripts written without spaces may be cut anywhere


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """A token limit for one sort of evidence in a prompt.

    Attributes:
        before: What it is laid out behind and is counted with; empty for what is counted alone.
        limit: Longest text, in tokens.
        count_tokens: Length of a text in tokens. A text is never shorter than its beginning.
    """

    before: str
    limit: int
    count_tokens: CountTokens

    def fits(self, block: str) -> bool:
        """Return whether ``block`` fits into the budget."""
        return self.count_tokens((self.before + block).rstrip()) <= self.limit

    def most(self, items: int, lay_out: Callable[[int], str]) -> int:
        """Return how many of the first ``items`` fit; ``lay_out(n)`` returns the text of the first ``n``."""
        return bisect_left(range(1, items + 1), True, key=lambda count: not self.fits(lay_out(count)))


@dataclass(frozen=True, slots=True)
class NumberedHyperedge:
    """A hyperedge with the citation number of its passage."""

    number: int
    scored: ScoredHyperedge

    @property
    def quoted(self) -> str:
        """The hyperedge and what it joins, as they are shown: of one given as data its relation, and every role."""
        edge = self.scored.hyperedge
        if edge.arguments:
            return on_one_line(edge.text if _states_whole_fact(edge) else f"{edge.text} ({_format_statement(edge)})")
        members = "; ".join(member.name for member in self.scored.members)
        return on_one_line(self.scored.hyperedge.text + (f" (members: {members})" if members else ""))


def lay_out_hyperedges(
    hyperedges: Sequence[ScoredHyperedge], shown_in_full: Collection[str], numbering: Numbering, budget: TokenBudget
) -> tuple[str, tuple[NumberedHyperedge, ...]]:
    """Format as many hyperedges as fit into the token budget, each with the citation number of its passage.

    A semantic unit is a piece of its passage word for word, so it is listed only when that passage is not quoted, and
    so is a tuple, unless the text that it was given with does not say its relation and roles.

    Args:
        hyperedges: Best first.
        shown_in_full: Ids of the passages that are quoted.
        numbering: Numbers the passages that the hyperedges come from.
        budget: What the list may fill.

    Returns:
        The text, ending in a blank line unless empty, and the hyperedges in it.
    """
    numbered = list(_numbered(hyperedges, shown_in_full, numbering))
    lines = [f"[{one.number}] {one.quoted}" for one in numbered]
    count = budget.most(len(lines), lambda count: _hyperedge_block(lines[:count]))
    return _hyperedge_block(lines[:count]), tuple(numbered[:count])


def _numbered(
    hyperedges: Sequence[ScoredHyperedge], shown_in_full: Collection[str], numbering: Numbering
) -> Iterator[NumberedHyperedge]:
    seen = set()
    for scored in hyperedges:
        edge = scored.hyperedge
        is_of_passage = edge.kind is HyperedgeKind.SEMANTIC_UNIT or _states_whole_fact(edge)
        repeats = is_of_passage and edge.passage_id in shown_in_full
        if repeats or edge.id in seen or not edge.text.strip():
            continue
        seen.add(edge.id)
        number = numbering.number(edge.passage_id)
        if number > numbering.limit:  # it could not be cited
            return
        yield NumberedHyperedge(number, scored)


def _format_statement(edge: Hyperedge) -> str:
    return format_fact(edge.relation, edge.arguments) if edge.relation else format_arguments(edge.arguments)


def _states_whole_fact(edge: Hyperedge) -> bool:
    """Whether the text of a tuple, which is its passage's, already is its relation with all its roles."""
    return edge.kind is HyperedgeKind.TUPLE and (not edge.arguments or _format_statement(edge) in edge.text)


def _hyperedge_block(lines: Sequence[str]) -> str:
    return "\n".join(["<facts>", *lines, "</facts>\n\n"]) if lines else ""


def lay_out_entities(entities: Iterable[Entity], budget: TokenBudget) -> tuple[str, tuple[Entity, ...]]:
    """Format as many entities as fit into the budget, omitting entities without a telling type or description.

    Args:
        entities: Best first; one that comes again is listed once.
        budget: What the list may fill.

    Returns:
        The text, ending in a blank line unless empty, and the entities in it.
    """
    distinct: dict[str, Entity] = {}
    for entity in entities:
        if entity.name.strip() and (entity.type.strip() not in _UNTOLD or entity.description.strip()):
            distinct.setdefault(entity.key, entity)
    listed = list(distinct.values())
    lines = [_entity_line(entity) for entity in listed]
    count = budget.most(len(lines), lambda count: _entity_block(lines[:count]))
    return _entity_block(lines[:count]), tuple(listed[:count])


def _entity_line(entity: Entity) -> str:
    type_ = f" ({entity.type.strip()})" if entity.type.strip() else ""
    description = shorten_at_word(join_lines(entity.description), _LONGEST_DESCRIPTION)
    return on_one_line(f"{entity.name}{type_}" + (f": {description}" if description else ""))


def _entity_block(lines: Sequence[str]) -> str:
    return "\n".join(["<entities>", *lines, "</entities>\n\n"]) if lines else ""


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage under the number it is cited by; ``quoted`` is what is shown, only its beginning when ``cut``."""

    number: int
    passage: Passage
    quoted: str
    cut: bool = False


def lay_out_passages(passages: Sequence[ScoredPassage], budget: TokenBudget) -> tuple[str, tuple[NumberedPassage, ...]]:
    """Format as many passages as fit into the budget, numbered from 1.

    The first one that does not fit is reduced to its excerpt and is the last. An excerpt that does not fit either is
    cut at the end of a sentence or word, or left out if nothing useful of it fits.

    Args:
        passages: Best first.
        budget: What they may fill.

    Returns:
        The text, ending in a blank line unless empty, and the passages in it.
    """
    text = ""
    numbered: list[NumberedPassage] = []
    for number, scored in enumerate(passages, start=1):
        quoted = escape_marks(scored.passage.text).strip()
        cut = not budget.fits(text + _passage_block(number, scored, quoted))
        if cut:
            quoted = escape_marks(scored.excerpt.text) if scored.excerpt else quoted
            if not budget.fits(text + _passage_block(number, scored, quoted)):
                quoted = _cut_passage(text, number, scored, quoted, budget)
        if quoted or not cut:
            text += _passage_block(number, scored, quoted)
            numbered.append(NumberedPassage(number, scored.passage, quoted, cut))
        if cut:
            break
    return text, tuple(numbered)


def _passage_block(number: int, passage: ScoredPassage, quoted: str) -> str:
    marks = "".join(f' {name}="{value}"' for name, value in _format_attributes(passage).items() if value)
    return f'[{number}]\n<passage number="{number}"{marks}>\n{quoted}\n</passage>\n\n'


def _format_attributes(scored: ScoredPassage) -> dict[str, str]:
    """Return the attributes of a passage in the prompt: title, heading, page, slide, sheet and retracted facts."""
    passage, location = scored.passage, scored.location
    title = passage.title or scored.origin.title
    return {
        "title": _attribute(title),
        "heading": "" if passage.heading in title else _attribute(passage.heading),
        "page": "" if location.page is None else str(location.page),
        "slide": "" if location.slide is None else str(location.slide),
        "sheet": _attribute(location.sheet),
        "retracted": "; ".join(_attribute(f"{fact.text} ({fact.reason})") for fact in scored.retracted),
    }


def _attribute(text: str) -> str:
    return on_one_line(text).replace('"', "'")


def _cut_passage(before: str, number: int, passage: ScoredPassage, quoted: str, budget: TokenBudget) -> str:
    """Return the beginning of a passage that fits behind the others; empty if it would be too short."""

    def cut(end: int) -> str:
        return quoted[:end].rstrip() + " …"

    for boundary in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in boundary.finditer(quoted) if match.end() >= _SHORTEST_CUT]
        count = _most_ends(ends, lambda end: before + _passage_block(number, passage, cut(end)), budget)
        if count:
            return cut(ends[count - 1])
    return ""


def _most_ends(ends: Sequence[int], lay_out: Callable[[int], str], budget: TokenBudget) -> int:
    return budget.most(len(ends), lambda count: lay_out(ends[count - 1]))


def escape_marks(text: str) -> str:
    """Escape text that imitates the tags or citations of the prompt, or the roles of a conversation.

    >>> escape_marks("</passage> [3] said so")
    '&lt;/passage> (3) said so'
    """
    return _BRACKETED_NUMBER.sub(r"(\1)", escape_tags(text, _OUR_TAGS))


def on_one_line(text: str) -> str:
    """Return ``text`` on one line, with imitated tags and citations escaped."""
    return " ".join(escape_marks(text).split())
