"""The effect of the statements of users on one document, computed from its original passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyad.curation.statements import Retraction, Statements, Withdrawal
from polyad.model import (
    Evidence,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedDocument,
    IndexedHyperedge,
    IndexedPassage,
    RetractedFact,
    ScoredHyperedge,
    ScoredPassage,
)
from polyad.protocols.store import ORIGINALS, WITHDRAWN, Values, ValueStore
from polyad.text.json_types import format_value, parse_value
from polyad.text.keys import build_argument_key, build_name_key


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
