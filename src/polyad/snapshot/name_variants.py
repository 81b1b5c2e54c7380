"""Name variants: shorter names that stand for the subject of a passage.

A passage without a title is about the entity that its text defines in full: "Christopher Edward Nolan (born 1970) is
...". Other texts say "Christopher Nolan", or "director Christopher Nolan". Whether such a name identifies one subject
depends on all subjects of the index. The resolution is stored for every name, and updated for the names that an added
or deleted subject may affect.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from zlib import crc32

import numpy as np

from polyad.curation.statements import Statements
from polyad.hypergraph.sparse import expand_ranges, rank_in_group, sort_unique, union
from polyad.model import BoolArray, IntArray
from polyad.protocols.store import ReadTransaction, Store
from polyad.snapshot.columns import Column, EntityKeys
from polyad.snapshot.segments import Segment, SegmentList
from polyad.text.keys import build_argument_key, build_name_key

_MAX_SUBJECT_WORDS = 12
"""Words of the longest subject that has short forms; longer subjects are rarely names."""

_MAX_ENDING_WORDS = 100
"""Words of the longest ending of a name that is compared with subjects."""

_MIN_WORDS = 2
"""Words that a variant and its subject share at least; one word is not specific enough."""

_MAX_CANDIDATES = 100
"""Subjects compared with a name; a name that resembles more of them is not specific enough."""

_BLOCK = 1 << 15
"""Names resolved at a time when an index is built: their words are in memory meanwhile."""

Predicate = Callable[[IntArray], BoolArray]
"""Returns a flag for each entity row."""


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """All entities of an index, among which short names are resolved: their keys, and two predicates on entity rows.

    Attributes:
        keys: The keys of all entities.
        is_subject: Returns whether a passage is about each of the entities.
        is_live: Returns whether each of the entities has a hyperedge.
    """

    keys: EntityKeys
    is_subject: Predicate
    is_live: Predicate


@dataclass(frozen=True, slots=True, eq=False)
class NameVariants:
    """Maps short names to the only entity with a matching full name: "Ed Sullivan" to "Edward Sullivan".

    Attributes:
        subject_codes: Rows of subjects by the codes of their short forms, with rows that are no longer subjects.
        name_codes: Rows of names by the codes under which a subject finds them.
        subject: For each entity the row of the subject it stands for, -1 for none; int32 ``[entities]``.
        variants: For each subject its variants, with names that no longer stand for it.
    """

    subject_codes: SegmentList
    name_codes: SegmentList
    subject: Column
    variants: SegmentList

    @classmethod
    def empty(cls) -> NameVariants:
        """Return a mapping without short names, for an empty index."""
        nothing = SegmentList.empty()
        return cls(nothing, nothing, Column.empty(np.int32), nothing)

    @classmethod
    def build(cls, entities: NamedEntities, *, is_final: bool = False) -> NameVariants:
        """Resolve the names of all entities, and return the mapping from short names to full names.

        Args:
            entities: All entities of the index.
            is_final: Whether :meth:`with_changes` is never called, so that no index of all names is needed.
        """
        keys, rows = entities.keys, np.arange(len(entities.keys))
        are_subjects = entities.is_subject(rows)
        codes = _index_codes(keys, np.flatnonzero(are_subjects), _get_short_form_codes)
        nothing = SegmentList.empty()
        name_codes = nothing if is_final else nothing.append(_index_codes(keys, rows, _hash_short_name))
        names = replace(cls.empty(), subject_codes=nothing.append(codes), name_codes=name_codes)
        pruned = replace(names, subject_codes=nothing.append(_limit_entries(codes)))
        unresolved = np.flatnonzero(entities.is_live(rows) & ~are_subjects)
        entities, subject = replace(entities, is_subject=are_subjects.__getitem__), np.full(len(rows), -1, np.int32)
        for start in range(0, len(unresolved), _BLOCK):
            block = unresolved[start : start + _BLOCK]
            subject[block] = pruned.resolve(keys.strings.take(block), entities)
        resolved = np.flatnonzero(subject >= 0)
        variants = Segment.from_entries(subject[resolved].astype(np.int64), resolved)
        return replace(names, subject=Column.from_array(subject), variants=nothing.append(variants))

    def resolve(self, names: Sequence[str], entities: NamedEntities) -> IntArray:
        """Return for each short name the row of the only subject with a matching full name, or -1.

        A name that ends in a subject stands for the longest such subject: "watchman piet adler" for "piet adler",
        because extractors do not separate a person from the office. A name is short for a subject if its words occur in
        the subject in the same order and both have the same first or the same last word: "jeffrey smart" for "frank
        jeffrey edson smart". If no subject matches, the first word and initials of the name may be abbreviations: "ed
        sullivan", "ann b davis".

        Args:
            names: Entity keys that are not subjects.
            entities: All entities of the index.
        """
        words = [name.split(" ") for name in names]
        subjects = _resolve_endings(words, entities)
        unresolved = [place for place in np.flatnonzero(subjects < 0).tolist() if len(words[place]) >= _MIN_WORDS]
        for get_beginning, is_short_for in ((_get_first_word, _is_subsequence), (_get_first_letter, _abbreviates)):
            codes = [_hash_words(get_beginning(words[place]), words[place][-1]) for place in unresolved]
            candidates = self._find_candidates(codes, entities)
            unmatched = []
            for place, code in zip(unresolved, codes, strict=True):
                if len(candidates[code]) > _MAX_CANDIDATES:
                    continue
                matches = [row for row, subject in candidates[code] if is_short_for(words[place], subject)]
                if len(matches) == 1:
                    subjects[place] = matches[0]
                elif not matches:
                    unmatched.append(place)
            unresolved = unmatched
        return subjects

    def get_variants(self, subjects: IntArray) -> tuple[IntArray, IntArray]:
        """Return the short names of the entities ``subjects`` as arrays: entity row, and index in ``subjects``."""
        names, owners, _ = self.variants.get_neighbours(subjects)
        is_current = self.subject.take(names) == subjects[owners]
        width = len(self.subject)
        owners, names = np.divmod(sort_unique(owners[is_current] * width + names[is_current]), max(1, width))
        return names, owners

    def with_changes(
        self, entities: NamedEntities, changed_subjects: IntArray, changed_entities: IntArray
    ) -> tuple[NameVariants, IntArray]:
        """Resolve again the short names that changed entities affect; return (mapping, rows of the changed names).

        Args:
            entities: All entities of the index as they are now, new entities at the end.
            changed_subjects: Rows of the entities that became subjects or stopped being subjects.
            changed_entities: Rows of the entities that got their first hyperedge or lost their last one.
        """
        keys = entities.keys
        new = np.arange(len(self.subject), len(keys))
        extended = NameVariants(
            self.subject_codes.append(_index_codes(keys, changed_subjects, _get_short_form_codes)),
            self.name_codes.append(_index_codes(keys, new, _hash_short_name)),
            self.subject.append(np.full(len(new), -1, dtype=np.int32)),
            self.variants,
        )
        short_names = extended._find_names_to_resolve(changed_subjects, entities)
        affected = union([changed_subjects, changed_entities, short_names])
        names = affected[entities.is_live(affected) & ~entities.is_subject(affected)]
        after = np.full(len(affected), -1)
        after[np.searchsorted(affected, names)] = extended.resolve(keys.strings.take(names), entities)
        changed = extended.subject.take(affected) != after
        return extended._replace_subjects(affected[changed], after[changed]), affected[changed]

    def _find_candidates(
        self, codes: Sequence[int], entities: NamedEntities
    ) -> defaultdict[int, list[tuple[int, list[str]]]]:
        """Return the full names that may match short names, by the short names' hash ``codes``, as (row, words) pairs.

        At most one more than :data:`_MAX_CANDIDATES` are returned, which shows that the limit is exceeded.
        """
        unique = sorted(set(codes))
        places, rows = self._find_subjects(unique, entities)
        is_listed = rank_in_group(places) <= _MAX_CANDIDATES
        places, rows = places[is_listed], rows[is_listed]
        subjects = sort_unique(rows)
        words = {
            row: key.split(" ")
            for row, key in zip(subjects.tolist(), entities.keys.strings.take(subjects), strict=True)
        }
        candidates: defaultdict[int, list[tuple[int, list[str]]]] = defaultdict(list)
        for place, row in zip(places.tolist(), rows.tolist(), strict=True):
            candidates[unique[place]].append((row, words[row]))
        return candidates

    def _find_subjects(self, codes: Sequence[int], entities: NamedEntities) -> tuple[IntArray, IntArray]:
        """Return the subjects with a short form (such as "Ed Sullivan") of one of the hash ``codes``.

        Returns:
            Two parallel arrays, sorted and unique: index in ``codes``, and entity row.
        """
        rows, places, _ = self.subject_codes.get_neighbours(np.array(codes, dtype=np.uint64))
        unique = sort_unique(rows)
        is_current = entities.is_subject(unique)[unique.searchsorted(rows)]
        width = max(1, int(rows.max(initial=0)) + 1)
        return np.divmod(sort_unique(places[is_current] * width + rows[is_current]), width)

    def _find_names_to_resolve(self, changed_subjects: IntArray, entities: NamedEntities) -> IntArray:
        """Return the rows of the short names whose full name may change because ``changed_subjects`` changed.

        These names end in a changed subject or are a short form of a changed subject. If a code passes the limit of
        candidates, all names with the code are affected. The rows are in any order.
        """
        changed: defaultdict[int, list[list[str]]] = defaultdict(list)
        keys = entities.keys
        subject_keys = tuple(keys.strings.take(changed_subjects))
        for words in (key.split(" ") for key in subject_keys):
            for code in _get_short_form_codes(words) | _get_ending_codes(words):
                changed[code].append(words)
        codes = sorted(changed)
        counts = np.bincount(self._find_subjects(codes, entities)[0], minlength=len(codes))
        changes = np.array([len(changed[code]) for code in codes], dtype=np.int64)
        stays_in_limit = counts + changes <= _MAX_CANDIDATES
        stays_over_limit = counts - changes > _MAX_CANDIDATES
        passes_limit = (~(stays_in_limit | stays_over_limit)).tolist()
        subject_words = sorted({word for key in subject_keys for word in key.split(" ")})
        rows, places, _ = self.name_codes.get_neighbours(np.array(codes, dtype=np.uint64))
        names = [
            row
            for place, row, key in zip(places.tolist(), rows.tolist(), keys.strings.take(rows), strict=True)
            if passes_limit[place]
            # The cheap test on the first word or the ending comes before the comparison of words.
            or (
                (_begins_a_word(key.partition(" ")[0], subject_words) or key.endswith(subject_keys))
                and _may_stand_for(key, changed[codes[place]])
            )
        ]
        return np.array(names, dtype=np.int64)

    def _replace_subjects(self, names: IntArray, subjects: IntArray) -> NameVariants:
        is_resolved = subjects >= 0
        variants = self.variants.append(Segment.from_entries(subjects[is_resolved], names[is_resolved]))
        return replace(self, subject=self.subject.replace(names, subjects), variants=variants)


def _resolve_endings(names: Sequence[Sequence[str]], entities: NamedEntities) -> IntArray:
    """Return for each name the row of the longest full name at its end ("director Christopher Nolan"), or -1.

    Only subjects have full names.
    """
    subjects = np.full(len(names), -1)
    endings = [
        (place, " ".join(words[start:]))
        for place, words in enumerate(names)
        for start in range(max(1, len(words) - _MAX_ENDING_WORDS), len(words) - _MIN_WORDS + 1)
    ]
    rows = entities.keys.find_rows([ending for _, ending in endings])
    matches = [(place, row) for (place, _), row in zip(endings, rows.tolist(), strict=True) if row >= 0]
    are_subjects = entities.is_subject(np.array([row for _, row in matches], dtype=np.int64)).tolist()
    for (place, row), matches_subject in zip(matches, are_subjects, strict=True):
        if matches_subject and subjects[place] < 0:  # longer endings come first
            subjects[place] = row
    return subjects


def _index_codes(keys: EntityKeys, rows: IntArray, get_codes: Callable[[Sequence[str]], Iterable[int]]) -> Segment:
    """Return the entity names ``rows`` by hash code; ``get_codes`` maps a name's words to its hash codes."""
    codes, ends = array("Q"), array("q")
    for start in range(0, len(rows), _BLOCK):
        for key in keys.strings.take(rows[start : start + _BLOCK]):
            codes.extend(get_codes(key.split(" ")))
            ends.append(len(codes))
    return Segment.from_entries(np.array(codes), np.repeat(rows, np.diff(ends, prepend=0)))


