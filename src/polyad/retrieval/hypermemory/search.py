"""The beam search of HyperMemory over hyperedges and entities (HyperRAG, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polyad.hypergraph.sparse import compute_cosines, find_top_positions, rank_by_id
from polyad.model import FloatArray, Passage, ScoredHyperedge
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import read_entity_names, read_hyperedges
from polyad.retrieval.hypermemory.judge import BeamCandidates, CandidateList, MemoryJudge
from polyad.text.prompts import join_lines
from polyad.text.words import collapse_whitespace, count_tokens

_START_HYPEREDGES = 3
"""Nearest hyperedges whose entities start the search if the question names no entity."""

_BATCH = 32  # hyperedges read at once until the token budget is used up; a frequent entity has thousands

_MAX_DESCRIPTION_CHARACTERS = 300  # a frequent entity has a description from every passage


@dataclass(frozen=True, slots=True)
class BeamStep:
    """One step of a search path, from a head entity over a hyperedge to a tail entity, with the path's score so far.

    A path begins with a step of depth 0, which has only a tail: the topic entity.

    Attributes:
        topic: The entity where the path began.
        heads: The previous entity of the path, then other entities that led to the hyperedge with lower scores.
        edge: The hyperedge; -1 at depth 0.
        tail: The next entity of the path; -1 if the path ends, because no member of the hyperedge is unvisited or
            scored.
        depth: Depth of the step, from 1.
        score: The product of all scores on the path, or of this triple's two scores (equation 16), in (0, 1].
        parent: The hyperedge that led to the first head; -1 for a topic entity.
    """

    topic: int
    heads: tuple[int, ...]
    edge: int
    tail: int
    depth: int
    score: float
    parent: int = -1


class BeamSearch:
    """A beam search over entities and hyperedges for one question, scored by a language model.

    A retriever serves many threads and creates one instance for each question.

    Attributes:
        topics: Row numbers of the entities where the search started.
        steps: The steps of the beam, by depth, then best first.
    """

    def __init__(self, snapshot: Snapshot, embedder: Embedder, judge: MemoryJudge, vector: FloatArray) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._judge = judge
        self._settings = judge.settings
        self._vector = vector
        self._hyperedges: dict[int, ScoredHyperedge] = {}
        self._texts: dict[int, str] = {}
        self._used: set[int] = set()
        self._visited: set[int] = set()
        self._depth = 0
        self._sufficient = False
        self.topics: list[int] = []
        self.steps: list[BeamStep] = []

    def find_start_entities(self) -> list[int]:
        """Return start entities for a question without names: the entities of its three nearest hyperedges."""
        entities: dict[int, None] = {}
        ((edges, _),) = self._snapshot.nearest("hyperedge", self._vector[None], _START_HYPEREDGES)
        for edge in edges.tolist():
            entities.update(dict.fromkeys(self._select_nearest(self._list_members(edge), self._settings.width)))
        return list(entities)

    def build_notes(self) -> dict[str, int]:
        """Return the depth that the search reached, and whether it ended with sufficient evidence, by name."""
        return {"depth": self._depth, **({"sufficient": 1} if self._sufficient else {})}

    def run(self, topics: Sequence[int]) -> None:
        """Search from the entities ``topics``, hop by hop, until the evidence suffices or a limit is reached."""
        self.topics = list(topics)
        self._visited = set(topics)
        frontier = [BeamStep(entity, (), -1, entity, 0, 1.0) for entity in topics]
        while frontier and self._depth < self._settings.depth and not self._judge.is_exhausted:
            self._depth += 1
            frontier = self._extend_paths(frontier)
            # If the search ends anyway, the verdict changes nothing and is not requested.
            if frontier and self._depth < self._settings.depth and not self._judge.is_exhausted:
                self._sufficient = self._judge.is_sufficient(self._format_context())
                if self._sufficient:
                    return

    def _extend_paths(self, frontier: Sequence[BeamStep]) -> list[BeamStep]:
        """Extend the search paths ``frontier`` by one hop, record the best steps, and return the extended paths.

        A hyperedge without an unvisited member ends the path, yet may contain the answer: with ``dead_ends``, the best
        such hyperedges are added beside the beam, with the score of the hyperedge alone.
        """
        if self._settings.calls == "batched":
            candidates, tails = self._score_in_one_prompt(frontier)
        else:
            candidates = _merge_same_hyperedges(self._sort_steps(self._score_hyperedges(frontier)))
            tails = self._score_unvisited_members([step.edge for step in candidates])
        triples = [
            replace(step, tail=tail, score=step.score * score)
            for step in candidates
            for tail, score in tails[step.edge].items()
            if score > 0
        ]
        beam = self._select_best(triples)
        has_end = self._settings.dead_ends
        ends = self._select_best([step for step in candidates if has_end and not tails[step.edge]])
        self.steps += self._sort_steps([*beam, *ends])
        self._used.update(step.edge for step in (*beam, *ends))
        reached: dict[int, BeamStep] = {}
        for step in beam:  # best first, so that of two paths to one entity the better one continues
            reached.setdefault(step.tail, step)
        self._visited.update(reached)
        return list(reached.values())

    def _select_best(self, steps: Iterable[BeamStep]) -> list[BeamStep]:
        return self._sort_steps(steps)[: self._settings.width]

    def _sort_steps(self, steps: Iterable[BeamStep]) -> list[BeamStep]:
        """Return the steps sorted by score, best first, ties by the ids of head, hyperedge and tail."""
        step_list, snapshot = list(steps), self._snapshot
        heads = snapshot.ids("entity", [step.heads[0] for step in step_list])
        edges = snapshot.ids("hyperedge", [step.edge for step in step_list])
        tails = snapshot.ids("entity", [max(step.tail, 0) for step in step_list])
        keys = (
            (-step.score, head, edge, tail if step.tail >= 0 else "")
            for step, head, edge, tail in zip(step_list, heads, edges, tails, strict=True)
        )
        return [step for _, step in sorted(zip(keys, step_list, strict=True), key=lambda pair: pair[0])]

    def _score_hyperedges(self, frontier: Sequence[BeamStep]) -> list[BeamStep]:
        """Return the steps from each entity in ``frontier`` to its best hyperedges, with the scores of the paths."""
        offers = [
            (reached, edges)
            for reached in frontier
            if (edges := self._select_hyperedges(reached.tail, self._settings.edge_tokens))
        ]
        names = read_entity_names(self._snapshot, [reached.tail for reached, _ in offers])
        scored = self._judge.score_hyperedge_lists(
            [
                CandidateList(
                    collapse_whitespace(names[reached.tail]),
                    [self._texts[edge] for edge in edges],
                    partial(self._compute_cosines, edges),
                )
                for reached, edges in offers
            ]
        )
        return [
            step
            for (reached, edges), scores in zip(offers, scored, strict=True)
            for step in self._build_steps(reached, edges, scores or ())
        ]

    def _score_in_one_prompt(self, frontier: Sequence[BeamStep]) -> tuple[list[BeamStep], dict[int, dict[int, float]]]:
        """Score hyperedges and entities in one prompt; return (steps to the best hyperedges, scores of their entities).

        The ``frontier`` has the paths to the entities reached so far. Scores are by hyperedge, then by entity.
        """
        tokens = self._settings.edge_tokens // max(1, len(frontier))
        offers = [(reached, self._select_hyperedges(reached.tail, tokens)) for reached in frontier]
        edges = list(dict.fromkeys(edge for _, entity_edges in offers for edge in entity_edges))
        if not edges:
            return [], {}
        members = {edge: self._list_unvisited_members(edge) for edge in edges}
        rows = list(dict.fromkeys(row for edge in edges for row in members[edge]))
        names = read_entity_names(self._snapshot, sorted({*rows, *(reached.tail for reached in frontier)}))
        scored = self._judge.score_beam_candidates(
            BeamCandidates(
                [collapse_whitespace(names[reached.tail]) for reached in frontier],
                [self._texts[edge] for edge in edges],
                [collapse_whitespace(names[row]) for row in rows],
                lambda: [*self._compute_cosines(edges), *(self._compute_name_cosines(rows) if rows else ())],
            )
        )
        if scored is None:
            return [], {}
        edge_scores = dict(zip(edges, scored[0], strict=True))
        entity_scores = dict(zip(rows, scored[1], strict=True))
        steps = [
            step
            for reached, entity_edges in offers
            for step in self._build_steps(reached, entity_edges, [edge_scores[edge] for edge in entity_edges])
        ]
        candidates = _merge_same_hyperedges(self._sort_steps(steps))
        return candidates, {step.edge: {row: entity_scores[row] for row in members[step.edge]} for step in candidates}

    def _build_steps(self, previous: BeamStep, edges: Sequence[int], scores: Sequence[float]) -> list[BeamStep]:
        """Return a step for each of the best hyperedges ``edges`` of the entity that the step ``previous`` reached."""
        path_score = previous.score if self._settings.composite == "product" else 1.0
        # A stable sort: of equal scores, the hyperedge nearest to the question comes first.
        ranked = sorted(zip(scores, edges, strict=bool(scores)), key=lambda pair: -pair[0])
        return [
            BeamStep(previous.topic, (previous.tail,), edge, -1, self._depth, path_score * score, previous.edge)
            for score, edge in ranked[: self._settings.width]
            if score > 0
        ]

    def _list_unvisited_members(self, edge: int) -> list[int]:
        """Return the unvisited entities of a hyperedge; if there are too many, the entities nearest to the question.

        At most ``entity_limit`` entities are returned.
        """
        members = [row for row in self._list_members(edge) if row not in self._visited]
        return self._select_nearest(members, self._settings.entity_limit)

    def _select_hyperedges(self, entity: int, max_tokens: int) -> list[int]:
        """Return an entity's hyperedges nearest to the question, up to ``max_tokens`` of text; at least one.

        Hyperedges that are on a path of the search are omitted.
        """
        edges = self._snapshot.graph.memberships(np.array([entity]))[0]
        edges = edges[~np.isin(edges, list(self._used))]
        if not len(edges):
            return []
        cosines = self._snapshot.cosines("hyperedge", edges, self._vector)
        ordered = edges[np.lexsort((rank_by_id(self._snapshot, "hyperedge", edges), -cosines))].tolist()
        selected: list[int] = []
        tokens = 0
        for begin in range(0, len(ordered), _BATCH):
            self._read_hyperedges(ordered[begin : begin + _BATCH])
            for edge in ordered[begin : begin + _BATCH]:
                tokens += count_tokens(f"{len(selected) + 1}. {self._texts[edge]}")
                if selected and tokens > max_tokens:
                    return selected
                selected.append(edge)
        return selected

    def _score_unvisited_members(self, edges: Iterable[int]) -> dict[int, dict[int, float]]:
        """Return for each hyperedge the language model's scores of its unvisited entities, as nested dictionaries."""
        offers = []
        tails: dict[int, dict[int, float]] = {}
        for edge in edges:
            tails[edge] = {}
            if members := self._list_unvisited_members(edge):
                offers.append((edge, members))
        names = read_entity_names(self._snapshot, sorted({row for _, members in offers for row in members}))
        scored = self._judge.score_entity_lists(
            [
                CandidateList(
                    self._texts[edge],
                    [collapse_whitespace(names[row]) for row in members],
                    partial(self._compute_name_cosines, members),
                )
                for edge, members in offers
            ]
        )
        for (edge, members), scores in zip(offers, scored, strict=True):
            tails[edge] = dict(zip(members, scores, strict=True)) if scores else {}
        return tails

    def _select_nearest(self, entities: Sequence[int], limit: int) -> list[int]:
        """Return the ``limit`` entities whose names are nearest to the question, in their original order."""
        if len(entities) <= limit:
            return list(entities)
        cosines = np.array(self._compute_name_cosines(entities), dtype=np.float32)
        nearest = find_top_positions(cosines, limit, lambda positions: positions)  # ties: the lower key first
        return [entities[position] for position in np.sort(nearest).tolist()]

    def _list_members(self, edge: int) -> list[int]:
        """Return the entities of a hyperedge, sorted by key."""
        members = self._snapshot.graph.members(np.array([edge]))[0]
        ordered: list[int] = members[np.argsort(rank_by_id(self._snapshot, "entity", members))].tolist()
        return ordered

    def _compute_cosines(self, edges: Sequence[int]) -> list[float]:
        cosines: list[float] = self._snapshot.cosines("hyperedge", np.array(edges), self._vector).tolist()
        return cosines

    def _compute_name_cosines(self, entities: Sequence[int]) -> list[float]:
        names = read_entity_names(self._snapshot, entities)
        vectors = self._embedder.encode([names[row] for row in entities], "query")
        cosines: list[float] = compute_cosines(vectors, self._vector).tolist()
        return cosines

    def _read_hyperedges(self, edges: Sequence[int]) -> None:
        """Read hyperedges into the cache, each with its line of text for prompts.

        The title precedes a text that does not contain it: "She was born there" says nothing by itself.
        """
        snapshot = self._snapshot
        missing = [edge for edge in edges if edge not in self._hyperedges]
        if not missing:
            return
        with snapshot.read_transaction():
            scored, _ = read_hyperedges(snapshot, [(edge, 0.0) for edge in missing])
            passages = snapshot.get(Passage, snapshot.graph.passages(np.array(missing)).tolist())
        for edge, scored_edge, passage in zip(missing, scored, passages, strict=True):
            title, text = collapse_whitespace(passage.title), collapse_whitespace(scored_edge.hyperedge.text)
            self._hyperedges[edge] = scored_edge
            is_titled = self._settings.titles and title.casefold() not in text.casefold()
            self._texts[edge] = f"{title}: {text}" if is_titled else text

    def _format_context(self) -> str:
        """Format the evidence reached so far as text for a prompt: hyperedges and descriptions of entities."""
        edges = list(dict.fromkeys(step.edge for step in self.steps))
        on_path = {
            *self._snapshot.ids("entity", [row for step in self.steps for row in (*step.heads, step.tail) if row >= 0])
        }
        lines = []
        descriptions: dict[str, str] = {}
        for number, edge in enumerate(edges, start=1):
            members = self._hyperedges[edge].members
            names = ", ".join(collapse_whitespace(entity.name) for entity in members[: self._settings.entity_limit])
            lines.append(f"{number}. {self._texts[edge]}\n   Entities: {names}")
            for entity in members:
                if entity.key in on_path and entity.description:
                    description = join_lines(entity.description)[:_MAX_DESCRIPTION_CHARACTERS]
                    descriptions[entity.key] = f"{collapse_whitespace(entity.name)}: {description}"
        preamble = "\n".join(["Known of the entities:", *descriptions.values(), "", ""]) if descriptions else ""
        return preamble + "\n".join(["Texts:", *lines])


def _merge_same_hyperedges(steps: Iterable[BeamStep]) -> list[BeamStep]:
    """Merge steps over the same hyperedge into one step, which has the head entities of all of them.

    The other steps lead to the same entities and would only fill the beam.
    """
    merged: dict[int, BeamStep] = {}
    for step in steps:
        first = merged.setdefault(step.edge, step)
        if first is not step:
            merged[step.edge] = replace(first, heads=first.heads + step.heads)
    return list(merged.values())
