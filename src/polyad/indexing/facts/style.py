"""The extraction style: the prompts that ask a language model for facts, and the parsing of its replies."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from polyad.errors import SettingError, UnreadableReplyError
from polyad.indexing.facts.grounding import compute_grounded_share
from polyad.indexing.facts.ontology import NO_ONTOLOGY, Ontology
from polyad.indexing.facts.settings import ExtractionStyleName
from polyad.model import Passage
from polyad.protocols.components import Prompt
from polyad.replies.compact_facts import build_compact_schema, parse_compact_facts
from polyad.replies.facts import ExtractedEntity, Extraction, build_extraction, clean_value
from polyad.replies.paper_facts import parse_paper_facts
from polyad.replies.schema import Schema
from polyad.replies.thoughts import remove_leading_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, quote_passage, quote_replies

_MAX_QUOTED_CHARACTERS = 300
"""Characters of an unreadable reply that are shown to the model in the next request."""

_MIN_GROUNDED_SHARE = 0.5
"""Least share of the content words of an example's fact in a passage, for a fact that the passage states too."""


class ExtractionStyle:
    """A reply format of fact extraction: builds prompts for a language model and parses its replies.

    With the style ``compact``, the model replies with JSON: a list of facts and a table of entities. With ``paper``, it
    replies with records between delimiters (HyperGraphRAG, appendix A.1).

    Args:
        language: Language of facts and descriptions, such as "German"; empty for the language of the passage.
        prompts: The prompts, which users can override.
        ontology: The allowed entity types and relations, and examples.
        style: The format of replies.
        dates: Whether the model states the period in which a fact is valid, if the passage does; only with ``compact``.

    Attributes:
        ontology: The allowed entity types and relations, and examples.
        schema: JSON schema of the reply; None for a reply that is not JSON.

    Raises:
        SettingError: the language has more than one line.
    """

    def __init__(
        self,
        language: str = "",
        prompts: Prompts = DEFAULT_PROMPTS,
        ontology: Ontology = NO_ONTOLOGY,
        *,
        style: ExtractionStyleName = "compact",
        dates: bool = False,
    ) -> None:
        self.ontology = ontology
        self._language = language.strip()
        if "\n" in self._language:
            raise SettingError("language", self._language, 'the name of one, such as "German"')
        self._style = style
        self._has_dates = dates
        self.schema: Schema | None = None
        if style == "compact":
            self.schema = build_compact_schema(has_dates=dates, relation=ontology.relation_schema)
        file, further = f"facts_{style}", ["facts_dates"] if dates else []
        system, self._request_for_more = prompts.get_parts(file)
        self._again, self._rest = prompts.get_parts("facts_again")
        self._version = prompts.fingerprint(file, "facts_again", *further)
        system = system.replace("{language}", self._language or "the language of the passage")
        self._ontology_texts = ontology.format_instructions(prompts, style)
        instructions = "\n".join([system, *map(prompts.get_text, further)])
        self._system = "\n\n".join([instructions, *self._ontology_texts])

    @property
    def name(self) -> str:
        """Name of the extraction style with all settings that change the prompt."""
        language = f" language={self._language}" if self._language else ""
        prompt = f" prompt={self._version}" if self._version else ""
        text = "\n\n".join(self._ontology_texts)
        ontology = f" ontology={hashlib.sha256(text.encode()).hexdigest()[:12]}" if text else ""
        return f"{self._style}{language}{prompt}{ontology}{' dates' if self._has_dates else ''}"

    def build_prompt(self, passage: Passage) -> Prompt:
        """Return the first prompt for extracting facts from a passage: fixed instructions, then the passage."""
        return Prompt(user=quote_passage(passage.text, passage.title), system=self._system, json_schema=self.schema)

    def build_gleaning_prompt(self, passage: Passage, so_far: str) -> Prompt:
        """Return the follow-up prompt that asks for facts that the earlier replies ``so_far`` do not contain."""
        first = self.build_prompt(passage)
        request = self._request_for_more.replace("{so_far}", quote_replies(remove_leading_thoughts(so_far)))
        return replace(first, user=f"{first.user}\n\n{request}")

    def build_retry_prompt(self, prompt: Prompt, failure: UnreadableReplyError, count: int) -> Prompt:
        """Return ``prompt`` with an added explanation why the last of ``count`` replies could not be parsed.

        A repeated request without the explanation would get the same reply.
        """
        beginning = quote_replies(remove_leading_thoughts(failure.reply)[:_MAX_QUOTED_CHARACTERS] or "(nothing)")
        request = self._again.replace("{count}", str(count)).replace("{expected}", failure.expected)
        return replace(prompt, user=f"{prompt.user}\n\n{request.replace('{reply}', beginning)}")

    def build_continuation_prompt(self, passage: Passage, so_far: str) -> Prompt:
        """Return the follow-up prompt that asks for the missing facts after the truncated replies ``so_far``."""
        more = self.build_gleaning_prompt(passage, so_far)
        return replace(more, user=f"{more.user}\n\n{self._rest}")

    def parse_about(self, reply: str, passage: Passage, max_records: int | None = None) -> Extraction:
        """Return the facts in a model's reply about ``passage``, without facts copied from the instructions.

        Small models repeat the example, or the placeholders in the description of the format. A fact of an example that
        the passage states too, because the user took the example from this document, is not a copy.

        Args:
            reply: The model's reply.
            passage: The passage.
            max_records: Highest number of records to accept; None for no limit.

        Raises:
            UnreadableReplyError: the reply cannot be parsed, has too many records, or only repeats the instructions.
        """
        extraction = self.parse(reply, max_records)
        instructions = clean_value(self._system).casefold()
        notes = Counter(extraction.notes)
        facts = []
        for fact in extraction.facts:
            is_example = fact.text.casefold() in instructions
            if is_example and compute_grounded_share(fact.text, passage.text) < _MIN_GROUNDED_SHARE:
                notes["fact copied from the instructions left out"] += 1
                continue
            entities = tuple(entity for entity in fact.entities if not _is_placeholder(entity))
            notes["entity copied from the instructions left out"] += len(fact.entities) - len(entities)
            facts.append(replace(fact, entities=entities))
        if extraction.facts and not facts:
            raise UnreadableReplyError(reply, "facts of the passage, not of the example in the prompt")
        return build_extraction(facts, notes)

    def parse(self, reply: str, max_records: int | None = None) -> Extraction:
        """Return the facts in a language model's reply, even if the reply is malformed or cut at the token limit.

        Raises:
            UnreadableReplyError: the reply has too many records; or it has no record, and does not state that the
                passage has no facts.
        """
        if self._style == "paper":
            return parse_paper_facts(reply, max_records, relations=bool(self.ontology.relations))
        return parse_compact_facts(reply, max_records)


def _is_placeholder(entity: ExtractedEntity) -> bool:
    """Return whether an entity is the example ``name, type, description``, copied from the instructions."""
    return (entity.name, entity.type, entity.description) == ("name", "type", "description")
