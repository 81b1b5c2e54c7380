"""What the language model is given: the rules it answers by, and as much of the evidence as its budget takes.

HyperRAG (section 3.1.6) gives half of the budget to hyperedges, three tenths to entities and the rest to passages,
fills them in this order and passes on what one leaves over. HyperGraphRAG's code gives each the same fixed number of
tokens. What would be empty is left out, so without hyperedges and entities the passages have it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from polyad.answering.citations import Citable, Numbering, document_of
from polyad.answering.layout import (
    CountTokens,
    NumberedHyperedge,
    NumberedPassage,
    TokenBudget,
    lay_out_entities,
    lay_out_hyperedges,
    lay_out_passages,
    on_one_line,
)
from polyad.config import AnswerSettings
from polyad.model import AnswerContext, Entity, Evidence
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

Sort = Literal["hyperedges", "entities", "passages"]

_ROUNDING = 1e-6  # 0.7 + 0.2 of 10 tokens are 9


@dataclass(frozen=True, slots=True)
class Context:
    """The evidence in a prompt: its formatted text and the listed items."""

    text: str = ""
    hyperedges: tuple[NumberedHyperedge, ...] = ()
    entities: tuple[Entity, ...] = ()
    passages: tuple[NumberedPassage, ...] = ()

    def to_answer_context(self) -> AnswerContext:
        """Return the evidence in the prompt, as :attr:`Answer.context` reports it."""
        return AnswerContext(
            tuple((listed.number, listed.scored) for listed in self.hyperedges),
            self.entities,
            tuple((each.number, each.passage, each.quoted) for each in self.passages),
        )

    def sources(self) -> dict[int, Citable]:
        """Return the citable sources by number, ascending: quoted passages and passages of listed hyperedges."""
        texts: defaultdict[int, list[str]] = defaultdict(list)
        ids: dict[int, tuple[str, str]] = {}
        for each in self.passages:
            ids[each.number] = each.passage.id, each.passage.document_id
            texts[each.number] += [on_one_line(each.passage.title), each.quoted]
        for listed in self.hyperedges:
            passage_id = listed.scored.hyperedge.passage_id
            ids.setdefault(listed.number, (passage_id, document_of(passage_id)))
            texts[listed.number].append(listed.quoted)
        return {number: Citable(number, *ids[number], "\n".join(texts[number])) for number in sorted(ids)}


def build_context(evidence: Evidence, settings: AnswerSettings, count_tokens: CountTokens) -> Context:
    """Format as much evidence as fits into the token budget, best first within each sort.

    Text that could be taken for the prompt's own marks (its tags, bracketed numbers such as footnotes) is defused.

    Args:
        evidence: What was found.
        settings: Which sorts are used, and their budgets.
        count_tokens: Length of a text in tokens.
    """
    passages = evidence.passages if settings.use_passages else ()
    hyperedges = evidence.hyperedges if settings.use_hyperedges else ()
    text, shown_hyperedges = lay_out_hyperedges(
        hyperedges,
        {scored.passage.id for scored in passages},
        Numbering(evidence.passages),
        _budget("hyperedges", "", settings, count_tokens),
    )
    named = _named(evidence, shown_hyperedges) if settings.use_entities else ()
    block, entities = lay_out_entities(named, _budget("entities", text, settings, count_tokens))
    text += block
    block, quoted_passages = lay_out_passages(passages, _budget("passages", text, settings, count_tokens))
    return Context((text + block).rstrip(), shown_hyperedges, entities, quoted_passages)


def _named(evidence: Evidence, hyperedges: tuple[NumberedHyperedge, ...]) -> Iterator[Entity]:
    """Yield the entities of the evidence, then the members of the listed hyperedges."""
    for scored in evidence.entities:
        yield scored.entity
    for listed in hyperedges:
        yield from listed.scored.members


def _budget(sort: Sort, before: str, settings: AnswerSettings, count_tokens: CountTokens) -> TokenBudget:
    """Return the token budget of one sort of evidence; with shares, unused tokens pass to the next sort."""
    if settings.budget == "fixed":
        tokens = {
            "hyperedges": settings.hyperedge_tokens,
            "entities": settings.entity_tokens,
            "passages": settings.passage_tokens,
        }
        return TokenBudget("", tokens[sort], count_tokens)
    shares = {
        "hyperedges": settings.hyperedge_share,
        "entities": settings.hyperedge_share + settings.entity_share,
        "passages": 1.0,
    }
    return TokenBudget(before, int(settings.max_context_tokens * shares[sort] + _ROUNDING), count_tokens)


def instructions(settings: AnswerSettings, context: Context, prompts: Prompts = DEFAULT_PROMPTS) -> str:
    """Build the system prompt; without evidence, it asks for an answer from the model's own knowledge.

    Each sort of evidence is explained only if there is some. An answer in names has no style of its own, so
    ``concise`` and ``sections`` ask for it in the same words.

    Args:
        settings: Form and style of the answer.
        context: The evidence that will be shown.
        prompts: The parts.
    """
    return "\n\n".join(prompts.get_text(f"answer_{name}") for name in _parts(settings, context))


def _parts(settings: AnswerSettings, context: Context) -> Iterator[str]:
    """Yield the prompt names that make up the instructions, in order."""
    yield "evidence" if context.text else "unaided"
    if settings.form == "text":
        yield "text" if context.text else "unaided_text"
    else:
        yield settings.form
    if settings.prompt == "think-answer" or settings.form == "text":
        yield settings.prompt
    for content, part in (
        (context.hyperedges, "shown_facts"),
        (context.entities, "shown_entities"),
        (context.passages, "shown_passages"),
        (context.text, "quoted"),
    ):
        if content:
            yield part
