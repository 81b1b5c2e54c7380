"""Links the names in a question to entities of the index, and removes these names from the question's text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from polyad.config import NamesLinked
from polyad.errors import MentionExtractorError
from polyad.hypergraph.sparse import compute_cosines
from polyad.model import Mention
from polyad.protocols.components import Embedder, MentionExtractor, report_failure
from polyad.protocols.snapshot import Snapshot
from polyad.text.keys import EntityNameMatcher, build_argument_key, build_labelled_key, build_name_key
from polyad.text.words import extract_query_terms

_MAX_LABELLED_ENTITIES = 20
"""Entities that a label of tuples links to at most."""

MAX_CANDIDATES = 32
"""Entity names compared with a mention; a word of more entities is too frequent."""


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """A question with the entities that its names refer to, and the remainder of its text without these names.

    Attributes:
        text: The question.
        entities: Mention by row number of the named entity, in order of appearance.
        unlinked: Mentions that name no entity of the index.
        remainder: The question without the linked names; the whole question if nothing remains.
    """

    text: str
    entities: dict[int, Mention]
    unlinked: tuple[Mention, ...]
    remainder: str

    @property
    def lacks_proper_names(self) -> bool:
        """Whether the question has capitals but no capitalised names, as in "How do I import a file?"."""
        names = [mention.name for mention in (*self.entities.values(), *self.unlinked)]
        return self.text != self.text.lower() and all(map(str.islower, names))


@dataclass(frozen=True, slots=True)
class SimilarNames:
    """Finds the entity whose name is most similar, by cosine, to a name that is not in the index.

    Only entities that share the rarest word of the name are compared. They are embedded at each search, because an
    index need not hold entity vectors.

    Attributes:
        embedder: Embeds the names.
        threshold: Lowest cosine of two names for the same thing, in (0, 1].
    """

    embedder: Embedder
    threshold: float

    def find_nearest(self, keys: Sequence[str], snapshot: Snapshot) -> dict[str, int]:
        """Return the row of the entity with the most similar name, for each of ``keys`` (normalised names).

        Keys without a similar name are omitted.
        """
        candidates = {key: rows for key in keys if (rows := _find_candidates(key, snapshot))}
        if not candidates:
            return {}
        rows = list({row for candidate_rows in candidates.values() for row in candidate_rows})
        key_by_row = dict(zip(rows, snapshot.ids("entity", rows), strict=True))
        names = list(dict.fromkeys([*candidates, *(key_by_row[row] for rows in candidates.values() for row in rows)]))
        vectors = dict(zip(names, self.embedder.encode(names, "query"), strict=True))
        linked = {}
        for key, candidate_rows in candidates.items():
            ranked = [
                (-float(compute_cosines(vectors[key_by_row[row]][None], vectors[key])[0]), key_by_row[row], row)
                for row in candidate_rows
            ]
            negative_cosine, _, row = min(ranked)
            if -negative_cosine >= self.threshold:
                linked[key] = row
        return linked


def _find_candidates(key: str, snapshot: Snapshot) -> list[int]:
    """Return the entities whose names contain the rarest word of ``key``; none if many names contain it."""
    postings = snapshot.find_entities("word", key.split())
    rarest = min(postings.values(), key=len, default=[])
    return rarest if len(rarest) <= MAX_CANDIDATES else []


@dataclass(frozen=True, slots=True)
class QuestionLinker:
    """Finds the entities of a snapshot to which the names in a question refer (entity linking).

    Names are the mentions of the extractor and, because questions are short and badly capitalised, the longest runs of
    words that are the name of an entity. A single lower-case word counts as a name only if the question has no other.

    Attributes:
        extractor: Extracts the names in the question.
        names: ``found`` to link only the extractor's mentions, and only exact names.
        similar_names: Links other names to the entity with the most similar name; None for exact names only.
    """

    extractor: MentionExtractor
    names: NamesLinked = "all"
    similar_names: SimilarNames | None = None

    def link(self, question: str, snapshot: Snapshot) -> LinkedQuestion:
        """Return the question with the entities that it names, and its text without their names."""
        matcher = EntityNameMatcher(partial(_select_entity_names, snapshot))
        entity_names = matcher.find(question) if self.names == "all" else ()
        with report_failure(MentionExtractorError, f"the mention extractor {self.extractor.name!r}"):
            extracted = self.extractor.extract([question])[0]
        mentions = sorted([*entity_names, *extracted], key=lambda mention: (mention.start, -mention.end))
        keys = [_build_key(mention, snapshot) for mention in mentions]
        rows = self._find_rows(keys, snapshot)
        names = [key for key, mention in zip(keys, mentions, strict=True) if key in rows and not _is_lowercase(mention)]
        if names:  # a plain word counts only if the question has no name
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
        return LinkedQuestion(question, entities, tuple(unlinked), _remove_mentions(question, linked))

    def _find_rows(self, keys: Sequence[str], snapshot: Snapshot) -> dict[str, list[int]]:
        """Return the entity rows of each key: by exact key, label (further name), full name or similar name.

        Keys without an entity are omitted.

        A label that tuples give to an entity id links to this entity and to entities with the label as their name.
        """
        distinct = [key for key in dict.fromkeys(keys) if key]
        row_by_key = snapshot.find_rows("entity", distinct)
        labelled = snapshot.find_entities("label", distinct)
        missing = [key for key in distinct if key not in row_by_key and key not in labelled]
        if self.names == "all":
            variants = snapshot.find_entities("variant", missing)
            row_by_key |= {key: row for key, (row,) in variants.items()}
        if self.similar_names:
            row_by_key |= self.similar_names.find_nearest([key for key in missing if key not in row_by_key], snapshot)
        return {
            key: [*([row_by_key[key]] if key in row_by_key else []), *labelled.get(key, [])[:_MAX_LABELLED_ENTITIES]]
            for key in distinct
            if key in row_by_key or key in labelled
        }


def _build_key(mention: Mention, snapshot: Snapshot) -> str:
    """Return the entity key of a name in the question: its exact spelling if that is a key, else normalised."""
    key, exact = build_name_key(mention.name), build_argument_key(mention.name)
    candidates = [candidate for candidate in (exact, build_labelled_key(key, mention.type)) if candidate != key]
    rows = snapshot.find_rows("entity", candidates) if candidates else {}
    return next((candidate for candidate in candidates if candidate in rows), key)


def _select_entity_names(snapshot: Snapshot, names: Iterable[str]) -> Container[str]:
    """Return the subset of ``names`` that are keys or labels (further names) of entities in the index."""
    name_list = list(names)
    return snapshot.find_rows("entity", name_list).keys() | snapshot.find_entities("label", name_list).keys()


def _is_lowercase(mention: Mention) -> bool:
    """Return whether a mention (name in the question) is a single word in lower case, which is rarely a name."""
    return mention.name.islower() and len(mention.name.split()) == 1 and mention.name.isalpha()


def _remove_mentions(question: str, mentions: Iterable[Mention]) -> str:
    characters = list(question)
    for mention in mentions:
        characters[mention.start : mention.end] = " " * (mention.end - mention.start)
    remainder = " ".join("".join(characters).split())
    return remainder if any(character.isalnum() for character in remainder) else question


def replace_aliases(texts: Iterable[str], question: LinkedQuestion, snapshot: Snapshot) -> list[str]:
    """Replace aliases in ``texts``, which are names that no passage contains, by the names of their entities.

    An embedder does not know what an alias such as ``Q42`` stands for.
    """
    keys = dict(zip(question.entities, snapshot.ids("entity", list(question.entities)), strict=True))
    names = {
        question.text[mention.start : mention.end]: keys[row] for row, mention in reversed(question.entities.items())
    }
    unknown = {name: key for name, key in names.items() if not _is_contained(name, snapshot)}
    if not unknown:
        return list(texts)
    longest_first = sorted(unknown, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)")
    return [pattern.sub(lambda match: unknown[match[1]], text) for text in texts]


def _is_contained(name: str, snapshot: Snapshot) -> bool:
    return bool(snapshot.document_frequencies(extract_query_terms(name)).all())
