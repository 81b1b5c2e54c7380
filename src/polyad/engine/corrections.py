"""Corrections by users: retracted facts, aliases of entities and disabled documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from polyad.curation.corrections import has_role, load_effects, load_originals
from polyad.curation.curator import CorrectionReport, Curator, FindDocuments, HistoryRecorder
from polyad.curation.statements import (
    STATEMENT_KINDS,
    Alias,
    Retraction,
    StatementKind,
    Statements,
    list_members,
    normalize_fact,
)
from polyad.curation.suggestions import AliasSuggestion, suggest_aliases
from polyad.engine.catalogue import Catalogue
from polyad.engine.components import Components
from polyad.errors import ConfigurationError, NotFoundError
from polyad.model import Entity, IndexedHyperedge, Origin, Passage
from polyad.protocols.lookups import get_all
from polyad.protocols.store import ReadTransaction, Store
from polyad.text.filters import (
    HYPEREDGE_FIELDS,
    Where,
    collect_fields,
    format_filter,
    to_filter,
)
from polyad.text.keys import build_argument_key, build_name_key


class Corrections:
    """Applies a user's corrections to an index: retracts facts, hides documents and adds aliases of entities.

    A correction is visible to every retriever, lookup and statistic at once, without a language model or an embedder.
    It is stored by content and applied again when a document is indexed again.

    Args:
        store: The index.
        catalogue: Looks up the entities and facts of the index.
        components: The embedder compares names for :meth:`suggest_aliases`.
        on_change: Called after each change.
    """

    def __init__(
        self, store: Store, catalogue: Catalogue, components: Components, on_change: Callable[[], None]
    ) -> None:
        self._store = store
        self._components = components
        self._catalogue = catalogue
        self._curator = Curator(store)
        self._on_change = on_change

    # Retractions

    def retract(
        self,
        *,
        hyperedge: str = "",
        entity: str = "",
        role: str = "",
        where: Where = None,
        reason: str,
        now: datetime | None = None,
        is_trial: bool = False,
    ) -> CorrectionReport:
        """Retract a fact, an entity from one or all facts, or all facts of the documents that a filter selects.

        Args:
            hyperedge: Id of the fact.
            entity: Name of the entity that is withdrawn from the fact, or from all facts without ``hyperedge``.
            role: Withdraw the entity in this role only.
            where: Filter of documents whose facts are withdrawn, including documents that are indexed later.
            reason: Reason of the retraction; printed wherever a passage still states the fact.
            now: Time of the retraction; None for the current time.
            is_trial: Whether to change nothing, and report what would be withdrawn.

        Raises:
            NotFoundError: There is no such hyperedge or entity.
            ConfigurationError: The selectors do not fit together, or the reason is blank.
        """
        if not reason.strip():
            raise ConfigurationError("the reason is blank; expected why the fact does not hold")
        _check_selectors(hyperedge, entity, role, where)
        recorder = _begin("retract", now)
        retraction = Retraction(reason, recorder.time)
        if hyperedge:
            retraction = self._limit_to_fact(hyperedge, entity, role, retraction)
        elif entity:
            retraction = replace(retraction, entity=self._catalogue.entity(entity)[0].key, role=role)
        else:
            retraction = replace(retraction, where=_format_where(where))
        return self._add(recorder, Statements(retractions={retraction.key: retraction}), is_trial=is_trial)

    def restore(
        self,
        *,
        hyperedge: str = "",
        entity: str = "",
        role: str = "",
        where: Where = None,
        now: datetime | None = None,
        is_trial: bool = False,
    ) -> CorrectionReport:
        """Undo a retraction: make a fact, an entity of facts, or all facts of selected documents valid again.

        The arguments are the same as in the call of :meth:`retract`.

        Raises:
            NotFoundError: Nothing was retracted with these selectors.
        """
        _check_selectors(hyperedge, entity, role, where)
        keys = self._find_retractions(hyperedge, entity, role, where)
        if not keys:
            selector = hyperedge or entity or _format_where(where)
            raise NotFoundError(f"{selector!r} is not retracted; `polyad list retractions` shows what is")
        return self._remove(_begin("restore", now), "retractions", keys, is_trial=is_trial)

    def _limit_to_fact(self, hyperedge_id: str, entity: str, role: str, retraction: Retraction) -> Retraction:
        """Return ``retraction``, limited to one fact or, if ``entity`` is not empty, to this member of the fact.

        The fact is identified by its content, because its id may change when the document is indexed again.
        """
        [stored] = get_all(self._store, IndexedHyperedge, [hyperedge_id])
        [passage] = get_all(self._store, Passage, [stored.hyperedge.passage_id])
        originals = load_originals(self._store, [passage.document_id]).get(passage.document_id, ())
        built = {edge.hyperedge.id: edge for item in originals for edge in item.hyperedges}.get(hyperedge_id, stored)
        edge, key = stored.hyperedge, ""
        if entity:
            key = self._catalogue.entity(entity)[0].key
            if not any(part.entity_key == key and has_role(part, stored.hyperedge, role) for part in stored.incidences):
                names = ", ".join(sorted({repr(part.name) for part in stored.incidences}))
                raise NotFoundError(f"{entity!r} is no member of {hyperedge_id!r}; expected one of {names}")
        return replace(
            retraction,
            document_id=passage.document_id,
            fact=normalize_fact(edge.text),
            sentence=normalize_fact(passage.text[edge.start : edge.end]),
            members=list_members(built),
            entity=key,
            role=role,
        )

    def _find_retractions(self, hyperedge: str, entity: str, role: str, where: Where) -> set[str]:
        """Return the keys of the stored retractions that :meth:`retract` added with the same arguments."""
        retractions = Statements.load(self._store).retractions
        keys = _list_entity_keys(entity)
        if hyperedge:
            document_id = hyperedge.rpartition("#")[0]
            effects = load_effects(self._store, [document_id]).get(document_id)
            withdrawn = (
                {one.retraction for one in effects.withdrawals if one.hyperedge_id == hyperedge} if effects else set()
            )
            selected = [retractions[key] for key in withdrawn if retractions[key].document_id]
            return {one.key for one in selected if not entity or (one.entity in keys and one.role == role)}
        text = _format_where(where)
        return {
            one.key
            for one in retractions.values()
            if not one.document_id and one.where == text and one.role == role and one.entity in (keys or {""})
        }

    # Documents

    def disable(
        self, document_ids: str | Sequence[str], reason: str = "", now: datetime | None = None
    ) -> CorrectionReport:
        """Hide documents from searches, lookups and statistics without removing the documents.

        Raises:
            NotFoundError: A document is not in the index; none is disabled.
        """
        ids = [document_ids] if isinstance(document_ids, str) else list(document_ids)
        get_all(self._store, Origin, ids)
        return self._add(_begin("disable", now), Statements(disabled=dict.fromkeys(ids, reason)))

    def enable(self, document_ids: str | Sequence[str], now: datetime | None = None) -> CorrectionReport:
        """Make documents visible again that :meth:`disable` has hidden.

        Raises:
            NotFoundError: A document is not disabled; none is enabled.
        """
        ids = [document_ids] if isinstance(document_ids, str) else list(document_ids)
        disabled = Statements.load(self._store).disabled
        for id in ids:
            if id not in disabled:
                raise NotFoundError(f"{id!r} is not disabled; `polyad list disabled` shows what is")
        return self._remove(_begin("enable", now), "disabled", ids, ids)

    # Aliases

    def add_aliases(self, names: Sequence[tuple[str, str]], now: datetime | None = None) -> CorrectionReport:
        """Declare aliases of entities from ``names``, pairs (alias, entity): the entity gets the alias's facts.

        Args:
            names: Pairs of an alias and a name of the entity.
            now: Time of the statement; None for the current time.

        Raises:
            ConfigurationError: A name is blank, is an alias of another entity already, or would be an alias of itself.
            NotFoundError: There is no such entity.
        """
        recorder = _begin("alias", now)
        added: list[tuple[str, Alias]] = []
        for name, target in names:
            key = self._catalogue.entity(target)[0].key
            if not build_name_key(name):
                raise ConfigurationError(f"the alias is {name!r}; expected a name")
            if key in _list_entity_keys(name):
                raise ConfigurationError(f"{name!r} is {target!r} already: both have the key {key!r}")
            added += [(other, Alias(name, key, target, recorder.time)) for other in sorted(_list_entity_keys(name))]
        return self._add(recorder, [(STATEMENT_KINDS["aliases"], key, alias) for key, alias in added])

    def remove_alias(self, name: str, now: datetime | None = None) -> CorrectionReport:
        """Remove one alias that :meth:`add_aliases` has added, so that the name is an entity again.

        Raises:
            NotFoundError: The name is no alias.
        """
        keys = _list_entity_keys(name) & Statements.load(self._store).aliases.keys()
        if not keys:
            raise NotFoundError(f"{name!r} is no alias; `polyad list aliases` shows all")
        return self._remove(_begin("alias", now), "aliases", keys)

    def suggest_aliases(self) -> list[AliasSuggestion]:
        """Return pairs of names that may denote the same entity, most similar first; see :meth:`add_aliases`."""
        with self._store.read_transaction() as transaction:
            entities = transaction.get(Entity)
            facts = transaction.find("hyperedges by entity", list(entities))
        counts = {entity.name: len(facts.get(key, ())) for key, entity in entities.items()}
        return suggest_aliases(counts, lambda names: self._components.embedder.encode(names, "passage"))

    def _add(
        self,
        recorder: HistoryRecorder,
        added: Iterable[tuple[StatementKind, str, Any]],
        *,
        is_trial: bool = False,
    ) -> CorrectionReport:
        """Add statements, and apply them to the documents that they concern."""

        def find(transaction: ReadTransaction) -> set[str]:
            concerned = Statements().add(added)
            ids = concerned.find_documents(transaction)
            filters = [one.where for one in concerned.retractions.values() if one.where]
            if filters and not ids:
                raise NotFoundError(f"the filter {filters[0]!r} selects no document of this index")
            return ids

        return self._change(lambda current: current.add(added), find, recorder, is_trial=is_trial)

    def _remove(
        self,
        recorder: HistoryRecorder,
        kind: str,
        keys: Collection[str],
        document_ids: Collection[str] | None = None,
        *,
        is_trial: bool = False,
    ) -> CorrectionReport:
        """Remove statements of a kind, and restore ``document_ids``, by default all documents that they changed."""

        def find(_: ReadTransaction) -> Iterable[str]:
            if document_ids is not None:
                return document_ids
            return [id for id, each in load_effects(self._store).items() if {*keys} & {*getattr(each, kind)}]

        return self._change(lambda current: current.remove(kind, keys), find, recorder, is_trial=is_trial)

    def _change(
        self,
        revise: Callable[[Statements], Statements],
        find_documents: FindDocuments,
        recorder: HistoryRecorder,
        *,
        is_trial: bool,
    ) -> CorrectionReport:
        report = self._curator.change(revise, find_documents, recorder, is_trial=is_trial)
        if not is_trial:
            self._on_change()
        return report


def _begin(command: str, now: datetime | None) -> HistoryRecorder:
    return HistoryRecorder(command, now or datetime.now(UTC))


def _check_selectors(hyperedge: str, entity: str, role: str, where: Where) -> None:
    if bool(hyperedge or entity) == (where is not None):
        raise ConfigurationError("expected a hyperedge, an entity or a filter (--hyperedge, --entity or --where)")
    filter = to_filter(where)
    if filter is not None and (fields := sorted(collect_fields(filter) & HYPEREDGE_FIELDS)):
        raise ConfigurationError(
            f"the filter compares {fields[0]!r}; expected fields of documents, all of whose facts it selects"
        )
    if role and not entity:
        raise ConfigurationError(f"the role is {role!r} without an entity; name the entity (--entity NAME)")


def _format_where(where: Where) -> str:
    filter = to_filter(where)
    return format_filter(filter) if filter else ""


def _list_entity_keys(name: str) -> set[str]:
    """Return the keys that an entity called ``name`` may have: of names in text, and of names in supplied facts."""
    return {key for key in (build_name_key(name), build_argument_key(name)) if key} if name else set()