def _limit_entries(codes: Segment) -> Segment:
    """Return the codes of short names with at most :data:`_MAX_CANDIDATES` + 1 entities each.

    The last one shows that the limit is exceeded.
    """
    counts = np.minimum(np.diff(codes.offsets), _MAX_CANDIDATES + 1)
    places = expand_ranges(codes.offsets[:-1], counts)
    return Segment(codes.keys, np.append(0, counts.cumsum()), codes.rows[places], codes.weights[places])


def _get_short_form_codes(words: Sequence[str]) -> set[int]:
    """Return the hash codes of a full name's possible short forms: two of its words, one of them the first or last."""
    if not _MIN_WORDS <= len(words) <= _MAX_SUBJECT_WORDS:
        return set()
    ends = {(words[0], word) for word in words[1:]} | {(word, words[-1]) for word in words[:-1]}
    return {_hash_words(first, last) for word, last in ends for first in (word, word[0])}


def _get_ending_codes(words: Sequence[str]) -> set[int]:
    """Return a set with the hash code of a name's last two words; an empty set for a single word."""
    return {2**32 + _hash_words(words[-2], words[-1])} if len(words) >= _MIN_WORDS else set()


def _hash_short_name(words: Sequence[str]) -> set[int]:
    """Return the hashes under which a short name such as "J. Smith" is listed, so that its full names find it."""
    if len(words) < _MIN_WORDS:
        return set()
    return {_hash_words(words[0], words[-1]), _hash_words(words[0][0], words[-1])} | _get_ending_codes(words)


