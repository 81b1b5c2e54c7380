"""The prompt of an answer: instructions, and as much evidence as fits into the token budget.

HyperRAG (section 3.1.6) gives half of the tokens to hyperedges, three tenths to entities and the rest to passages, in
this order, and passes unused tokens on to the next kind. HyperGraphRAG's code gives each kind the same fixed number.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from polyad.answering.citations import CitableSource, Numbering, get_document_id
from polyad.answering.layout import (
    CountTokens,
    NumberedHyperedge,
    NumberedPassage,
    TokenBudget,
    format_line,
    lay_out_entities,
    lay_out_hyperedges,
    lay_out_passages,
)
from polyad.config import AnswerSettings
from polyad.model import AnswerContext, Entity, Evidence
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_ROUNDING = 1e-6  # 0.7 + 0.2 of 10 tokens are 9


@dataclass(frozen=True, slots=True)
class Context:
    """The evidence in an answer's prompt: its text, and the hyperedges, entities and passages in the text."""

    text: str = ""
    hyperedges: tuple[NumberedHyperedge, ...] = ()
    entities: tuple[Entity, ...] = ()
    passages: tuple[NumberedPassage, ...] = ()

    def to_answer_context(self) -> AnswerContext:
        """Return the evidence of the prompt as an AnswerContext, a part of the answer that users receive."""
        return AnswerContext(
            tuple((listed.number, listed.scored) for listed in self.hyperedges),
            self.entities,
            tuple((each.number, each.passage, each.quoted) for each in self.passages),
        )

    @property
    def has_retracted(self) -> bool:
        """Whether the prompt lists facts or entities that users retracted."""
        return any(listed.scored.retracted for listed in self.hyperedges) or any(
            each.has_retracted for each in self.passages
        )

    def sources(self) -> dict[int, CitableSource]:
        """Return the passages that an answer can cite, keyed by citation number."""
        texts: defaultdict[int, list[str]] = defaultdict(list)
        ids: dict[int, tuple[str, str]] = {}
        for each in self.passages:
            ids[each.number] = each.passage.id, each.passage.document_id
            texts[each.number] += [format_line(each.passage.title), each.quoted]
        for listed in self.hyperedges:
            passage_id = listed.scored.hyperedge.passage_id
            ids.setdefault(listed.number, (passage_id, get_document_id(passage_id)))
            texts[listed.number].append(listed.quoted)
        return {number: CitableSource(number, *ids[number], "\n".join(texts[number])) for number in sorted(ids)}


def build_context(evidence: Evidence, settings: AnswerSettings, count_tokens: CountTokens) -> Context:
    """Return the evidence that fits into the token budget, best first, as part of a prompt.

    Text that could be taken for the prompt's own marks (its tags, bracketed numbers such as footnotes) is escaped.

    Args:
        evidence: The evidence of a search.
        settings: The token budget and the share of each kind.
        count_tokens: Returns the length of a text in tokens.
    """
    shares = settings.hyperedge_share, settings.entity_share, settings.passage_share
    passages = evidence.passages if settings.passage_share else ()
    text, hyperedges = lay_out_hyperedges(
        evidence.hyperedges if settings.hyperedge_share else (),
        {scored.passage.id for scored in passages},
        Numbering(evidence.passages) if settings.form == "text" else Numbering(evidence.passages, math.inf),
        _create_budget(shares[:1], "", settings, count_tokens),
    )
    named = _iterate_entities(evidence, hyperedges) if settings.entity_share else ()
    block, entities = lay_out_entities(named, _create_budget(shares[:2], text, settings, count_tokens))
    text += block
    block, quoted_passages = lay_out_passages(passages, _create_budget(shares, text, settings, count_tokens))
    return Context((text + block).rstrip(), hyperedges, entities, quoted_passages)


def _iterate_entities(evidence: Evidence, prompt_hyperedges: tuple[NumberedHyperedge, ...]) -> Iterator[Entity]:
    """Yield the entities in the evidence, then the entities of the hyperedges in the prompt."""
    for scored in evidence.entities:
        yield scored.entity
    for listed in prompt_hyperedges:
        yield from listed.scored.members


def _create_budget(
    shares: tuple[float, ...], earlier_text: str, settings: AnswerSettings, count_tokens: CountTokens
) -> TokenBudget:
    """Return the token budget of one part of a prompt: ``earlier_text`` and this part together have a limit.

    Args:
        shares: Shares of the kinds up to this one; unused tokens of earlier kinds pass to it unless they are fixed.
        earlier_text: The text of the earlier kinds.
        settings: All tokens, and whether shares are fixed.
        count_tokens: Returns the length of a text in tokens.
    """
    if settings.budget == "fixed":
        shares, earlier_text = shares[-1:], ""
    return TokenBudget(earlier_text, int(settings.max_context_tokens * sum(shares) + _ROUNDING), count_tokens)


def build_instructions(settings: AnswerSettings, context: Context, prompts: Prompts = DEFAULT_PROMPTS) -> str:
    """Return the system prompt of an answer, for the kinds of evidence in ``context``.

    Without evidence, the prompt requests an answer from the model's own knowledge.

    A kind of evidence is explained only if the context contains it. An answer in names has no style of its own, so
    ``concise`` and ``sections`` have the same prompt.

    Args:
        settings: Form and style of the answer.
        context: The evidence in the prompt.
        prompts: Texts of the system prompt's parts.
    """
    return "\n\n".join(prompts.get_text(f"answer_{name}") for name in _choose_parts(settings, context))


def _choose_parts(settings: AnswerSettings, context: Context) -> Iterator[str]:
    """Yield the names of the prompt files whose texts, joined, form the system prompt."""
    own_knowledge = "_own_knowledge" if settings.own_knowledge else ""
    yield f"evidence{own_knowledge}" if context.text else "unaided"
    if settings.form == "text":
        yield "text" if context.text else "unaided_text"
        if context.text and not own_knowledge:
            yield "not_contained"
    else:
        yield settings.form
    if settings.prompt == "think-answer" or settings.form == "text":
        yield settings.prompt
    for content, part in (
        (context.hyperedges, "shown_facts"),
        (context.entities, "shown_entities"),
        (context.passages, "shown_passages"),
        (context.has_retracted, "shown_retracted"),
        (any(each.has_versions for each in context.passages), "shown_versions"),
        (context.text, "quoted"),
    ):
        if content:
            yield part
