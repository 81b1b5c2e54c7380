"""The corrections of users, and the effect of the corrections on one document, computed from the original passages."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from polyad.errors import ConfigurationError, StoreError
from polyad.model import (
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    MetadataValue,
    RetractedFact,
    ScoredHyperedge,
    ScoredPassage,
)
from polyad.protocols.store import ORIGINALS, WITHDRAWN, Values, ValueStore
from polyad.text.filters import is_selected, list_document_fields, parse_filter
from polyad.text.json_types import format_value, parse_value
from polyad.text.keys import build_argument_key, build_name_key

RETRACTIONS: Final = "retractions"
"""Namespace of retractions, by :attr:`Retraction.key`."""

ALIASES: Final = "aliases"
"""Namespace of aliases: JSON of :class:`Alias` by the entity key of the alias."""

DISABLED: Final = "disabled"
"""Namespace of disabled documents: the reason by document id."""

_WORD = re.compile(r"\w+")


def normalize_fact(text: str) -> str:
    """Return the words of a fact in lower case without punctuation, by which two extractions of a fact are compared.

    >>> normalize_fact("The bell, cast in 1702,  weighs 3 t.")
    'the bell cast in 1702 weighs 3 t'
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Retraction:
    """A user's statement that facts are wrong, or that an entity does not belong to these facts.

    A fact is recognised by its words, or by the sentence it comes from and its members, so that a retraction survives
    another extraction of the same sentence. An empty attribute selects everything; at least one attribute is not empty.

    Attributes:
        reason: Why, in the user's words.
        recorded: When it was stated, in ISO 8601.
        document_id: The document of the fact.
        fact: The words of the fact; see :func:`normalize_fact`.
        sentence: The words of the text that the fact comes from.
        members: The sorted entity keys of the fact, before aliases.
        entity: Key of the entity to withdraw from the selected facts; empty to withdraw the facts.
        role: Role of the entity; empty for any role.
        where: Text of a filter of documents.
    """

    reason: str
    recorded: str
    document_id: str = ""
    fact: str = ""
    sentence: str = ""
    members: tuple[str, ...] = ()
    entity: str = ""
    role: str = ""
    where: str = ""

    @property
    def key(self) -> str:
        """The storage key of the retraction: a JSON list of the attributes that select facts."""
        return json.dumps([self.document_id, self.fact, self.entity, self.role, self.where], ensure_ascii=False)

    def selects(self, fact: IndexedHyperedge, passage_text: str) -> bool:
        """Return whether the retraction applies to ``fact``, a hyperedge of a passage with the text ``passage_text``.

        The document of the fact is not checked.
        """
        if not self.fact:
            return True
        edge = fact.hyperedge
        if normalize_fact(edge.text) == self.fact:
            return True
        is_same_sentence = normalize_fact(passage_text[edge.start : edge.end]) == self.sentence
        return is_same_sentence and list_members(fact) == self.members


@dataclass(frozen=True, slots=True)
class Alias:
    """A user's statement that one name denotes the same entity as another name.

    Attributes:
        name: The alias, as the user wrote it.
        target: Key of the entity.
        target_name: Name of the entity, as the user wrote it.
        recorded: When it was stated, in ISO 8601.
    """

    name: str
    target: str
    target_name: str
    recorded: str


def list_members(fact: IndexedHyperedge) -> tuple[str, ...]:
    """Return the sorted, distinct entity keys (normalised names) of the members of a fact."""
    return tuple(sorted({part.entity_key for part in fact.incidences}))


