"""The hypergraph as people look at it: the named entities of some hyperedges, and the whole index by communities.

Hyperedges join everything that may link passages: also dates, quantities, key phrases, and headings that stand on every
page, such as OPTIONS. A drawing shows only what a person would call an entity.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from polyad.engine.catalogue import Catalogue
from polyad.model import SUBJECT, Entity, FloatArray, Hyperedge, HyperedgeKind, IndexedHyperedge, Passage
from polyad.protocols.snapshot import Snapshot, SnapshotGraph
from polyad.protocols.store import Store
from polyad.snapshot.mapped_snapshot import MappedSnapshot
from polyad.text.keys import build_entity_key
from polyad.text.lexicon import COMMON_WORDS, FUNCTION_WORDS
from polyad.text.sentences import split_sentences
from polyad.text.words import is_capitalized_name

_NO_NAMES = frozenset({"date", "time", "year", "quantity", "number", "percentage", "money", "phrase"})
"""Types of mentions that are no names."""

_LABEL = re.compile(r"([^\W\d_]\w*(?: [a-z]\w*){0,2}):\s+(?=\S)")
"""What may be a label before a name, such as "Contact:" in "Contact: Karl Moen"."""

_ADMONITIONS = frozenset("attention caution danger fixme hint nb ok okay ps todo warning".split())  # noqa: SIM905  # quotes around each word would take ten lines
"""Admonitions of AsciiDoc, reStructuredText and GitHub, and interjections, that are not among the frequent words."""

_CALENDAR = frozenset(name.casefold() for name in (*calendar.day_name, *calendar.month_name))

_CANDIDATES = 4
"""Entities that are examined for each entity of an overview: most of the frequent ones are headings and phrases."""

_EXAMPLES = 6
"""Hyperedges of an entity that are read to decide whether it is a name."""

_MAX_MEMBERSHIPS = 2000
"""Hyperedges of an entity, evenly chosen, from which the links of an overview are counted."""

_LINKS_PER_ENTITY = 3

_MAX_STEPS = 6
_MAX_FRONTIER = 20_000
"""Entities from which a step of a path search goes on, the rarest first."""

_PATH_ATTEMPTS = 20
"""Path searches until one goes through names only; each leaves out what the last one went through."""

_MIN_PROSE = 50
"""Length of a line that is prose even without a punctuation mark at its end, as in wrapped text."""

_CONTRACTION = re.compile(r"\b\w+n['\u2019]t\b|['\u2019](?:s|re|ll|ve|d)\b")

_PROSE_END = re.compile(r"[.!?;:,…。؟।][)\"'»”]*$")


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity in a drawing.

    Attributes:
        key: Key of the entity.
        name: Its most frequent name.
        type: Its most frequent type, as the mention extractor or the language model states it; may be empty.
        documents: Number of documents among those of the drawing that mention it; in an overview, number of passages.
        community: Number of its community in an overview; -1 for none.
    """

    key: str
    name: str
    type: str
    documents: int
    community: int = -1


@dataclass(frozen=True, slots=True)
class Link:
    """Two entities of an overview that occur together; the weight is the cosine of their hyperedges, in (0, 1]."""

    source: str
    target: str
    weight: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The most frequent named entities of an index, the strongest links between them, and their communities.

    Attributes:
        entities: The entities, the most frequent first.
        links: The links.
        communities: Names of the communities, which are those of their most frequent entities.
    """

    entities: Sequence[NamedEntity]
    links: Sequence[Link]
    communities: Sequence[str]


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path: a hyperedge that joins two entities.

    Attributes:
        from_name, to_name: Names of the entities.
        hyperedge_id: Id of the hyperedge.
        text: Its sentences that name the entities.
        passage_id, title: The passage that states it, and the title of the passage.
    """

    from_name: str
    to_name: str
    hyperedge_id: str
    text: str
    passage_id: str
    title: str


@dataclass(slots=True)
class _Usage:
    """How some hyperedges mention one entity."""

    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by document id
    is_fact: bool = False
    is_title: bool = False


