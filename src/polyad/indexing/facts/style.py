"""A style of extraction: how a language model is asked for the facts of a passage, and how its reply is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import ClassVar

from polyad.errors import SettingError, UnreadableReplyError
from polyad.model import Passage
from polyad.protocols.components import Prompt
from polyad.replies.compact_facts import COMPACT_SCHEMA, parse_compact_facts
from polyad.replies.facts import ExtractedEntity, Extraction, extraction, one_line
from polyad.replies.paper_facts import parse_paper_facts
from polyad.replies.schema import Schema
from polyad.replies.thoughts import after_thoughts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, quote_passage, quote_replies

_SHOWN = 300
"""Characters of a reply that could not be read, by which the model is shown what it did."""


class ExtractionStyle(ABC):
    """Asks for facts with the prompts in the file of the style's name, and reads the replies.

    Args:
        language: What facts and descriptions are written in, such as "German"; empty for the passage's own.
        prompts: What the model is told.

    Raises:
        SettingError: the language goes over the end of a line.
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
        """Identifies the style and what changes its prompt: the output language, and a file in its place, if any."""
        language = f" language={self._language}" if self._language else ""
        return f"{self.style}{language}{f' prompt={self._version}' if self._version else ''}"

    def prompt(self, passage: Passage) -> Prompt:
        """Asks for the facts of a passage: the fixed instructions, and the passage alone."""
        return Prompt(user=quote_passage(passage.text, passage.title), system=self._system, json_schema=self.schema)

    def more(self, passage: Passage, so_far: str) -> Prompt:
        """Asks for what the earlier replies, ``so_far``, missed, in the same format: a gleaning round."""
        first = self.prompt(passage)
        request = self._request_for_more.replace("{so_far}", quote_replies(after_thoughts(so_far)))
        return replace(first, user=f"{first.user}\n\n{request}")

    def again(self, prompt: Prompt, failure: UnreadableReplyError, count: int) -> Prompt:
        """Asks anew where the last of ``count`` replies could not be read, and says why.

        The same request would bring the same reply.
        """
        began = quote_replies(after_thoughts(failure.reply)[:_SHOWN] or "(nothing)")
        request = self._again.replace("{count}", str(count)).replace("{expected}", failure.expected)
        return replace(prompt, user=f"{prompt.user}\n\n{request.replace('{reply}', began)}")

    def rest(self, passage: Passage, so_far: str) -> Prompt:
        """Asks for what is missing from replies of which the last was cut off."""
        more = self.more(passage, so_far)
        return replace(more, user=f"{more.user}\n\n{self._rest}")

    def read(self, reply: str, passage: Passage, most: int | None = None) -> Extraction:
        """What a reply says of ``passage``, without the facts that it only copied from the instructions.

        Small models repeat the example, or the words that stand for a fact in the description of the format.

        Args:
            reply: What the model said.
            passage: That it was asked about.
            most: Records that are read; None for no limit.

        Raises:
            UnreadableReplyError: the reply cannot be read, it has more records, or all that it says is copied.
        """
        said = self.parse(reply, most)
        shown, own = one_line(self._system).casefold(), one_line(passage.text).casefold()
        notes = Counter(said.notes)
        facts = []
        for fact in said.facts:
            text = fact.text.casefold()
            if text in shown and text not in own:
                notes["fact copied from the instructions left out"] += 1
                continue
            entities = tuple(entity for entity in fact.entities if not _is_placeholder(entity))
            notes["entity copied from the instructions left out"] += len(fact.entities) - len(entities)
            facts.append(replace(fact, entities=entities))
        if said.facts and not facts:
            raise UnreadableReplyError(reply, "facts of the passage, not of the example in the prompt")
        return extraction(facts, notes)

    @abstractmethod
    def parse(self, reply: str, most: int | None = None) -> Extraction:
        """Read a reply, however untidy or cut short.

        Raises:
            UnreadableReplyError: there is no record in it, and it does not say that there is nothing; or there are
                more than ``most``.
        """


class CompactExtractionStyle(ExtractionStyle):
    """The ``compact`` style: the model replies with JSON, a list of facts and a table of entities."""

    style = "compact"
    schema = COMPACT_SCHEMA

    def parse(self, reply: str, most: int | None = None) -> Extraction:
        """Parse a reply; see :func:`polyad.replies.compact_facts.parse_compact_facts`."""
        return parse_compact_facts(reply, most)


class PaperExtractionStyle(ExtractionStyle):
    """The ``paper`` style: the model replies with records between delimiters (HyperGraphRAG, appendix A.1)."""

    style = "paper"

    def parse(self, reply: str, most: int | None = None) -> Extraction:
        """Parse a reply; see :func:`polyad.replies.paper_facts.parse_paper_facts`."""
        return parse_paper_facts(reply, most)


def _is_placeholder(entity: ExtractedEntity) -> bool:
    """Whether an entity is the one by which the instructions show the format."""
    return (entity.name, entity.type, entity.description) == ("name", "type", "description")
