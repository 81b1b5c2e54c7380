"""Mentions found by a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from polyad.errors import ConfigurationError, LanguageModelError, UnreadableReplyError
from polyad.indexing.locate import name_spans
from polyad.indexing.quoting import quoted_passage
from polyad.model import Mention
from polyad.protocols import LanguageModel, Prompt, Reply
from polyad.text.json_schema import NUMBER, STRING, array_of, object_of
from polyad.text.loose_json import listed_under, normal_keys
from polyad.text.outside import harmless
from polyad.text.packaged import packaged

_SYSTEM = packaged("polyad.indexing.mentions", "llm.md")
_SCHEMA = object_of(entities=array_of(object_of(name=STRING, type=STRING, importance=NUMBER)))


class LanguageModelMentionExtractor:
    """Asks a language model for the names in each text, and finds them there.

    A name is located wherever it occurs; see :func:`polyad.indexing.locate.name_spans`. Names that do not occur in the
    text are the model's invention: they are dropped, and ``dropped`` counts them.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        self._language_model = language_model
        self.dropped = 0
        """Names that did not occur in their text, over all calls."""

    @classmethod
    def from_name(cls, rest: str, *, language_model: LanguageModel | None) -> Self:
        """The extractor of ``llm``, which asks the language model that is set.

        Raises:
            ConfigurationError: none is set, or there is something after a colon.
        """
        if rest:
            raise ConfigurationError(f"no mention extractor 'llm:{rest}'; expected llm, and the model with --model")
        if language_model is None:
            raise ConfigurationError("mentions 'llm' need a language model; name one with --model or POLYAD_MODEL")
        return cls(language_model)

    @property
    def name(self) -> str:
        """The model decides what is found, but is chosen anew with every run: a better one may go on with an index."""
        return "llm"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions in each text by ``start``, then longest first.

        Raises:
            LanguageModelError: no usable reply for one of the texts; nothing is returned for any of them then.
        """
        asked = [position for position, text in enumerate(texts) if text.strip()]
        prompts = [
            Prompt(user=quoted_passage(texts[position]), system=_SYSTEM, json_schema=_SCHEMA) for position in asked
        ]
        found: list[list[Mention]] = [[] for _ in texts]

        def take(index: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                position = asked[index]
                found[position] = self._located(_entities(outcome), texts[position])

        for outcome in self._language_model.complete(prompts, take) if prompts else []:
            if isinstance(outcome, LanguageModelError):
                raise outcome
        return found

    def _located(self, entities: Sequence[Mention], text: str) -> list[Mention]:
        located: dict[tuple[int, int], Mention] = {}
        for entity in entities:
            spans = name_spans(entity.name, text)
            self.dropped += not spans
            for start, end in spans:
                mention = Mention(text[start:end], start, end, type=entity.type, score=entity.score)
                located.setdefault((start, -end), mention)
        return [located[key] for key in sorted(located)]


def _entities(reply: Reply) -> list[Mention]:
    """The entities in a reply: JSON as asked for, or what models make of it (a fence, a preface, a bare list).

    Raises:
        UnreadableReplyError: there is no list in it, or it lists something else.
    """
    listed = listed_under(reply.text, "entities")
    entities = list(_valid(listed or []))
    if not entities and listed != []:
        cut = " whole, and not cut at the model's limit of tokens" if reply.truncated else ""
        raise UnreadableReplyError(reply.text, f'{{"entities": [...]}}{cut}')
    return entities


def _valid(listed: Sequence[Any]) -> Iterator[Mention]:
    for item in listed:
        entity = normal_keys(item) if isinstance(item, dict) else {"name": item}
        name = entity.get("name", entity.get("entity"))
        if isinstance(name, str) and name.strip():
            score = _score(entity.get("importance"))
            kind = harmless(str(entity.get("type") or ""))
            yield Mention(harmless(name).strip(), -1, -1, type=kind, score=score)


def _score(importance: object) -> float:
    """In (0, 100]; 100 where the model gave none or nonsense."""
    if isinstance(importance, str) and importance.strip(" %").isdecimal():
        importance = float(importance.strip(" %"))
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 < importance <= 100:
        return 100.0
    return float(importance)