@dataclass(frozen=True, slots=True)
class Statements:
    """All corrections of users in an index: retractions, aliases and disabled documents.

    Attributes:
        retractions: Retractions by key.
        aliases: Aliases by the entity key of the alias.
        disabled: Reasons by id of disabled documents.
    """

    retractions: Mapping[str, Retraction] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    disabled: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, store: ValueStore) -> Statements:
        """Load the corrections of users (retractions, aliases, disabled documents) from a store.

        Raises:
            StoreError: A statement cannot be parsed.
        """
        return cls.parse(load_statement_values(store))

    @classmethod
    def parse(cls, values: Values) -> Statements:
        """Parse the corrections of users from stored key-value pairs.

        Raises:
            StoreError: A statement cannot be parsed.
        """
        try:
            return cls._parse(values)
        except ValueError as error:
            raise StoreError(f"a correction in the index is damaged: {error}; restore a backup") from error

    @classmethod
    def _parse(cls, values: Values) -> Statements:

        def items(name: str) -> list[tuple[str, bytes]]:
            return [(key, value) for key, value in sorted(values.get(name, {}).items()) if value is not None]

        return cls(
            {key: parse_value(json.loads(value), Retraction) for key, value in items(RETRACTIONS)},
            {key: parse_value(json.loads(value), Alias) for key, value in items(ALIASES)},
            {key: value.decode() for key, value in items(DISABLED)},
        )

    def format(self) -> Values:
        """Return the corrections as key-value pairs to store, by namespace (retractions, aliases, disabled)."""
        return {
            RETRACTIONS: {key: _to_bytes(retraction) for key, retraction in self.retractions.items()},
            ALIASES: {key: _to_bytes(alias) for key, alias in self.aliases.items()},
            DISABLED: {id: reason.encode() for id, reason in self.disabled.items()},
        }

    def difference(self, earlier: Statements) -> Values:
        """Return the key-value pairs that change stored ``earlier`` corrections into these; None deletes a key."""
        changed = Statements(
            _select_different(self.retractions, earlier.retractions),
            _select_different(self.aliases, earlier.aliases),
            _select_different(self.disabled, earlier.disabled),
        ).format()
        removed = {
            RETRACTIONS: earlier.retractions.keys() - self.retractions.keys(),
            ALIASES: earlier.aliases.keys() - self.aliases.keys(),
            DISABLED: earlier.disabled.keys() - self.disabled.keys(),
        }
        return {name: {**changed[name], **dict.fromkeys(removed[name])} for name in changed}

    def resolve(self, key: str) -> str:
        """Return the key of the entity that the alias ``key`` denotes; ``key`` itself if it is no alias."""
        return self.list_targets(key)[-1]

    def list_targets(self, key: str) -> list[str]:
        """Return the chain of entity keys that ``key`` stands for as an alias: ``key``, its target, and so on."""
        keys = [key]
        while alias := self.aliases.get(keys[-1]):
            keys.append(alias.target)
        return keys

    def add_alias(self, key: str, alias: Alias) -> Mapping[str, Alias]:
        """Return a dictionary of all aliases by key, with the new ``alias`` under ``key``.

        Raises:
            ConfigurationError: The alias is the entity's own name, stands for another entity, or closes a cycle.
        """
        earlier = self.aliases.get(key)
        if earlier is not None and earlier.target != alias.target:
            raise ConfigurationError(
                f"{alias.name!r} is an alias of {earlier.target_name!r} already; remove it first: "
                f"polyad alias {shlex.quote(f'--remove={alias.name}')}"
            )
        if self.resolve(alias.target) == key:
            raise ConfigurationError(f"{alias.target_name!r} already stands for {alias.name!r}; expected no cycle")
        return {**self.aliases, key: alias}

    def select_retractions(self, document: IndexedDocument) -> list[Retraction]:
        """Return the retractions whose document id and metadata filter match a document."""
        fields: Mapping[str, MetadataValue] | None = None
        selected = []
        for _, retraction in sorted(self.retractions.items()):
            if retraction.document_id not in ("", document.document.id):
                continue
            if retraction.where:
                fields = fields or list_document_fields(document.document.id, document.document)
                if not is_selected(parse_filter(retraction.where), fields):
                    continue
            selected.append(retraction)
        return selected


