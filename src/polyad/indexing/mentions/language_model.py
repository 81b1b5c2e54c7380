"""Mentions that a language model lists."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

from polyad.errors import ConfigurationError, CutReplyError, LanguageModelError, UnreadableReplyError
from polyad.model import Mention, Usage
from polyad.protocols.components import FindReplies, LanguageModel, Prompt, Reply
from polyad.replies.loose_json import close_cut_json, find_list, normalize_keys
from polyad.replies.schema import NUMBER, STRING, build_array_schema, build_object_schema
from polyad.replies.scores import ENTITY_SCORES, are_fractions
from polyad.text.locate import find_name_spans
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, count_prompt_tokens, quote_passage, quote_replies
from polyad.text.words import count_tokens, sanitize

_MAX_REPLIES = 5
"""Most replies for one text, each of which continues a truncated reply; enough for the names of any passage."""

_REPLY_RATIO = 1.6
"""Estimated completion tokens for each token of a text: the names that rules find in the bundled sample, written as
JSON."""

_REST = "The last reply was cut off at its limit of length. List in the same form what is missing from these names:"

_PROMPT = "mentions"
_SCHEMA = build_object_schema(
    entities=build_array_schema(build_object_schema(name=STRING, type=STRING, importance=NUMBER))
)


class LanguageModelMentionExtractor:
    """A mention extractor that asks a language model for the names in a text, then locates each occurrence.

    See :func:`polyad.text.locate.find_name_spans`. A name that does not occur in the text is dropped and counted.

    Args:
        language_model: The model to ask.
        prompts: The prompts, which users can override.

    Attributes:
        name: The extractor's name, without the model, so that a later run may use a better language model.
        prompt_version: A hash of the user's prompt file; an empty string for the built-in prompt.
        dropped: Number of names that did not occur in their text, over all calls.
    """

    name = "llm"

    def __init__(self, language_model: LanguageModel, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._language_model = language_model
        self._prompts = prompts
        self.prompt_version = prompts.fingerprint(_PROMPT)
        self.dropped = 0

    @classmethod
    def from_name(cls, options: str, language_model: LanguageModel | None) -> Self:
        """Return the mention extractor ``llm``, which sends requests to the configured language model.

        Args:
            options: The text after the colon, which must be empty.
            language_model: The configured language model.

        Raises:
            ConfigurationError: no language model is configured, or there is text after a colon.
        """
        if options:
            raise ConfigurationError(f"no mention extractor 'llm:{options}'; expected llm, and the model with --model")
        if language_model is None:
            raise ConfigurationError("mentions 'llm' need a language model; name one with --model or POLYAD_MODEL")
        return cls(language_model)

    def with_language_model(self, language_model: LanguageModel) -> Self:
        """Return a copy of this extractor that uses another language model."""
        return type(self)(language_model, self._prompts)

    def with_prompts(self, prompts: Prompts) -> Self:
        """Return a copy of this extractor that uses the user's prompt file; without such a file, the same extractor."""
        return type(self)(self._language_model, prompts) if prompts.fingerprint(_PROMPT) else self

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the mentions in each text as one list per text, ordered by ``start``, the longest first.

        Raises:
            LanguageModelError: there is no usable reply for one of the texts; then nothing is returned.
        """
        listed: list[list[Mention]] = [[] for _ in texts]
        positions = [position for position, text in enumerate(texts) if text.strip()]
        for _ in range(_MAX_REPLIES):
            positions = self._request_names(positions, texts, listed)
            if not positions:
                return [
                    self._locate_occurrences(_complete_scores(entities), text)
                    for entities, text in zip(listed, texts, strict=True)
                ]
        raise CutReplyError(
            f"the model's limit of tokens cut {_MAX_REPLIES} replies about {texts[positions[0]][:80]!r}; raise the "
            "limit at the endpoint, or lower passage_tokens"
        )

    def estimate(self, texts: Sequence[str], find_replies: FindReplies) -> Usage:
        """Return the estimated language model usage of finding the names in ``texts``; cached replies cost nothing.

        Args:
            texts: The texts.
            find_replies: Returns the cached reply to each prompt, which costs nothing.
        """
        system, total = self._prompts.get_text(_PROMPT), Usage()
        texts = [text for text in texts if text.strip()]
        prompts = [_build_prompt(system, text, ()) for text in texts]
        for text, prompt, reply in zip(texts, prompts, find_replies(prompts), strict=True):
            if reply is None:
                total += Usage(1, count_prompt_tokens(prompt), int(_REPLY_RATIO * count_tokens(text)))
        return replace(total, cost=self._language_model.cost(total.prompt_tokens, total.completion_tokens))

    def _request_names(
        self, positions: Sequence[int], texts: Sequence[str], names_by_text: list[list[Mention]]
    ) -> list[int]:
        """Add the names in ``texts[positions]`` to ``names_by_text``; return positions of truncated replies.

        The language model lists the names. After a truncated reply, names may be missing.
        """
        cut: list[int] = []

        def add_reply(index: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                position = positions[index]
                previous = {entity.name for entity in names_by_text[position]}
                new = [entity for entity in _parse_entities(outcome) if entity.name not in previous]
                names_by_text[position] += new
                if outcome.truncated and new:
                    cut.append(position)

        system = self._prompts.get_text(_PROMPT)
        prompts = [_build_prompt(system, texts[position], names_by_text[position]) for position in positions]
        for outcome in self._language_model.complete(prompts, add_reply) if prompts else []:
            if isinstance(outcome, LanguageModelError):
                raise outcome
        return sorted(cut)

    def _locate_occurrences(self, entities: Sequence[Mention], text: str) -> list[Mention]:
        located: dict[tuple[int, int], Mention] = {}
        for entity in entities:
            spans = find_name_spans(entity.name, text)
            self.dropped += not spans
            for start, end in spans:
                mention = Mention(text[start:end], start, end, type=entity.type, score=entity.score)
                located.setdefault((start, -end), mention)
        return [located[key] for key in sorted(located)]


def _build_prompt(system: str, text: str, previous_names: Sequence[Mention]) -> Prompt:
    """Return the prompt that asks for the names in a text, except ``previous_names`` of a truncated reply."""
    user = quote_passage(text)
    if previous_names:
        user += (
            f"\n\n{_REST}\n{quote_replies(json.dumps([entity.name for entity in previous_names], ensure_ascii=False))}"
        )
    return Prompt(user=user, system=system, json_schema=_SCHEMA)


def _parse_entities(reply: Reply) -> list[Mention]:
    """Return the entities in a language model's reply as mentions without positions; a missing score is NaN.

    The reply is JSON in the requested form, in a fence, after a preface, or a bare list. Of a reply that was cut, the
    complete entities are returned.

    Raises:
        UnreadableReplyError: the reply has no list, or a list of something else.
    """
    listed = find_list(close_cut_json(reply.text) if reply.truncated else reply.text, "entities")
    entities = list(_parse_items(listed or []))
    if not entities and (listed != [] or reply.truncated):
        cut = " whole, and not cut at the model's limit of tokens" if reply.truncated else ""
        raise UnreadableReplyError(reply.text, f'{{"entities": [...]}}{cut}')
    return entities


def _parse_items(listed: Sequence[Any]) -> Iterator[Mention]:
    for item in listed:
        entity = normalize_keys(item) if isinstance(item, dict) else {"name": item}
        name = entity.get("name", entity.get("entity"))
        if isinstance(name, str) and name.strip():
            score = ENTITY_SCORES.parse(entity.get("importance"), Counter())
            kind = sanitize(str(entity.get("type") or ""))
            yield Mention(sanitize(name).strip(), -1, -1, type=kind, score=math.nan if score is None else score)


def _complete_scores(entities: Sequence[Mention]) -> list[Mention]:
    """Return the entities of a text with scores in (0, 100]; the median of the scores replaces missing ones."""
    stated = [None if math.isnan(entity.score) else entity.score for entity in entities]
    factor = ENTITY_SCORES.highest if are_fractions(stated) else 1.0
    scores = [ENTITY_SCORES.clip(score, factor) for score in stated]
    default = ENTITY_SCORES.compute_default(scores)
    return [
        replace(entity, score=default if score is None else score)
        for entity, score in zip(entities, scores, strict=True)
    ]
