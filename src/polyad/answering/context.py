"""The evidence as the model reads it: hyperedges, entities and passages, each within its part of a budget of tokens.

HyperRAG (section 3.1.6) gives half of the budget to hyperedges, three tenths to entities and the rest to passages,
fills them in this order and passes on what one leaves over. HyperGraphRAG's code gives each the same fixed number of
tokens. A section that would be empty is left out, so without hyperedges and entities the passages have it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from polyad.answering.entities import lay_out_entities
from polyad.answering.facts import NumberedFact, lay_out_facts
from polyad.answering.numbering import Numbering, Source, document_of
from polyad.answering.passages import NumberedPassage, lay_out_passages
from polyad.answering.quoting import on_one_line
from polyad.answering.room import CountTokens, Room
from polyad.config import AnswerSettings
from polyad.model import Entity, Evidence

Section = Literal["hyperedges", "entities", "passages"]

_ROUNDING = 1e-6  # 0.7 + 0.2 of 10 tokens are 9


@dataclass(frozen=True, slots=True)
class Context:
    """What goes into the prompt: its text, and what of the evidence is in it."""

    text: str = ""
    facts: tuple[NumberedFact, ...] = ()
    entities: tuple[Entity, ...] = ()
    passages: tuple[NumberedPassage, ...] = ()

    def sources(self) -> dict[int, Source]:
        """What can be cited, by number in ascending order: the passages shown, and those that facts come from."""
        texts: defaultdict[int, list[str]] = defaultdict(list)
        ids: dict[int, tuple[str, str]] = {}
        for shown in self.passages:
            ids[shown.number] = shown.passage.id, shown.passage.document_id
            texts[shown.number] += [on_one_line(shown.passage.title), shown.quoted]
        for fact in self.facts:
            passage_id = fact.scored.hyperedge.passage_id
            ids.setdefault(fact.number, (passage_id, document_of(passage_id)))
            texts[fact.number].append(fact.quoted)
        return {number: Source(number, *ids[number], "\n".join(texts[number])) for number in sorted(ids)}


def build_context(evidence: Evidence, settings: AnswerSettings, count_tokens: CountTokens) -> Context:
    """Lay out as much of the evidence as fits, best first in each section.

    Text that could be taken for the prompt's own marks (its tags, bracketed numbers such as footnotes) is defused.

    Args:
        evidence: What was found.
        settings: Which sections there are, and their budgets.
        count_tokens: Length of a text in tokens.
    """
    passages = evidence.passages if settings.use_passages else ()
    hyperedges = evidence.hyperedges if settings.use_hyperedges else ()
    text, facts = lay_out_facts(
        hyperedges,
        {scored.passage.id for scored in passages},
        Numbering(evidence.passages),
        _room("hyperedges", "", settings, count_tokens),
    )
    named = _named(evidence, facts) if settings.use_entities else ()
    section, entities = lay_out_entities(named, _room("entities", text, settings, count_tokens))
    text += section
    section, shown = lay_out_passages(passages, _room("passages", text, settings, count_tokens))
    return Context((text + section).rstrip(), facts, entities, shown)


def _named(evidence: Evidence, facts: tuple[NumberedFact, ...]) -> Iterator[Entity]:
    """The entities of the evidence, then those that the listed facts join."""
    for scored in evidence.entities:
        yield scored.entity
    for fact in facts:
        yield from fact.scored.members


def _room(section: Section, before: str, settings: AnswerSettings, count_tokens: CountTokens) -> Room:
    """With shares, each section may fill what those up to it have together: so the unused part is passed on."""
    if settings.budget == "fixed":
        tokens = {
            "hyperedges": settings.hyperedge_tokens,
            "entities": settings.entity_tokens,
            "passages": settings.passage_tokens,
        }
        return Room("", tokens[section], count_tokens)
    shares = {
        "hyperedges": settings.hyperedge_share,
        "entities": settings.hyperedge_share + settings.entity_share,
        "passages": 1.0,
    }
    return Room(before, int(settings.max_context_tokens * shares[section] + _ROUNDING), count_tokens)
