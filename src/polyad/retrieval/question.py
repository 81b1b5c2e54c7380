"""What a question names: its mentions, the entities they link to, and what is left when these are taken out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from polyad.model import Mention
from polyad.protocols import MentionExtractor
from polyad.retrieval.similar_names import SimilarNames
from polyad.retrieval.snapshot import Snapshot
from polyad.text.keys import entity_key
from polyad.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """A question and the entities of the index it names.

    Attributes:
        text: The question.
        entities: Row of each entity it names, with the mention that named it, in order of appearance.
        unlinked: Mentions that are no entity of the index.
        remainder: The question without the names that were linked; the question itself when nothing is left.
    """

    text: str
    entities: dict[int, Mention]
    unlinked: tuple[Mention, ...]
    remainder: str


class QuestionLinker:
    """Links the names in a question to the entities of a snapshot.

    Names are what the extractor finds and, because questions are short and badly capitalised, also the longest runs
    of words that are the name of an entity.

    Args:
        snapshot: The index.
        extractor: The one the index was built with.
        similar: Links names that are no entity's to the entity with the most similar name; None for exact names only.
    """

    def __init__(self, snapshot: Snapshot, extractor: MentionExtractor, similar: SimilarNames | None = None) -> None:
        self._snapshot = snapshot
        self._extractor = extractor
        self._similar = similar

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self._snapshot.entity_rows)

    def link(self, question: str) -> LinkedQuestion:
        """Find the entities that ``question`` names."""
        mentions = [*self._vocabulary.find(question), *self._extractor.extract([question])[0]]
        entities: dict[int, Mention] = {}
        linked, unlinked = [], []
        for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
            key = entity_key(mention.name)
            row = self._snapshot.entity_rows.get(key)
            if row is not None:
                entities.setdefault(row, mention)
                linked.append(mention)
            elif key:
                unlinked.append(mention)
        if self._similar:
            near = self._similar.nearest([entity_key(mention.name) for mention in unlinked])
            for mention in unlinked:
                row = near.get(entity_key(mention.name))
                if row is not None:
                    entities.setdefault(row, mention)
                    linked.append(mention)
            unlinked = [mention for mention in unlinked if entity_key(mention.name) not in near]
        return LinkedQuestion(question, entities, tuple(unlinked), _without(question, linked))


def _without(question: str, mentions: Iterable[Mention]) -> str:
    kept = list(question)
    for mention in mentions:
        kept[mention.start : mention.end] = " " * (mention.end - mention.start)
    remainder = " ".join("".join(kept).split())
    return remainder if any(character.isalnum() for character in remainder) else question