def _hash_words(first: str, last: str) -> int:
    return crc32(f"{first} {last}".encode("utf-8", "surrogatepass"))


def _get_first_word(words: Sequence[str]) -> str:
    return words[0]


def _get_first_letter(words: Sequence[str]) -> str:
    return words[0][0]


def _may_stand_for(key: str, subjects: Iterable[Sequence[str]]) -> bool:
    """Return whether the name ``key`` may be a short form of one of the full names ``subjects``."""
    name = key.split(" ")
    return any(name[-len(subject) :] == subject or _abbreviates(name, subject) for subject in subjects)


def _begins_a_word(prefix: str, sorted_words: Sequence[str]) -> bool:
    """Return whether one of the ``sorted_words`` begins with ``prefix``: the first word that is not before it does."""
    place = bisect_left(sorted_words, prefix)
    return place < len(sorted_words) and sorted_words[place].startswith(prefix)


def _is_subsequence(short: Sequence[str], long: Sequence[str]) -> bool:
    """Return whether ``long`` contains all words of ``short`` in the same order."""
    remaining = iter(long)
    return all(word in remaining for word in short)


def _abbreviates(short: Sequence[str], long: Sequence[str]) -> bool:
    """Return whether ``short`` abbreviates ``long``: the same words in order, each whole or shortened.

    The first word and single letters of ``short`` match any word that begins with them.
    """
    start = 0
    for place, word in enumerate(short):
        is_prefix = place == 0 or len(word) == 1
        last = len(long) - (len(short) - place)
        while start <= last and not (long[start] == word or (is_prefix and long[start].startswith(word))):
            start += 1
        if start > last:
            return False
        start += 1
    return True


