"""What users state about an index: retractions, aliases and disabled documents, as rows of one table of kinds."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from polyad.errors import ConfigurationError, StoreError
from polyad.model import IndexedDocument, IndexedHyperedge, MetadataValue, Origin
from polyad.protocols.store import ReadTransaction, Values, ValueStore
from polyad.text.filters import is_selected, list_document_fields, parse_filter
from polyad.text.json_types import format_value, parse_value

DISABLED: Final = "disabled"
"""Namespace of disabled documents: the reason by document id."""

_WORD = re.compile(r"\w+")


def normalize_fact(text: str) -> str:
    """Return the words of a fact in lower case without punctuation, by which two extractions of a fact are compared.

    >>> normalize_fact("The bell, cast in 1702,  weighs 3 t.")
    'the bell cast in 1702 weighs 3 t'
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


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
class Statements:
    """All statements of users in an index, with a field for each of :data:`STATEMENT_KINDS`.

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
        """Load the statements of users from a store.

        Raises:
            StoreError: A statement cannot be parsed.
        """
        return cls.parse(load_statement_values(store))

    @classmethod
    def parse(cls, values: Values) -> Statements:
        """Parse the statements of users from stored key-value pairs.

        Raises:
            StoreError: A statement cannot be parsed.
        """
        parsed: dict[str, dict[str, Any]] = {name: {} for name in STATEMENT_KINDS}
        try:
            for name, kind in STATEMENT_KINDS.items():
                for key, value in sorted(values.get(name, {}).items()):
                    if value is not None:
                        parsed[name][key] = kind.parse(value)
        except ValueError as error:
            raise StoreError(f"a correction in the index is damaged: {error}; restore a backup") from error
        return cls(**parsed)

    def __iter__(self) -> Iterator[tuple[StatementKind, str, Any]]:
        """Yield kind, key and statement of each statement."""
        for name, kind in STATEMENT_KINDS.items():
            yield from ((kind, key, statement) for key, statement in getattr(self, name).items())

    def format(self) -> Values:
        """Return the statements as key-value pairs to store, by namespace."""
        return self.difference(Statements())

    def difference(self, earlier: Statements) -> Values:
        """Return the key-value pairs that change stored ``earlier`` statements into these; None deletes a key."""
        values: dict[str, dict[str, bytes | None]] = {name: {} for name in STATEMENT_KINDS}
        for kind, key, statement in self:
            if getattr(earlier, kind.name).get(key) != statement:
                values[kind.name][key] = kind.format(statement)
        for kind, key, _ in earlier:
            if key not in getattr(self, kind.name):
                values[kind.name][key] = None
        return values

    def add(self, others: Iterable[tuple[StatementKind, str, Any]]) -> Statements:
        """Return these statements and ``others``, which replace statements of the same key.

        Raises:
            ConfigurationError: A statement contradicts another one.
        """
        merged = {name: dict(getattr(self, name)) for name in STATEMENT_KINDS}
        statements = Statements(**merged)
        for kind, key, statement in others:
            kind.check(statements, key, statement)
            merged[kind.name][key] = statement
        return statements

    def select_new(self, others: Statements, report: Callable[[str], None]) -> Statements:
        """Return the ``others`` that are new, except those that contradict a statement, which ``report`` receives."""
        merged = {name: dict(getattr(self, name)) for name in STATEMENT_KINDS}
        statements, added = Statements(**merged), dict[str, dict[str, Any]]()
        for kind, key, statement in others:
            if key in merged[kind.name]:
                continue
            try:
                kind.check(statements, key, statement)
            except ConfigurationError as error:
                report(str(error))
                continue
            merged[kind.name][key] = statement
            added.setdefault(kind.name, {})[key] = statement
        return Statements(**added)

    def remove(self, name: str, keys: Collection[str]) -> Statements:
        """Return the statements without those of the kind ``name`` with these keys."""
        remaining = {key: statement for key, statement in getattr(self, name).items() if key not in keys}
        return replace(self, **{name: remaining})

    def resolve(self, key: str) -> str:
        """Return the key of the entity that the alias ``key`` denotes; ``key`` itself if it is no alias."""
        return self.list_targets(key)[-1]

    def list_targets(self, key: str) -> list[str]:
        """Return the chain of entity keys that ``key`` stands for as an alias: ``key``, its target, and so on."""
        keys = [key]
        while alias := self.aliases.get(keys[-1]):
            keys.append(alias.target)
        return keys

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

    def find_documents(self, transaction: ReadTransaction) -> set[str]:
        """Return the ids of the documents of an index that the statements concern."""
        scopes = [kind.get_scope(key, statement) for kind, key, statement in self]
        hyperedges = transaction.find("hyperedges by entity", sorted({one.entity for one in scopes if one.entity}))
        ids = {one.document_id for one in scopes if one.document_id}
        ids |= {id.rpartition("#")[0] for group in hyperedges.values() for id in group}
        filters = [parse_filter(one.where) for one in scopes if one.where]
        for id, origin in transaction.get(Origin).items() if filters else ():
            fields = list_document_fields(id, origin)
            if any(is_selected(filter, fields) for filter in filters):
                ids.add(id)
        return ids


def load_statement_values(store: ValueStore) -> Values:
    """Return the key-value pairs of all statements of users, by namespace, as they are stored."""
    return {name: store.get_values(name) for name in STATEMENT_KINDS}


class Scope(NamedTuple):
    """What a statement concerns: one document, the documents of an entity, or those that a filter selects."""

    document_id: str = ""
    entity: str = ""
    where: str = ""


Row = dict[str, Any]
"""A row of a list of statements, as JSON."""


def accept(statements: Statements, key: str, statement: object) -> None:
    """Accept any statement: a ``check`` of :class:`StatementKind`."""


@dataclass(frozen=True, slots=True)
class StatementKind:
    """A kind of statement, a row of :data:`STATEMENT_KINDS`; :mod:`polyad.curation.corrections` applies statements.

    Attributes:
        name: Name of the field of :class:`Statements`, of the namespace of the stored statements, and of their list.
        type: Class of a statement, which is stored as JSON; ``str`` for a text that is stored as it stands.
        get_scope: Returns what a statement concerns, by its key.
        list_rows: Returns the rows of ``polyad list``, from all statements of the kind and a function that returns what
            retractions withdrew.
        search_keys: Keys of a row in which lists look for a text.
        check: Raises ConfigurationError if a statement contradicts others.
    """

    name: str
    type: type[Any]
    get_scope: Callable[[str, Any], Scope]
    list_rows: Callable[[Mapping[str, Any], Callable[[], Sequence[Withdrawal]]], list[Row]]
    search_keys: tuple[str, ...]
    check: Callable[[Statements, str, Any], None] = accept

    def parse(self, value: bytes) -> Any:
        """Return a stored statement; raise ValueError if it is damaged."""
        return value.decode() if self.type is str else parse_value(json.loads(value), self.type)

    def format(self, statement: Any) -> bytes:
        """Return a statement as it is stored."""
        text = statement if self.type is str else json.dumps(format_value(statement), ensure_ascii=False)
        return str(text).encode()


# Retractions


def _get_retraction_scope(_: str, one: Retraction) -> Scope:
    return Scope(document_id=one.document_id) if one.document_id else Scope(entity=one.entity, where=one.where)


def list_retractions(
    retractions: Mapping[str, Retraction], find_withdrawals: Callable[[], Sequence[Withdrawal]]
) -> list[Row]:
    """Return the retractions of users, as rows of ``polyad list retractions``.

    Each row has what undoes the retraction: ``hyperedges`` (ids of the fact; any of them does), or else ``entity`` with
    ``role``, or ``where``. A fact that its document no longer states has no id.

    Args:
        retractions: The retractions by key.
        find_withdrawals: Returns what the retractions withdrew.
    """
    withdrawn: dict[str, list[Withdrawal]] = {}
    for each in find_withdrawals():
        withdrawn.setdefault(each.retraction, []).append(each)
    rows: list[Row] = []
    for key, one in retractions.items():
        facts = withdrawn.get(key, []) if one.document_id else []
        rows.append(
            {
                "id": one.document_id,
                "text": facts[0].text if facts else one.fact or one.where or "all facts",
                "entity": one.entity,
                "role": one.role,
                "reason": one.reason,
                "recorded": one.recorded,
                "hyperedges": [fact.hyperedge_id for fact in facts],
                "where": one.where,
            }
        )
    return rows


# Aliases


def _check_alias(statements: Statements, key: str, alias: Alias) -> None:
    """Raise ConfigurationError if an alias is its entity's own name, stands for another entity, or closes a cycle."""
    earlier = statements.aliases.get(key)
    if earlier is not None and earlier.target != alias.target:
        raise ConfigurationError(
            f"{alias.name!r} is an alias of {earlier.target_name!r} already; remove it first: "
            f"polyad alias {shlex.quote(f'--remove={alias.name}')}"
        )
    if statements.resolve(alias.target) == key:
        raise ConfigurationError(f"{alias.target_name!r} already stands for {alias.name!r}; expected no cycle")


def _list_aliases(aliases: Mapping[str, Alias], _: object) -> list[Row]:
    """Return the rows of ``polyad list aliases``; an alias that has several keys is one row."""
    return [
        {"name": one.name, "entity": one.target_name, "key": one.target, "recorded": one.recorded}
        for one in dict.fromkeys(aliases.values())
    ]


# Disabled documents


def _list_disabled(disabled: Mapping[str, str], _: object) -> list[Row]:
    return [{"id": id, "reason": reason} for id, reason in disabled.items()]


_KINDS = (
    StatementKind("retractions", Retraction, _get_retraction_scope, list_retractions, ("id", "text", "entity")),
    StatementKind("aliases", Alias, lambda key, _: Scope(entity=key), _list_aliases, ("name", "entity"), _check_alias),
    StatementKind(DISABLED, str, lambda id, _: Scope(document_id=id), _list_disabled, ("id",)),
)

STATEMENT_KINDS: Mapping[str, StatementKind] = {kind.name: kind for kind in _KINDS}
"""All kinds of statements by name."""
