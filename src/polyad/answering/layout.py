"""Formats hyperedges, entities and passages for a prompt, as many as fit into its token budget.

The prompt calls a hyperedge a fact.

Text that imitates the marks of the prompt is escaped. The marks are the tags around each kind of evidence, the tags of
a reply, and numbers in square brackets, which cite passages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from polyad.answering.citations import CITATION_LABEL, Numbering
from polyad.model import Entity, Hyperedge, HyperedgeKind, Passage, RetractedFact, ScoredHyperedge, ScoredPassage
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
"""Characters of the description of one entity. An entity in many documents has hundreds of descriptions."""

_UNINFORMATIVE_TYPES = frozenset({"", "name", "acronym", "date", "quantity", "phrase"})
"""Types that rules derive from the spelling of a name, which the model sees too."""

_SHORTEST_CUT = 40
"""Least characters of the beginning of a passage that does not fit as a whole."""

_SENTENCE_END = re.compile(r"[.!?](?=[\"')\]]*\s)|[\u3002\uff01\uff1f]|\n")
_WORD_END = re.compile(r"\S(?=\s)|[\u2e80-\U0003ffff]")  # scripts written without spaces may be cut anywhere


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The token limit of one part of a prompt: hyperedges, entities or passages.

    Attributes:
        before: Preceding text that counts towards the limit; empty if the kind of evidence has a limit of its own.
        limit: Tokens of the longest text.
        count_tokens: Returns the length of a text in tokens. A longer text never has fewer tokens than its beginning.
    """

    before: str
    limit: int
    count_tokens: CountTokens

    def fits(self, block: str) -> bool:
        """Return whether the text ``before`` and the text ``block`` together are within the token limit."""
        return self.count_tokens((self.before + block).rstrip()) <= self.limit

    def count_fitting(self, item_count: int, format_items: Callable[[int], str]) -> int:
        """Return how many of ``item_count`` items fit into the limit; ``format_items(n)`` formats the first ``n``."""
        return bisect_left(range(1, item_count + 1), True, key=lambda count: not self.fits(format_items(count)))


@dataclass(frozen=True, slots=True)
class NumberedHyperedge:
    """A hyperedge in a prompt, with the citation number of the passage that contains the hyperedge."""

    number: int
    scored: ScoredHyperedge

    @property
    def quoted(self) -> str:
        """The hyperedge's text in the prompt, with its entities or, for a fact of the user's data, its roles.

        Entities that users withdrew follow, with the reasons: the text may still name them.
        """
        edge = self.scored.hyperedge
        if edge.arguments:
            statement = "" if _states_whole_fact(edge) else f" ({_format_statement(edge)})"
        else:
            members = "; ".join(member.name for member in self.scored.members)
            statement = f" (members: {members})" if members else ""
        withdrawn = "; ".join(f"{', '.join(fact.entities)} ({fact.reason})" for fact in self.scored.retracted)
        return format_line(edge.text + statement + (f" (retracted: {withdrawn})" if withdrawn else ""))


def lay_out_hyperedges(
    hyperedges: Sequence[ScoredHyperedge],
    quoted_passage_ids: Collection[str],
    numbering: Numbering,
    budget: TokenBudget,
) -> tuple[str, tuple[NumberedHyperedge, ...]]:
    """Return the hyperedges that fit into the token budget, as prompt text and as a tuple.

    A semantic unit repeats a part of its passage, so it is left out if that passage is quoted. So is a tuple whose
    passage states its relation and roles.

    Args:
        hyperedges: The hyperedges, best first.
        quoted_passage_ids: Ids of the passages that are quoted.
        numbering: Numbers the passages of the hyperedges.
        budget: Token limit of the list.

    Returns:
        The text, which ends in a blank line unless it is empty, and the hyperedges in it.
    """
    numbered = list(_number_hyperedges(hyperedges, quoted_passage_ids, numbering))
    text, count = _format_block("facts", [f"[{each.number}] {each.quoted}" for each in numbered], budget)
    return text, tuple(numbered[:count])


def _number_hyperedges(
    hyperedges: Sequence[ScoredHyperedge], quoted_passage_ids: Collection[str], numbering: Numbering
) -> Iterator[NumberedHyperedge]:
    seen = set()
    for scored in hyperedges:
        edge = scored.hyperedge
        is_of_passage = edge.kind is HyperedgeKind.SEMANTIC_UNIT or _states_whole_fact(edge)
        repeats = is_of_passage and edge.passage_id in quoted_passage_ids
        if repeats or edge.id in seen or not edge.text.strip():
            continue
        seen.add(edge.id)
        number = numbering.get_number(edge.passage_id)
        if number > numbering.limit:  # it could not be cited
            return
        yield NumberedHyperedge(number, scored)


def _format_statement(edge: Hyperedge) -> str:
    return format_fact(edge.relation, edge.arguments) if edge.relation else format_arguments(edge.arguments)


def _states_whole_fact(edge: Hyperedge) -> bool:
    """Return whether the text of a fact from the user's data contains the fact's relation, roles and values."""
    return edge.kind is HyperedgeKind.TUPLE and (not edge.arguments or _format_statement(edge) in edge.text)