def _select_different(values: Mapping[str, ValueT], earlier: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Return the values that are new or differ from the earlier value of the same key."""
    return {key: value for key, value in values.items() if key not in earlier or earlier[key] != value}


def load_statement_values(store: ValueStore) -> Values:
    """Return the key-value pairs of all corrections of users, by namespace, as they are stored."""
    return {name: store.get_values(name) for name in (RETRACTIONS, ALIASES, DISABLED)}


def _to_bytes(statement: Retraction | Alias) -> bytes:
    return json.dumps(format_value(statement), ensure_ascii=False).encode()


# Effects of the corrections on one document


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A fact that a user's retraction removed, or the entities that a retraction removed from a fact.

    Attributes:
        document_id, passage_id, hyperedge_id: Where the fact stands. The passage may still state it.
        start, end: Offsets in the document of the text that the fact comes from.
        text: The text of the fact.
        entities: Names of the removed entities; empty if the whole fact was removed.
        reason: The reason that the user gave.
        retraction: Key of the retraction.
    """

    document_id: str
    passage_id: str
    hyperedge_id: str
    start: int
    end: int
    text: str
    entities: tuple[str, ...]
    reason: str
    retraction: str


@dataclass(frozen=True, slots=True)
class Effects:
    """The changes that the retractions and aliases of users made in one document.

    Attributes:
        withdrawals: Facts, and entities of facts, that retractions removed.
        retractions: Keys of the retractions that removed something.
        aliases: Entity keys of the aliases that the document names.
        kinds: Kind of the first hyperedge before the changes; at most one.
    """

    withdrawals: tuple[Withdrawal, ...] = ()
    retractions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    kinds: tuple[HyperedgeKind, ...] = ()


@dataclass(frozen=True, slots=True)
class CorrectedDocument:
    """A document after the user's retractions and aliases were applied, with the original passages and the changes.

    Attributes:
        document: The document as it is stored.
        originals: The passages that were changed or removed, as they were built.
        effects: The changes.
    """

    document: IndexedDocument
    originals: tuple[IndexedPassage, ...] = ()
    effects: Effects = Effects()


def correct_document(document: IndexedDocument, statements: Statements) -> CorrectedDocument:
    """Return a document with retractions and aliases applied; a disabled document loses all passages."""
    first = next((edge.hyperedge.kind for item in document.passages for edge in item.hyperedges), None)
    kinds = () if first is None else (first,)
    if document.document.id in statements.disabled:
        return CorrectedDocument(replace(document, passages=()), document.passages, Effects(kinds=kinds))
    corrector = _Corrector(statements, statements.select_retractions(document))
    passages = tuple(map(corrector.correct_passage, document.passages))
    originals = tuple(
        original
        for original, passage in zip(document.passages, passages, strict=True)
        if original.hyperedges != passage.hyperedges
    )
    effects = Effects(
        tuple(corrector.withdrawals), tuple(sorted(corrector.retractions)), tuple(sorted(corrector.aliases)), kinds
    )
    return CorrectedDocument(replace(document, passages=passages), originals, effects)


def collect_values(corrected: Sequence[CorrectedDocument]) -> Values:
    """Return the key-value pairs to store beside corrected documents: the original passages, and the changes.

    An unchanged document has none: the store deletes the earlier values with the replaced document.
    """
    changed = {item.document.document.id: item for item in corrected if item.originals}
    if not changed:
        return {}
    return {
        ORIGINALS: {id: json.dumps(list(map(format_value, item.originals))).encode() for id, item in changed.items()},
        WITHDRAWN: {id: json.dumps(format_value(item.effects)).encode() for id, item in changed.items()},
    }


class _Corrector:
    """Applies retractions and aliases to the passages of one document, and records the changes."""

    def __init__(self, statements: Statements, retractions: Sequence[Retraction]) -> None:
        self._statements = statements
        self._retractions = retractions
        self.withdrawals: list[Withdrawal] = []
        self.retractions: set[str] = set()
        self.aliases: set[str] = set()

    def correct_passage(self, item: IndexedPassage) -> IndexedPassage:
        """Return a passage with retractions and aliases applied; the same object if nothing changes."""
        if not self._retractions and not self._statements.aliases:
            return item
        hyperedges = [self._correct_hyperedge(edge, item) for edge in item.hyperedges]
        if all(new is old for new, old in zip(hyperedges, item.hyperedges, strict=True)):
            return item
        return replace(item, hyperedges=tuple(edge for edge in hyperedges if edge is not None))

    def _correct_hyperedge(self, fact: IndexedHyperedge, item: IndexedPassage) -> IndexedHyperedge | None:
        """Return the hyperedge ``fact`` of a passage with retractions and aliases applied; None if it was retracted."""
        keys = {key for part in fact.incidences for key in self._statements.list_targets(part.entity_key)}
        self.aliases |= keys & self._statements.aliases.keys()
        selecting = [one for one in self._retractions if one.selects(fact, item.passage.text)]
        for retraction in selecting:
            if not retraction.entity:
                self._withdraw(retraction, fact.hyperedge, item, ())
                return None
        incidences, hyperedge = list(fact.incidences), fact.hyperedge
        for retraction in selecting:
            removed = [part for part in incidences if self._is_withdrawn(part, fact.hyperedge, retraction)]
            if removed:
                incidences = [part for part in incidences if part not in removed]
                hyperedge = _drop_arguments(hyperedge, removed)
                self._withdraw(retraction, fact.hyperedge, item, tuple(sorted({part.name for part in removed})))
        if fact.incidences and not incidences:
            return None
        resolved = self._resolve_aliases(incidences)
        if resolved == fact.incidences:
            return fact
        return replace(fact, hyperedge=hyperedge, incidences=resolved)

    def _withdraw(
        self, retraction: Retraction, edge: Hyperedge, item: IndexedPassage, entities: tuple[str, ...]
    ) -> None:
        self.retractions.add(retraction.key)
        passage = item.passage
        place = passage.start + edge.start, passage.start + edge.end
        self.withdrawals.append(
            Withdrawal(
                passage.document_id,
                passage.id,
                edge.id,
                *place,
                edge.text,
                entities,
                retraction.reason,
                retraction.key,
            )
        )

    def _is_withdrawn(self, part: Incidence, edge: Hyperedge, retraction: Retraction) -> bool:
        """Return whether a retraction removes the member ``part`` of a hyperedge, also under an alias."""
        is_entity = retraction.entity in self._statements.list_targets(part.entity_key)
        return is_entity and has_role(part, edge, retraction.role)

    def _resolve_aliases(self, incidences: Sequence[Incidence]) -> tuple[Incidence, ...]:
        """Return the members of a hyperedge, with each alias replaced by the entity that the alias denotes.

        Of several incidences of one entity and role, the one with the best score remains.
        """
        if self._statements.aliases.keys().isdisjoint(part.entity_key for part in incidences):
            return tuple(incidences)
        merged: dict[tuple[str, str], Incidence] = {}
        for part in incidences:
            resolved = replace(part, entity_key=self._statements.resolve(part.entity_key))
            place = resolved.entity_key, resolved.role
            if place not in merged or merged[place].score < resolved.score:
                merged[place] = resolved
        return tuple(merged.values())


def has_role(part: Incidence, edge: Hyperedge, role: str) -> bool:
    """Return whether the member ``part`` has ``role`` in a hyperedge; an empty ``role`` stands for any role.

    In an extracted fact with a relation, the type of the entity counts as its role.
    """
    return role in ("", part.role) or (bool(edge.relation) and role == part.type)


def _drop_arguments(edge: Hyperedge, removed: Sequence[Incidence]) -> Hyperedge:
    """Return a fact without the arguments (roles with values) whose values are the entities ``removed``.

    The roles of members and arguments differ in an extracted fact.
    """
    if edge.kind is HyperedgeKind.FACT:
        keys = {part.entity_key for part in removed}
        remaining = tuple(one for one in edge.arguments if build_name_key(one.value) not in keys)
    else:
        members = {(part.entity_key, part.role) for part in removed}
        remaining = tuple(one for one in edge.arguments if (build_argument_key(one.value), one.role) not in members)
    return replace(edge, arguments=remaining)


def load_originals(store: ValueStore, document_ids: Sequence[str]) -> dict[str, list[IndexedPassage]]:
    """Return the passages of documents as they were before user corrections changed them, by document id."""
    return {
        id: [parse_value(tree, IndexedPassage, id) for tree in json.loads(value)]
        for id, value in store.get_values(ORIGINALS, document_ids).items()
    }


def load_effects(store: ValueStore, document_ids: Sequence[str] | None = None) -> dict[str, Effects]:
    """Return the changes that user corrections made in documents, by document id."""
    stored = store.get_values(WITHDRAWN, document_ids)
    return {id: parse_value(json.loads(value), Effects) for id, value in sorted(stored.items())}


def mark_retracted(evidence: Evidence, store: ValueStore) -> Evidence:
    """Return a search result in which passages and hyperedges list what users retracted from them."""
    owners = [scored.hyperedge.passage_id.rpartition("#")[0] for scored in evidence.hyperedges]
    ids = sorted({*owners, *(hit.passage.document_id for hit in evidence.passages)})
    effects = load_effects(store, ids) if ids else {}
    if not effects:
        return evidence
    return replace(
        evidence,
        passages=tuple(_mark_passage(hit, effects) for hit in evidence.passages),
        hyperedges=tuple(
            _mark_hyperedge(scored, effects[id]) if id in effects else scored
            for id, scored in zip(owners, evidence.hyperedges, strict=True)
        ),
    )


def _mark_hyperedge(scored: ScoredHyperedge, effects: Effects) -> ScoredHyperedge:
    facts = (
        RetractedFact(one.text, one.entities, one.reason)
        for one in effects.withdrawals
        if one.hyperedge_id == scored.hyperedge.id
    )
    return replace(scored, retracted=tuple(dict.fromkeys(facts)))


def _mark_passage(hit: ScoredPassage, effects: Mapping[str, Effects]) -> ScoredPassage:
    passage = hit.passage
    withdrawals = effects[passage.document_id].withdrawals if passage.document_id in effects else ()
    facts = (
        RetractedFact(one.text, one.entities, one.reason)
        for one in withdrawals
        if one.start < passage.end and passage.start < one.end
    )
    return replace(hit, retracted=tuple(dict.fromkeys(facts)))


def restore_originals(document: IndexedDocument, originals: Sequence[IndexedPassage]) -> IndexedDocument:
    """Return a stored document in which ``originals`` replace the passages that user corrections changed."""
    by_id = {item.passage.id: item for item in (*document.passages, *originals)}
    passages = sorted(by_id.values(), key=lambda item: int(item.passage.id.rpartition("#")[2]))
    return replace(document, passages=tuple(passages))