class GraphViews:
    """Selects what drawings of the hypergraph show.

    Args:
        store: The index.
        catalogue: Looks up entities by name.
        get_snapshot: Returns the current snapshot of the index.
    """

    def __init__(self, store: Store, catalogue: Catalogue, get_snapshot: Callable[[], MappedSnapshot]) -> None:
        self._store = store
        self._catalogue = catalogue
        self._get_snapshot = get_snapshot
        self._overview: tuple[int, int, Overview] | None = None

    def find_names(self, hyperedge_ids: Sequence[str]) -> tuple[list[NamedEntity], dict[str, list[str]]]:
        """Return the named entities of hyperedges, and the keys of those in each hyperedge by its id.

        The entities in the most documents come first. Unknown ids are left out.
        """
        with self._store.read_transaction() as transaction:
            items = transaction.get(IndexedHyperedge, hyperedge_ids)
        entities = _select_names(items.values())
        keys, targets = {entity.key for entity in entities}, _map_labelled_keys(items.values())
        members = {
            id: dict.fromkeys(targets[each.entity_key] for each in item.incidences) for id, item in items.items()
        }
        return entities, {id: [key for key in each if key in keys] for id, each in members.items()}

    def build_overview(self, limit: int) -> Overview:
        """Return the most frequent named entities of the index, with their links and communities.

        Args:
            limit: Maximum number of entities.
        """
        snapshot = self._get_snapshot()
        if self._overview is None or self._overview[:2] != (snapshot.version, limit):
            self._overview = snapshot.version, limit, self._compute_overview(snapshot, limit)
        return self._overview[2]

    def _compute_overview(self, snapshot: Snapshot, limit: int) -> Overview:
        graph = snapshot.graph
        rows = np.arange(snapshot.row_count("entity"), dtype=np.int64)
        counts = graph.mention_counts(rows)
        rows = np.argsort(-counts, kind="stable")[: limit * _CANDIDATES]
        rows = rows[counts[rows] > 0]
        keys = snapshot.ids("entity", rows)
        with self._store.read_transaction() as transaction:
            groups = transaction.find("hyperedges by entity", keys)
            examples = dict.fromkeys(id for ids in groups.values() for id in _choose_evenly(ids, _EXAMPLES))
            named = {
                each.key: each for each in _select_names(transaction.get(IndexedHyperedge, list(examples)).values())
            }
        selected = [(row, key) for row, key in zip(rows, keys, strict=True) if key in named][:limit]
        entities = [replace(named[key], documents=int(counts[row])) for row, key in selected]
        weights = _compute_cosines([set(_choose_evenly(groups[key], _MAX_MEMBERSHIPS)) for _, key in selected])
        communities = _find_communities(weights)
        labels = [", ".join(entities[place].name for place in group[:2]) for group in communities]
        for number, group in enumerate(communities):
            for place in group:
                entities[place] = replace(entities[place], community=number)
        return Overview(entities, _select_links(entities, weights), labels)

    def find_path(self, source: str, target: str) -> list[PathStep]:
        """Return a shortest path between two entities through named entities; empty if there is none.

        Args:
            source: Name or key of an entity.
            target: Name or key of the other entity.

        Raises:
            NotFoundError: There is no entity of this name.
        """
        ends = [self._catalogue.entity(name)[0] for name in (source, target)]
        snapshot = self._get_snapshot()
        rows = snapshot.find_rows("entity", [end.key for end in ends])
        if len(rows) < len(ends):  # both names denote one entity, or it was added a moment ago
            return []
        first, last = (rows[end.key] for end in ends)
        excluded: set[int] = set()
        for _ in range(_PATH_ATTEMPTS):
            path = _find_shortest_path(snapshot.graph, first, last, excluded)
            edge_ids = snapshot.ids("hyperedge", [edge for edge, _ in path])
            names = {each.key for each in self.find_names(edge_ids)[0]}
            keys = snapshot.ids("entity", [entity for _, entity in path])
            others = {entity for (_, entity), key in zip(path[:-1], keys, strict=False) if key not in names}
            if not others:
                return self._describe_path(ends[0].key, keys, edge_ids)
            excluded |= others
        return []

    def _describe_path(self, first: str, keys: Sequence[str], edge_ids: Sequence[str]) -> list[PathStep]:
        with self._store.read_transaction() as transaction:
            edges = transaction.get(Hyperedge, edge_ids)
            entities = transaction.get(Entity, [first, *keys])
            passages = transaction.get(Passage, [edge.passage_id for edge in edges.values()])
        steps = zip([first, *keys], keys, edge_ids, strict=False)
        return [
            PathStep(
                entities[before].name,
                entities[after].name,
                id,
                _select_sentences(edges[id].text, (entities[before].name, entities[after].name)),
                edges[id].passage_id,
                passages[edges[id].passage_id].title,
            )
            for before, after, id in steps
        ]