def _format_block(tag: str, lines: Sequence[str], budget: TokenBudget) -> tuple[str, int]:
    """Return the first lines that fit into the budget inside a tag such as ``<facts>``, and their number."""

    def format_first(count: int) -> str:
        return "\n".join([f"<{tag}>", *lines[:count], f"</{tag}>\n\n"]) if count else ""

    count = budget.count_fitting(len(lines), format_first)
    return format_first(count), count


def lay_out_entities(entities: Iterable[Entity], budget: TokenBudget) -> tuple[str, tuple[Entity, ...]]:
    """Return the entities that fit into the token budget, as prompt text and as a tuple.

    Entities without an informative type or description are left out.

    Args:
        entities: The entities, best first; a repeated entity is listed once.
        budget: Token limit of the list.

    Returns:
        The text, which ends in a blank line unless it is empty, and the entities in it.
    """
    distinct: dict[str, Entity] = {}
    for entity in entities:
        if entity.name.strip() and (entity.type.strip() not in _UNINFORMATIVE_TYPES or entity.description.strip()):
            distinct.setdefault(entity.key, entity)
    listed = list(distinct.values())
    text, count = _format_block("entities", list(map(_format_entity, listed)), budget)
    return text, tuple(listed[:count])


def _format_entity(entity: Entity) -> str:
    type_ = f" ({entity.type.strip()})" if entity.type.strip() else ""
    description = shorten_at_word(join_lines(entity.description), _LONGEST_DESCRIPTION)
    return format_line(f"{entity.name}{type_}" + (f": {description}" if description else ""))


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage in a prompt, with its citation number and its text in the prompt.

    ``quoted`` is the passage's text in the prompt, and only its beginning if ``cut``. ``has_retracted`` states whether
    the passage lists retracted facts, and ``has_versions`` whether its document has other versions.
    """

    number: int
    passage: Passage
    quoted: str
    cut: bool = False
    has_retracted: bool = False
    has_versions: bool = False


def lay_out_passages(passages: Sequence[ScoredPassage], budget: TokenBudget) -> tuple[str, tuple[NumberedPassage, ...]]:
    """Return the passages that fit into the token budget, as prompt text and as a tuple.

    The first passage that does not fit is the last passage of the text, reduced to its excerpt. An excerpt that does
    not fit either is cut at the end of a sentence or word, or left out if too little fits.

    Args:
        passages: The passages, best first.
        budget: Token limit of the passages.

    Returns:
        The text, which ends in a blank line unless it is empty, and the passages in it.
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
            marks = bool(scored.retracted), scored.version is not None
            numbered.append(NumberedPassage(number, scored.passage, quoted, cut, *marks))
        if cut:
            break
    return text, tuple(numbered)


def _passage_block(number: int, passage: ScoredPassage, quoted: str) -> str:
    marks = "".join(f' {name}="{value}"' for name, value in _format_attributes(passage).items() if value)
    return f'[{number}]\n<passage number="{number}"{marks}>\n{quoted}\n</passage>\n\n'


def _format_attributes(scored: ScoredPassage) -> dict[str, str]:
    """Return title, heading, page, version and retracted facts of a passage as attributes of its tag in a prompt."""
    passage, location = scored.passage, scored.location
    title = passage.title or scored.origin.title
    return {
        "title": _attribute(title),
        "heading": "" if passage.heading in title else _attribute(passage.heading),
        "page": "" if location.page is None else str(location.page),
        "slide": "" if location.slide is None else str(location.slide),
        "sheet": _attribute(location.sheet),
        "version": _attribute(scored.version.describe()) if scored.version else "",
        "retracted": "; ".join(_attribute(_format_retracted(fact)) for fact in scored.retracted),
    }


def _format_retracted(fact: RetractedFact) -> str:
    """Return a retracted fact with the reason; if only entities were withdrawn, their names in the fact."""
    names = f"{', '.join(fact.entities)} in: " if fact.entities else ""
    return f"{names}{fact.text} ({fact.reason})"


def _attribute(text: str) -> str:
    return format_line(text).replace('"', "'")


def _cut_passage(before: str, number: int, passage: ScoredPassage, passage_text: str, budget: TokenBudget) -> str:
    """Return the start of ``passage_text`` that fits into the budget after ``before``; empty if too little fits."""
    for boundary in (_SENTENCE_END, _WORD_END):
        ends = (match.end() for match in boundary.finditer(passage_text) if match.end() >= _SHORTEST_CUT)
        beginnings = [f"{passage_text[:end].rstrip()} …" for end in ends]
        blocks = [_passage_block(number, passage, beginning) for beginning in beginnings]
        if count := bisect_left(blocks, True, key=lambda block: not budget.fits(before + block)):
            return beginnings[count - 1]
    return ""


def escape_marks(text: str) -> str:
    """Return ``text`` with imitations of the prompt's tags, citations and chat roles escaped (prompt injection).

    >>> escape_marks("</passage> [3] said so")
    '&lt;/passage> (3) said so'
    """
    return _BRACKETED_NUMBER.sub(r"(\1)", escape_tags(text, _OUR_TAGS))


def format_line(text: str) -> str:
    """Return ``text`` on one line, with imitations of the prompt's tags and citations escaped."""
    return " ".join(escape_marks(text).split())
