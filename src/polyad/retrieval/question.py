"""What a question names: its mentions, the entities they link to, and what is left when these are taken out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from polyad.config import NamesLinked
from polyad.model import Mention
from polyad.protocols.components import MentionExtractor
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.similar_names import SimilarNames
from polyad.text.keys import build_argument_key, build_labelled_key, build_name_key
from polyad.text.name_matcher import EntityNameMatcher

_MOST_CALLED = 20
"""Entities that one name leads to by what facts call them; one that more share is not telling."""


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
    of words that are the name of an entity. A single word in small letters is taken for a name only where the question
    has no other.

    Args:
        snapshot: The index.
        extractor: The one the index was built with.
        similar: Links names that are no entity's to the entity with the most similar name; None for exact names only.
        names: ``found`` for names that the extractor finds and no others, each an entity's exactly.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        extractor: MentionExtractor,
        similar: SimilarNames | None = None,
        names: NamesLinked = "all",
    ) -> None:
        self._snapshot = snapshot
        self._links_all = names == "all"
        self._extractor = extractor
        self._similar = similar
        self._vocabulary = EntityNameMatcher(self._known)

    def link(self, question: str) -> LinkedQuestion:
        """Return the entities that the question names and the remaining text of the question."""
        known = self._vocabulary.find(question) if self._links_all else ()
        found = [*known, *self._extractor.extract([question])[0]]
        mentions = sorted(found, key=lambda mention: (mention.start, -mention.end))
        keys = [self._key(mention) for mention in mentions]
        rows = self._rows(keys)
        names = [key for key, mention in zip(keys, mentions, strict=True) if key in rows and not _is_plain(mention)]
        if names:  # a plain word that happens to be an entity counts only where the question has no name
            rows = {key: rows[key] for key in names}
        entities: dict[int, Mention] = {}
        linked, unlinked = [], []
        for mention, key in zip(mentions, keys, strict=True):
            if key in rows:
                for row in rows[key]:
                    entities.setdefault(row, mention)
                linked.append(mention)
            elif key:
                unlinked.append(mention)
        return LinkedQuestion(question, entities, tuple(unlinked), _without(question, linked))

    def _key(self, mention: Mention) -> str:
        """Return the key of a tuple entity with exactly this name or label, else the normalised name."""
        key, exact = build_name_key(mention.name), build_argument_key(mention.name)
        exacter = [one for one in (exact, build_labelled_key(key, mention.type)) if one != key]
        found = self._snapshot.find_entity_rows(exacter) if exacter else {}
        return next((one for one in exacter if one in found), key)

    def _known(self, keys: Iterable[str]) -> Container[str]:
        """Return the keys that are the key or a label of an entity."""
        wanted = list(keys)
        return self._snapshot.find_entity_rows(wanted).keys() | self._snapshot.find_entities_by_label(wanted).keys()

    def _rows(self, keys: Sequence[str]) -> dict[str, list[int]]:
        """Return the entity rows for each key: exact, labelled, variant and similar names. Omit unlinked keys.

        A name that facts gave beside an id stands for what is known by this id, and for what else has it as its name.
        """
        wanted = [key for key in dict.fromkeys(keys) if key]
        known, called = self._snapshot.find_entity_rows(wanted), self._snapshot.find_entities_by_label(wanted)
        left = [key for key in wanted if key not in known and key not in called]
        if self._links_all:
            known |= self._snapshot.resolve_name_variants(left)
        if self._similar:
            known |= self._similar.nearest([key for key in left if key not in known])
        return {
            key: [*([known[key]] if key in known else []), *called.get(key, [])[:_MOST_CALLED]]
            for key in wanted
            if key in known or key in called
        }


def _is_plain(mention: Mention) -> bool:
    """Return whether a mention is a single lower-case word."""
    return mention.name.islower() and len(mention.name.split()) == 1 and mention.name.isalpha()


def _without(question: str, mentions: Iterable[Mention]) -> str:
    kept = list(question)
    for mention in mentions:
        kept[mention.start : mention.end] = " " * (mention.end - mention.start)
    remainder = " ".join("".join(kept).split())
    return remainder if any(character.isalnum() for character in remainder) else question