def _select_sentences(text: str, names: Sequence[str]) -> str:
    """Return the first sentence that contains all names, or else each first sentence with one of them."""
    lines = [text[span.start : span.end].strip() for span in split_sentences(text, "en")]
    contained = [[name for name in names if name.casefold() in line.casefold()] for line in lines]
    whole = [line for line, contained_names in zip(lines, contained, strict=True) if len(contained_names) == len(names)]
    if whole:
        return max(whole[:3], key=len)  # a heading may contain both
    parts = [next((line for line in lines if name.casefold() in line.casefold()), "") for name in names]
    return " … ".join(dict.fromkeys(filter(None, parts))) or text


def _find_shortest_path(graph: SnapshotGraph, first: int, last: int, excluded: Set[int]) -> list[tuple[int, int]]:
    """Return the steps of a shortest path as (hyperedge, entity that it leads to); empty if there is none.

    Args:
        graph: The hypergraph.
        first: Row of the first entity.
        last: Row of the last entity.
        excluded: Rows of entities through which the path must not go.
    """
    parents: dict[int, tuple[int, int]] = {first: (-1, -1)}  # (hyperedge, entity before) by entity
    seen_edges: set[int] = set()
    frontier = [first]
    for _ in range(_MAX_STEPS):
        edges, owners = graph.memberships(np.array(frontier, dtype=np.int64))
        origins: dict[int, int] = {}
        for edge, owner in zip(edges.tolist(), owners.tolist(), strict=True):
            if edge not in seen_edges:
                origins.setdefault(edge, frontier[owner])
        seen_edges |= origins.keys()
        steps = list(origins)
        members, places = graph.members(np.array(steps, dtype=np.int64), variants=False)
        reached = []
        for entity, place in zip(members.tolist(), places.tolist(), strict=True):
            if entity not in parents and entity not in excluded:
                parents[entity] = steps[place], origins[steps[place]]
                reached.append(entity)
        if last in parents or not reached:
            break
        rows = np.array(reached, dtype=np.int64)
        frontier = rows[np.argsort(graph.mention_counts(rows), kind="stable")][:_MAX_FRONTIER].tolist()
    path: list[tuple[int, int]] = []
    entity = last if last in parents else first
    while entity != first:
        edge, before = parents[entity]
        path.append((edge, entity))
        entity = before
    return path[::-1]


