"""An ontology for extracted facts: the entity types and relations that the user allows, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyad.indexing.facts.settings import FactSettings
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction, get_identity
from polyad.replies.schema import STRING, Schema
from polyad.text.prompts import Prompts, read_prompt
from polyad.text.words import collapse_whitespace


@dataclass(frozen=True, slots=True)
class Ontology:
    """The entity types and relations to which extracted facts are limited, with examples for the language model.

    Attributes:
        entity_types: Allowed types of entities; empty for any.
        relations: Allowed relations of facts; empty if facts have no relation.
        examples: Text that shows passages with their facts; empty for none.
        strict: Whether entities of other types and facts of other relations are dropped.
    """

    entity_types: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    examples: str = ""
    strict: bool = True

    @classmethod
    def from_settings(cls, settings: FactSettings) -> Ontology:
        """Return the ontology from the settings: allowed types, relations, and the contents of the file of examples.

        Raises:
            ConfigurationError: The file of examples cannot be read.
        """
        examples = read_prompt(Path(settings.examples), "facts.examples") if settings.examples else ""
        return cls(settings.entity_types, settings.relations, examples, settings.strict)

    @property
    def relation_schema(self) -> Schema | None:
        """JSON schema of a fact's relation; None if the ontology has no relations."""
        if not self.relations:
            return None
        return {"type": "string", "enum": list(self.relations)} if self.strict else STRING

    def format_instructions(self, prompts: Prompts, style: str) -> list[str]:
        """Return the ontology's types, relations and examples as a list of instructions for the language model.

        ``prompts`` contains the wording of the instructions.
        """
        texts = {
            "facts_types": ("types", ", ".join(self.entity_types), "entities of other types"),
            f"facts_relations_{style}": ("relations", ", ".join(self.relations), "facts of other relations"),
            "facts_examples": ("examples", self.examples, ""),
        }
        return [
            prompts.get_text(
                name, otherwise=f"Leave out {others}." if self.strict else "If none fits, write another.", **{key: text}
            )
            for name, (key, text, others) in texts.items()
            if text
        ]

    def restrict(self, extraction: Extraction) -> tuple[Extraction, frozenset[str]]:
        """Return (the facts and entities that the ontology allows, the keys of the other entities).

        Types and relations get the spelling of the ontology. An entity without a type has the type that another fact
        states. A fact that loses all its entities is dropped. If the ontology is not strict, nothing is dropped, but
        entities and facts that the ontology does not allow are counted.
        """
        notes = Counter(extraction.notes)
        listed = [entity for fact in extraction.facts for entity in fact.entities]
        types = {get_identity(entity.name): entity.type for entity in listed if entity.type}
        facts = tuple(self._fit_facts(extraction.facts, types, notes))
        remaining = {get_identity(entity.name) for fact in facts for entity in fact.entities}
        dropped = {get_identity(entity.name) for entity in listed} - remaining
        return Extraction(facts, notes), frozenset(dropped)

    def _fit_facts(
        self, facts: Sequence[ExtractedFact], types_by_entity: Mapping[str, str], notes: Counter[str]
    ) -> Iterator[ExtractedFact]:
        """Yield the facts whose relation and entity types the ontology allows, and count other facts in ``notes``.

        Relations and types get the spelling of the ontology.

        Args:
            facts: The facts.
            types_by_entity: Entity types that any fact states, by entity key.
            notes: Receives counts of facts and entities that the ontology does not allow.
        """
        for fact in facts:
            relation = _find_spelling(fact.relation, self.relations) if self.relations else ""
            if relation is None:
                self._count("facts of relations outside facts.relations", notes)
                if self.strict:
                    continue
                relation = fact.relation
            entities = tuple(self._fit_entities(fact.entities, types_by_entity, notes))
            if fact.entities and not entities:
                self._count("facts without entities of facts.entity_types", notes)
                continue
            yield replace(fact, relation=relation, entities=entities)

    def _fit_entities(
        self, entities: Sequence[ExtractedEntity], types_by_entity: Mapping[str, str], notes: Counter[str]
    ) -> Iterator[ExtractedEntity]:
        """Yield the entities of a fact whose type the ontology allows; ``types_by_entity`` has missing types.

        Types get the spelling of the ontology. ``types_by_entity`` has types that other facts state, by entity key.
        Other entities are counted in ``notes``.
        """
        for entity in entities:
            type = entity.type or types_by_entity.get(get_identity(entity.name), "")
            fitting = _find_spelling(type, self.entity_types) if self.entity_types else entity.type
            if fitting is None:
                self._count("entities of types outside facts.entity_types", notes)
                if self.strict:
                    continue
                fitting = type
            yield replace(entity, type=fitting)

    def _count(self, description: str, notes: Counter[str]) -> None:
        notes[f"{'dropped' if self.strict else 'retained'}: {description}"] += 1


NO_ONTOLOGY = Ontology()
"""The ontology of facts with any types, and without relations."""


def _find_spelling(name: str, allowed: Sequence[str]) -> str | None:
    """Return the item of ``allowed`` that equals a name except for case, hyphens and underscores, or None."""
    return next((each for each in allowed if _normalize(each) == _normalize(name)), None)


def _normalize(name: str) -> str:
    return collapse_whitespace(name.replace("_", " ").replace("-", " ")).casefold()
