"""Mentions found by a language model."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

from polyad.errors import ConfigurationError, CutReplyError, LanguageModelError, UnreadableReplyError
from polyad.model import Mention, Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply
from polyad.replies.loose_json import closed, listed_under, normal_keys
from polyad.replies.schema import NUMBER, STRING, array_of, object_of
from polyad.replies.scores import ENTITY_SCORES, are_shares
from polyad.text.cleaning import sanitize
from polyad.text.counting import count_tokens
from polyad.text.locate import name_spans
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts, quoted_passage, quoted_replies

_REPLIES = 5
"""Replies about one text, each going on where the one before was cut; their names together are beyond any passage."""

_REPLY_RATIO = 1.6
"""Completion tokens for each token of a text, guessed: the names that rules find in the bundled sample, in JSON."""

_REST = "The last reply was cut off at its limit of length. List in the same form what is missing from these names:"

_PROMPT = "mentions"
_SCHEMA = object_of(entities=array_of(object_of(name=STRING, type=STRING, importance=NUMBER)))


class LanguageModelMentionExtractor:
    """Asks a language model for the names in each text, and finds them there.

    A name is located wherever it occurs; see :func:`polyad.text.locate.name_spans`. Names that do not occur in the
    text are the model's invention: they are dropped, and ``dropped`` counts them.

    Args:
        language_model: Is asked.
        prompts: What it is told.
    """

    def __init__(self, language_model: LanguageModel, prompts: Prompts = DEFAULT_PROMPTS) -> None:
        self._language_model = language_model
        self._prompts = prompts
        self.dropped = 0
        """Names that did not occur in their text, over all calls."""

    @classmethod
    def from_name(cls, rest: str, language_model: LanguageModel | None) -> Self:
        """The extractor of ``llm``, which asks the language model that is set.

        Raises:
            ConfigurationError: none is set, or there is something after a colon.
        """
        if rest:
            raise ConfigurationError(f"no mention extractor 'llm:{rest}'; expected llm, and the model with --model")
        if language_model is None:
            raise ConfigurationError("mentions 'llm' need a language model; name one with --model or POLYAD_MODEL")
        return cls(language_model)

    def asking(self, language_model: LanguageModel) -> Self:
        """The same, but for the model that is asked."""
        return type(self)(language_model, self._prompts)

    def told(self, prompts: Prompts) -> Self:
        """The same, but for what the model is told, where ``prompts`` have something of their own for it."""
        return type(self)(self._language_model, prompts) if prompts.version(_PROMPT) else self

    @property
    def prompt_version(self) -> str:
        """What tells replaced instructions apart; empty for polyad's own."""
        return self._prompts.version(_PROMPT)

    @property
    def name(self) -> str:
        """The model decides what is found, but is chosen anew with every run: a better one may go on with an index."""
        return "llm"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions in each text by ``start``, then longest first.

        Raises:
            LanguageModelError: no usable reply for one of the texts; nothing is returned for any of them then.
        """
        found: list[list[Mention]] = [[] for _ in texts]
        asked = [position for position, text in enumerate(texts) if text.strip()]
        for _ in range(_REPLIES):
            asked = self._ask(asked, texts, found)
            if not asked:
                return [self._located(_scored(entities), text) for entities, text in zip(found, texts, strict=True)]
        raise CutReplyError(
            f"the model's limit of tokens cut {_REPLIES} replies about {texts[asked[0]][:80]!r}; raise the limit at "
            "the endpoint, or lower passage_tokens"
        )

    def estimate(self, texts: Sequence[str], known: Callable[[Sequence[Prompt]], list[str | None]]) -> Usage:
        """What finding the names in ``texts`` is likely to cost: prompts are counted, replies guessed.

        Args:
            texts: That have not been looked at.
            known: Of each prompt, the reply that was paid for earlier; None where there is none.
        """
        system, total = self._prompts.text(_PROMPT), Usage()
        asked = [text for text in texts if text.strip()]
        prompts = [_prompt(system, text, ()) for text in asked]
        for text, prompt, reply in zip(asked, prompts, known(prompts), strict=True):
            if reply is None:
                sent = count_tokens(prompt.system) + count_tokens(prompt.user)
                total += Usage(1, sent, int(_REPLY_RATIO * count_tokens(text)))
        return replace(total, cost=self._language_model.cost(total.prompt_tokens, total.completion_tokens))

    def _ask(self, places: Sequence[int], texts: Sequence[str], found: list[list[Mention]]) -> list[int]:
        """Add what the model lists in the texts at some places; those of which the reply was cut and listed more."""
        cut: list[int] = []

        def take(index: int, outcome: Reply | LanguageModelError) -> None:
            if isinstance(outcome, Reply):
                place = places[index]
                known = {entity.name for entity in found[place]}
                new = [entity for entity in _entities(outcome) if entity.name not in known]
                found[place] += new
                if outcome.truncated and new:
                    cut.append(place)

        system = self._prompts.text(_PROMPT)
        prompts = [_prompt(system, texts[place], found[place]) for place in places]
        for outcome in self._language_model.complete(prompts, take) if prompts else []:
            if isinstance(outcome, LanguageModelError):
                raise outcome
        return sorted(cut)

    def _located(self, entities: Sequence[Mention], text: str) -> list[Mention]:
        located: dict[tuple[int, int], Mention] = {}
        for entity in entities:
            spans = name_spans(entity.name, text)
            self.dropped += not spans
            for start, end in spans:
                mention = Mention(text[start:end], start, end, type=entity.type, score=entity.score)
                located.setdefault((start, -end), mention)
        return [located[key] for key in sorted(located)]


def _prompt(system: str, text: str, known: Sequence[Mention]) -> Prompt:
    """Asks for the names in a text; where a reply that was cut has some, for the others."""
    user = quoted_passage(text)
    if known:
        user += f"\n\n{_REST}\n{quoted_replies(json.dumps([entity.name for entity in known], ensure_ascii=False))}"
    return Prompt(user=user, system=system, json_schema=_SCHEMA)


def _entities(reply: Reply) -> list[Mention]:
    """The entities in a reply, with a score of NaN where it gives none.

    JSON as asked for, or what models make of it (a fence, a preface, a bare list); of a reply that was cut, what is
    whole.

    Raises:
        UnreadableReplyError: there is no list in it, or it lists something else.
    """
    listed = listed_under(closed(reply.text) if reply.truncated else reply.text, "entities")
    entities = list(_valid(listed or []))
    if not entities and (listed != [] or reply.truncated):
        cut = " whole, and not cut at the model's limit of tokens" if reply.truncated else ""
        raise UnreadableReplyError(reply.text, f'{{"entities": [...]}}{cut}')
    return entities


def _valid(listed: Sequence[Any]) -> Iterator[Mention]:
    for item in listed:
        entity = normal_keys(item) if isinstance(item, dict) else {"name": item}
        name = entity.get("name", entity.get("entity"))
        if isinstance(name, str) and name.strip():
            score = ENTITY_SCORES.read(entity.get("importance"), Counter())
            kind = sanitize(str(entity.get("type") or ""))
            yield Mention(sanitize(name).strip(), -1, -1, type=kind, score=math.nan if score is None else score)


def _scored(entities: Sequence[Mention]) -> list[Mention]:
    """The entities of one text with scores in (0, 100]: where the model gives none, the one usual for the text."""
    given = [None if math.isnan(entity.score) else entity.score for entity in entities]
    factor = ENTITY_SCORES.highest if are_shares(given) else 1.0
    scores = [ENTITY_SCORES.within(score, factor) for score in given]
    usual = ENTITY_SCORES.usual(scores)
    return [
        replace(entity, score=usual if score is None else score) for entity, score in zip(entities, scores, strict=True)
    ]
