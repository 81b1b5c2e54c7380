"""Extraction styles: the prompts that ask a language model for facts, and the parsing of its replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import ClassVar

from polyad.errors import SettingError, UnreadableReplyError
from polyad.model import Passage
from polyad.protocols.components import Prompt
from polyad.replies.compact_facts import COMPACT_SCHEMA, DATED_SCHEMA, parse_compact_facts
from polyad.replies.facts import ExtractedEntity, Extraction, build_extraction, clean_value
from polyad.replies.paper_facts import parse_paper_facts
from polyad.replies.schema import Schema
from polyad.replies.thoughts import remove_leading_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, quote_passage, quote_replies

_MAX_QUOTED_CHARACTERS = 300
"""Characters of an unreadable reply that are shown to the model in the next request."""


class ExtractionStyle(ABC):
    """Builds the prompts that ask a language model for facts, and parses the replies of one format.

    Args:
        language: Language of facts and descriptions, such as "German"; empty for the language of the passage.
        prompts: The prompts, which users can override.

    Raises:
        SettingError: the language has more than one line.
    """

    style: ClassVar[str]
    """What users call it."""

    schema: ClassVar[Schema | None] = None
    """Of the reply; None for one that is not JSON."""

    def __init__(self, language: str = "", prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._language = language.strip()
        if "\n" in self._language:
            raise SettingError("language", self._language, 'the name of one, such as "German"')
        file = f"facts_{self.style}"
        system, self._request_for_more = prompts.get_parts(file)
        self._again, self._rest = prompts.get_parts("facts_again")
        self._version = prompts.fingerprint(file, "facts_again")
        self._system = system.replace("{language}", self._language or "the language of the passage")

    @property
    def name(self) -> str:
        """The style with all that changes its prompt: the language, and the fingerprint of the user's own prompt."""
        language = f" language={self._language}" if self._language else ""
        return f"{self.style}{language}{f' prompt={self._version}' if self._version else ''}"

    def build_prompt(self, passage: Passage) -> Prompt:
        """Return the request for the facts of a passage: fixed instructions, then the passage."""
        return Prompt(user=quote_passage(passage.text, passage.title), system=self._system, json_schema=self.schema)

    def build_gleaning_prompt(self, passage: Passage, so_far: str) -> Prompt:
        """Return the request of a gleaning round: for facts that the earlier replies ``so_far`` missed."""
        first = self.build_prompt(passage)
        request = self._request_for_more.replace("{so_far}", quote_replies(remove_leading_thoughts(so_far)))
        return replace(first, user=f"{first.user}\n\n{request}")

    def build_retry_prompt(self, prompt: Prompt, failure: UnreadableReplyError, count: int) -> Prompt:
        """Return ``prompt`` with an explanation why the last of ``count`` replies could not be parsed.

        The same request would get the same reply.
        """
        beginning = quote_replies(remove_leading_thoughts(failure.reply)[:_MAX_QUOTED_CHARACTERS] or "(nothing)")
        request = self._again.replace("{count}", str(count)).replace("{expected}", failure.expected)
        return replace(prompt, user=f"{prompt.user}\n\n{request.replace('{reply}', beginning)}")

    def build_continuation_prompt(self, passage: Passage, so_far: str) -> Prompt:
        """Return the request for facts that are missing because the last of the replies ``so_far`` was cut off."""
        more = self.build_gleaning_prompt(passage, so_far)
        return replace(more, user=f"{more.user}\n\n{self._rest}")

    def parse_about(self, reply: str, passage: Passage, max_records: int | None = None) -> Extraction:
        """Parse a reply about ``passage``, and drop facts and entities that were only copied from the instructions.

        Small models repeat the example, or the placeholders in the description of the format.

        Args:
            reply: The model's reply.
            passage: The passage.
            max_records: Highest number of records to accept; None for no limit.

        Raises:
            UnreadableReplyError: the reply cannot be parsed, has too many records, or only repeats the instructions.
        """
        extraction = self.parse(reply, max_records)
        instructions, passage_text = clean_value(self._system).casefold(), clean_value(passage.text).casefold()
        notes = Counter(extraction.notes)
        facts = []
        for fact in extraction.facts:
            text = fact.text.casefold()
            if text in instructions and text not in passage_text:
                notes["fact copied from the instructions left out"] += 1
                continue
            entities = tuple(entity for entity in fact.entities if not _is_placeholder(entity))
            notes["entity copied from the instructions left out"] += len(fact.entities) - len(entities)
            facts.append(replace(fact, entities=entities))
        if extraction.facts and not facts:
            raise UnreadableReplyError(reply, "facts of the passage, not of the example in the prompt")
        return build_extraction(facts, notes)

    @abstractmethod
    def parse(self, reply: str, max_records: int | None = None) -> Extraction:
        """Parse a reply, also if it is malformed or cut short.

        Raises:
            UnreadableReplyError: the reply has no record and does not say that there is none; or it has too many
            records.
        """


class CompactExtractionStyle(ExtractionStyle):
    """The ``compact`` style: the model replies with JSON, a list of facts and a table of entities."""

    style = "compact"
    schema = COMPACT_SCHEMA
    """JSON schema of the reply; None for a reply that is not JSON."""

    def parse(self, reply: str, max_records: int | None = None) -> Extraction:
        """Parse a reply; see :func:`polyad.replies.compact_facts.parse_compact_facts`."""
        return parse_compact_facts(reply, max_records)


class DatedExtractionStyle(CompactExtractionStyle):
    """The ``compact`` style with dates: facts state from when to when they hold, if the passage does."""

    schema = DATED_SCHEMA

    def __init__(self, language: str = "", prompts: Prompts = DEFAULT_PROMPTS) -> None:
        super().__init__(language, prompts)
        self._system = f"{self._system}\n{prompts.get_text('facts_dates')}"
        self._version = prompts.fingerprint("facts_compact", "facts_again", "facts_dates")

    @property
    def name(self) -> str:
        """The style with all that changes its prompt."""
        return f"{super().name} dates"


class PaperExtractionStyle(ExtractionStyle):
    """The ``paper`` style: the model replies with records between delimiters (HyperGraphRAG, appendix A.1)."""

    style = "paper"
    """Name of the style."""

    def parse(self, reply: str, max_records: int | None = None) -> Extraction:
        """Parse a reply; see :func:`polyad.replies.paper_facts.parse_paper_facts`."""
        return parse_paper_facts(reply, max_records)


def _is_placeholder(entity: ExtractedEntity) -> bool:
    """Return whether an entity was copied from the example of the format in the instructions."""
    return (entity.name, entity.type, entity.description) == ("name", "type", "description")
