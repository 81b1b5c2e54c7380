"""The statements of users about an index, and the namespaces of a store that hold them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from polyad.errors import ConfigurationError, StoreError
from polyad.model import IndexedDocument, IndexedHyperedge, MetadataValue
from polyad.protocols.store import Values, ValueStore
from polyad.text.filters import is_selected, list_document_fields, parse_filter
from polyad.text.json_types import format_value, parse_value

RETRACTIONS: Final = "retractions"
"""Namespace of retractions, by :attr:`Retraction.key`."""

ALIASES: Final = "aliases"
"""Namespace of aliases: JSON of :class:`Alias` by the entity key of the alias."""

DISABLED: Final = "disabled"
"""Namespace of disabled documents: the reason by document id."""

_WORD = re.compile(r"\w+")


def normalize_fact(text: str) -> str:
    """Return a fact's words in lower case, to recognise the same fact after another extraction.

    >>> normalize_fact("The bell, cast in 1702,  weighs 3 t.")
    'the bell cast in 1702 weighs 3 t'
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class Retraction:
    """A user's statement that facts are wrong, or that an entity does not belong to them.

    A fact is recognised by its words, or by the sentence it comes from and its members, so that a retraction survives
    another extraction of the same sentence. An empty selector selects everything; one of them is not empty.

    Attributes:
        reason: Why, in the user's words.
        recorded: When it was stated, in ISO 8601.
        document_id: The document of the fact.
        fact: The words of the fact; see :func:`normalize_fact`.
        sentence: The words of the text that the fact comes from.
        members: The sorted entity keys of the fact, before aliases.
        entity: Key of the entity to withdraw from the selected facts; empty to withdraw the facts.
        role: Role of that entity.
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
        """The storage key of the retraction: the attributes that select facts, as JSON."""
        return json.dumps([self.document_id, self.fact, self.entity, self.role, self.where], ensure_ascii=False)

    def selects(self, fact: IndexedHyperedge, passage_text: str) -> bool:
        """Return whether a user's retraction applies to this fact, without checking the document."""
        if not self.fact:
            return True
        edge = fact.hyperedge
        if normalize_fact(edge.text) == self.fact:
            return True
        is_same_sentence = normalize_fact(passage_text[edge.start : edge.end]) == self.sentence
        return is_same_sentence and list_members(fact) == self.members


@dataclass(frozen=True, slots=True)
class Alias:
    """A user's statement that a name denotes the same entity as another name.

    Attributes:
        name: The other name, as the user wrote it.
        target: Key of the entity.
        target_name: Name of the entity, as the user wrote it.
        recorded: When it was stated, in ISO 8601.
    """

    name: str
    target: str
    target_name: str
    recorded: str


def list_members(fact: IndexedHyperedge) -> tuple[str, ...]:
    """Return the sorted, distinct entity keys (normalised names) of a fact."""
    return tuple(sorted({part.entity_key for part in fact.incidences}))


@dataclass(frozen=True, slots=True)
class Statements:
    """All users' corrections in an index: retractions, aliases and disabled documents.

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
        """Load all users' corrections (retractions, aliases, disabled documents) from a store.

        Raises:
            StoreError: A statement cannot be parsed.
        """
        values = {name: store.get_values(name) for name in (RETRACTIONS, ALIASES, DISABLED)}
        try:
            return cls.parse(values)
        except ValueError as error:
            raise StoreError(f"a correction in the index is damaged: {error}; restore a backup") from error

    @classmethod
    def parse(cls, values: Values) -> Statements:
        """Parse users' corrections from stored key-value pairs: retractions, aliases, disabled documents."""

        def items(name: str) -> list[tuple[str, bytes]]:
            return [(key, value) for key, value in sorted(values.get(name, {}).items()) if value is not None]

        return cls(
            {key: parse_value(json.loads(value), Retraction) for key, value in items(RETRACTIONS)},
            {key: parse_value(json.loads(value), Alias) for key, value in items(ALIASES)},
            {key: value.decode() for key, value in items(DISABLED)},
        )

    def format(self) -> Values:
        """Return users' corrections as key-value pairs to store: retractions, aliases, disabled documents."""
        return {
            RETRACTIONS: {key: _to_bytes(retraction) for key, retraction in self.retractions.items()},
            ALIASES: {key: _to_bytes(alias) for key, alias in self.aliases.items()},
            DISABLED: {id: reason.encode() for id, reason in self.disabled.items()},
        }

    def difference(self, earlier: Statements) -> Values:
        """Return the key-value pairs to write so that a store changes from corrections ``earlier`` to these."""
        before, after = earlier.format(), self.format()
        return {
            name: {
                key: after[name].get(key)
                for key in before[name].keys() | after[name].keys()
                if before[name].get(key) != after[name].get(key)
            }
            for name in after
        }

    def resolve(self, key: str) -> str:
        """Return the key of the entity that an alias denotes, or ``key`` itself if it is no alias."""
        return self.list_targets(key)[-1]

    def list_targets(self, key: str) -> list[str]:
        """Return the chain of aliases from a key: the key, its target, and so on."""
        keys = [key]
        while alias := self.aliases.get(keys[-1]):
            keys.append(alias.target)
        return keys

    def add_alias(self, key: str, alias: Alias) -> Mapping[str, Alias]:
        """Return all aliases by key, including one more.

        Raises:
            ConfigurationError: The alias is the entity's own name, stands for another entity, or closes a cycle.
        """
        earlier = self.aliases.get(key)
        if earlier is not None and earlier.target != alias.target:
            raise ConfigurationError(
                f"{alias.name!r} is an alias of {earlier.target_name!r} already; remove it first: "
                f"polyad alias --remove {alias.name!r}"
            )
        if self.resolve(alias.target) == key:
            raise ConfigurationError(f"{alias.target_name!r} already stands for {alias.name!r}; expected no cycle")
        return {**self.aliases, key: alias}

    def select_retractions(self, document: IndexedDocument) -> list[Retraction]:
        """Return the retractions that may apply to a document, by its id and metadata."""
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


def _to_bytes(statement: Retraction | Alias) -> bytes:
    return json.dumps(format_value(statement), ensure_ascii=False).encode()
