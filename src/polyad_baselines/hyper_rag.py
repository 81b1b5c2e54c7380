"""Hyper-RAG's hyperedges (Feng et al., 2026): pairs of entities, and groups of three or more that belong together.

A language model states the low-order correlations of a passage, each between two entities, and the high-order
correlations, each among all entities that share a theme, an event or a property. Both are facts of polyad, and their
number of entities is their order. HyperSU (Tables 11 and 12) compares its semantic units with such hyperedges.

The same style with the prompt ``triples`` asks for relations between two entities, as HippoRAG 2, LightRAG, PathRAG and
GraphRAG do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from polyad.indexing.facts.style import ExtractionStyle
from polyad.model import Passage
from polyad.protocols.components import Prompt
from polyad.replies.facts import Extraction, build_extraction
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, quote_passage, quote_replies
from polyad_baselines import PROMPTS

_PAIR = 2
"""Entities of a low-order correlation."""


class CorrelationStyle(ExtractionStyle):
    """The extraction style of Hyper-RAG: prompts that ask for pairs and groups of entities, with replies in JSON.

    Args:
        language: Language of texts and descriptions; empty for the language of the passage.
        prompts: The prompts of this package.
        again: The prompts of polyad, for replies that cannot be read.
        prompt: Name of the prompt: ``correlations``, or ``triples``, whose facts have two entities.
    """

    def __init__(
        self,
        language: str = "",
        prompts: Prompts = PROMPTS,
        again: Prompts = DEFAULT_PROMPTS,
        prompt: str = "correlations",
    ) -> None:
        super().__init__(language, again)
        self._prompt, self._max_entities = prompt, _PAIR if prompt == "triples" else None
        instructions, self._more = prompts.get_parts(prompt)
        self._instructions = instructions.replace("{language}", language.strip() or "the language of the passage")
        self._fingerprint = prompts.fingerprint(prompt)

    @property
    def name(self) -> str:
        """Name of the style with all settings that change the prompt."""
        return " ".join(filter(None, (self._prompt, super().name, self._fingerprint)))

    def build_prompt(self, passage: Passage) -> Prompt:
        """Return the prompt for the correlations in a passage."""
        return Prompt(
            user=quote_passage(passage.text, passage.title), system=self._instructions, json_schema=self.schema
        )

    def build_gleaning_prompt(self, passage: Passage, so_far: str) -> Prompt:
        """Return the prompt for correlations that the earlier replies ``so_far`` do not contain."""
        first = self.build_prompt(passage)
        return replace(first, user=f"{first.user}\n\n{self._more.replace('{so_far}', quote_replies(so_far))}")

    def parse_about(self, reply: str, passage: Passage, max_records: int | None = None) -> Extraction:  # noqa: ARG002  # part of the interface; others compare the passage with the prompt's example
        """Return the correlations in a reply, without those of fewer than two entities; triples have exactly two.

        Raises:
            UnreadableReplyError: the reply cannot be parsed, or has too many records.
        """
        extraction = self.parse(reply, max_records)
        notes: Counter[str] = Counter(extraction.notes)
        facts = []
        for fact in extraction.facts:
            if len(fact.entities) < _PAIR:
                notes["correlations of fewer than two entities left out"] += 1
                continue
            if len(fact.entities) > (self._max_entities or len(fact.entities)):
                notes["triples of more than two entities left out"] += 1
                continue
            notes["low-order correlations" if len(fact.entities) == _PAIR else "high-order correlations"] += 1
            facts.append(fact)
        return build_extraction(facts, notes)