class EntityLabels:
    """A lookup of entities by label: a name that the user's data state beside the entity's id.

    Thread-safe; snapshots share an instance until a hyperedge is deleted.

    Labels are read from the store when they are first needed.
    """

    def __init__(self) -> None:
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._last_read = 0
        self._reading = Lock()

    def find_keys(self, labels: Iterable[str], store: Store, last_hyperedge: int) -> dict[str, Sequence[str]]:
        """Return for each label (another name of an entity) the sorted keys of the entities that have this label.

        Args:
            labels: The labels as name keys (normalised names).
            store: The store, from which labels of new hyperedges are read.
            last_hyperedge: Primary key of the last hyperedge of the snapshot.
        """
        if self._last_read < last_hyperedge:
            with store.read_transaction() as transaction, self._reading:
                self._read(transaction, last_hyperedge)
        return {label: sorted(self._keys[label]) for label in labels if label in self._keys}

    def _read(self, transaction: ReadTransaction, last: int) -> None:
        for value, names in transaction.entity_names(self._last_read, last):
            for name in names:
                self._keys[build_name_key(name)].add(build_argument_key(value))
        self._last_read = max(self._last_read, last)


class EntityNames:
    """A lookup of entities by label, or by the user's alias.

    Args:
        labels: Labels of entities; None for those of the store.
    """

    def __init__(self, labels: EntityLabels | None = None) -> None:
        self._labels = labels or EntityLabels()
        self._aliases: Mapping[str, Sequence[str]] | None = None

    def renew(self, *, keep_labels: bool) -> EntityNames:
        """Return a lookup with empty caches, for a later snapshot; with ``keep_labels``, the read labels are reused."""
        return EntityNames(self._labels if keep_labels else None)

    def find_labelled(self, names: Iterable[str], store: Store, last_hyperedge: int) -> dict[str, Sequence[str]]:
        """Return for each name the keys of the entities with this label or alias; read labels up to ``last_hyperedge``.

        Args:
            names: The name keys (normalised names) of labels or aliases.
            store: The store.
            last_hyperedge: Primary key of the last hyperedge of the snapshot.
        """
        requested = list(names)
        if self._aliases is None:
            statements = Statements.load(store)
            self._aliases = {key: [statements.resolve(key)] for key in statements.aliases}
        labelled = self._labels.find_keys(requested, store, last_hyperedge)
        return labelled | {name: self._aliases[name] for name in requested if name in self._aliases}