def _choose_evenly(ids: Sequence[str], number: int) -> Sequence[str]:
    return ids if len(ids) <= number else [ids[len(ids) * place // number] for place in range(number)]


# Names


def _select_names(items: Iterable[IndexedHyperedge]) -> list[NamedEntity]:
    """Return the members of hyperedges that a person would call entities, those in the most documents first."""
    usages: defaultdict[str, _Usage] = defaultdict(_Usage)
    edges: defaultdict[str, set[str]] = defaultdict(set)
    items = list(items)
    targets = _map_labelled_keys(items)
    for item in items:
        edge = item.hyperedge
        for incidence in item.incidences:
            key = targets[incidence.entity_key]
            usage = usages[key]
            edges[key].add(edge.id)
            usage.names[_remove_label(incidence.name)] += 1
            usage.types[incidence.type] += bool(incidence.type)
            usage.texts[edge.passage_id.rpartition("#")[0]].append(edge.text)
            usage.is_fact |= edge.kind is not HyperedgeKind.SEMANTIC_UNIT
            usage.is_title |= incidence.role == SUBJECT and incidence.strength == 1
    named = {key: _build_entity(key, usage) for key, usage in usages.items() if _is_name(usage)}
    longer = {key for key in named if any(edges[key] <= edges[part] for part in _list_parts(key) if part in named)}
    return sorted(
        (each for key, each in named.items() if key not in longer), key=lambda each: (-each.documents, each.key)
    )


def _map_labelled_keys(items: Iterable[IndexedHyperedge]) -> dict[str, str]:
    """Return for the key of each member of hyperedges the key of the entity that a drawing shows.

    "Contact: Karl Moen" is shown as the entity "Karl Moen" if the hyperedges mention that one, too.
    """
    names = {each.entity_key: each.name for item in items for each in item.incidences}
    plain = {key: build_entity_key(_remove_label(name)) or key for key, name in sorted(names.items())}
    first: dict[str, str] = {}
    for key, target in plain.items():
        first.setdefault(target, target if target in names else key)
    return {key: first[target] for key, target in plain.items()}


def _remove_label(name: str) -> str:
    """Return a name without a label of common words before it; "Dune: Part Two" stays."""
    match = _LABEL.match(name)
    return name[match.end() :] if match and all(map(_is_common, match[1].split())) else name


def _is_common(word: str) -> bool:
    lower = word.casefold()
    return lower in COMMON_WORDS or lower in FUNCTION_WORDS or lower in _ADMONITIONS


def _list_parts(key: str) -> Iterator[str]:
    """Yield the parts of an entity's key that have two words or more, such as ``ada king`` of ``lady ada king``."""
    words = key.split()
    for first, last in combinations(range(len(words) + 1), 2):
        if 2 <= last - first < len(words):
            yield " ".join(words[first:last])


def _build_entity(key: str, usage: _Usage) -> NamedEntity:
    return NamedEntity(key, _get_most_frequent(usage.names), _get_most_frequent(usage.types), len(usage.texts))


def _get_most_frequent(counts: Mapping[str, int]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))


def _is_name(usage: _Usage) -> bool:
    """Return whether the mentions of an entity look like a name, not a phrase, a heading or a word at its beginning."""
    name, type = _get_most_frequent(usage.names), _get_most_frequent(usage.types)
    if type.casefold() in _NO_NAMES or not re.search(r"[^\W\d_]", name):
        return False
    if usage.is_fact:  # a language model or the user named it
        return True
    if ":" in name or _is_emphasis_only(name, usage):  # the label and the value of a cell, or a title
        return False
    headings = sum(_count_headings(name, texts) > 0 for texts in usage.texts.values())
    if headings > 1:
        return False
    if name == name.upper() == name.lower():  # a script without capitals
        return True
    if not is_capitalized_name(name):
        return usage.is_title and headings == 1
    words = re.findall(r"[^\W\d_]+", _CONTRACTION.sub("", name.casefold()))
    if all(word in FUNCTION_WORDS or word.removesuffix("s") in _CALENDAR for word in words):  # MUST NOT, Sundays
        return False
    if len(words) > 1 and not all(word in COMMON_WORDS or word in FUNCTION_WORDS for word in words):
        return True
    return (usage.is_title and headings == 1 and len(words) > 1) or _is_capitalized_in_prose(name, usage)


def _is_emphasis_only(name: str, usage: _Usage) -> bool:
    """Return whether a name consists of common words and labels in capitals, such as NOTE, OK or "Press OK"."""
    words = name.split()
    others = [word for word in words if not _is_emphasis(word, usage)]
    return len(others) < len(words) and (not others or (name != name.upper() and len(others) == 1))


def _is_emphasis(word: str, usage: _Usage) -> bool:
    """Return whether a word in capitals is a common word, or a label, which a colon follows more often than not."""
    if not word.isupper() or len(word) < 2:
        return False
    if _is_common(word):
        return True
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)(\s*[:\uff1a])?")
    uses = [bool(match[1]) for texts in usage.texts.values() for text in texts for match in pattern.finditer(text)]
    return sum(uses) * 2 > len(uses)


def _count_headings(name: str, texts: Iterable[str]) -> int:
    """Return how often a name is a whole line, as headings are."""
    pattern = re.compile(rf"^[#=*\s\d.]*{re.escape(name)}[\s:]*$", re.MULTILINE | re.IGNORECASE)
    return sum(len(pattern.findall(text)) for text in texts)


def _is_capitalized_in_prose(name: str, usage: _Usage) -> bool:
    """Return whether sentences write a name with its capitals after other words, more often than in lower case."""
    lines = (line.strip() for texts in usage.texts.values() for text in texts for line in text.splitlines())
    prose = "\n".join(line for line in lines if len(line) > _MIN_PROSE or _PROSE_END.search(line))
    inside = re.findall(rf"(?:[^\W\d_A-Z]|[,;])\s+{re.escape(name)}(?!\w)", prose)
    lower = re.findall(rf"(?<!\w){re.escape(name.lower())}(?!\w)", prose) if name != name.lower() else ()
    return len(inside) > len(lower)


# Links and communities


def _compute_cosines(groups: Sequence[set[str]]) -> FloatArray:
    """Return the cosine of each pair of sets of hyperedge ids; float32 ``[sets, sets]`` with a diagonal of 0."""
    owners: defaultdict[str, list[int]] = defaultdict(list)
    for place, ids in enumerate(groups):
        for id in ids:
            owners[id].append(place)
    counts = np.zeros((len(groups), len(groups)), dtype=np.float32)
    for places in owners.values():
        for first, second in combinations(places, 2):
            counts[first, second] += 1
            counts[second, first] += 1
    norms = np.sqrt([max(len(ids), 1) for ids in groups]).astype(np.float32)
    return np.asarray(counts / np.outer(norms, norms), dtype=np.float32)


def _select_links(entities: Sequence[NamedEntity], weights: FloatArray) -> list[Link]:
    """Return the strongest links of each entity, the strongest first."""
    pairs = {
        (min(place, int(other)), max(place, int(other)))
        for place in range(len(entities))
        for other in np.argsort(-weights[place], kind="stable")[:_LINKS_PER_ENTITY]
        if weights[place, other] > 0
    }
    links = [Link(entities[a].key, entities[b].key, round(float(weights[a, b]), 4)) for a, b in pairs]
    return sorted(links, key=lambda link: (-link.weight, link.source, link.target))


def _find_communities(weights: FloatArray) -> list[list[int]]:
    """Return groups of nodes with many links inside, the largest first, by greedy merging (Clauset et al., 2004).

    Each step merges the two groups that increase the modularity most. Nodes without a group are left out.
    """
    total = float(weights.sum())
    groups = [[place] for place in range(len(weights))]
    if total == 0:
        return []
    shares = weights.astype(np.float64) / total
    while len(groups) > 1:
        degrees = shares.sum(axis=1)
        gains = shares - np.outer(degrees, degrees)
        np.fill_diagonal(gains, -np.inf)
        first, second = sorted(divmod(int(gains.argmax()), len(groups)))
        if gains[first, second] <= 0:
            break
        shares[first] += shares[second]
        shares[:, first] += shares[:, second]
        shares = np.delete(np.delete(shares, second, axis=0), second, axis=1)
        groups[first] += groups.pop(second)
    return sorted((sorted(group) for group in groups if len(group) > 1), key=lambda group: (-len(group), group))
