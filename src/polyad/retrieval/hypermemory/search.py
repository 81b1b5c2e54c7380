"""The beam search of HyperMemory: which hyperedges and entities are followed (HyperRAG, section 3.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polyad.hypergraph.cosines import compute_cosines
from polyad.hypergraph.sparse import find_top_positions
from polyad.model import FloatArray, ScoredHyperedge
from polyad.protocols.components import Embedder
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import entity_names, scored_hyperedges
from polyad.retrieval.hypermemory.judge import Judge, Offer, Surroundings, one_line
from polyad.retrieval.hypermemory.settings import HyperMemorySettings
from polyad.text.counting import count_tokens
from polyad.text.prompts import in_one_line

_START_HYPEREDGES = 3
"""Nearest hyperedges whose entities the search starts from when the question names none."""

_BLOCK = 32  # hyperedges read at once until the budget of tokens is used up; a hub has thousands

_DESCRIPTION_CHARACTERS = 300  # of what is said of an entity; a common one is described in every passage


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity to go on from, the topic entity it was reached from, the path's score and its last hyperedge, or -1."""

    entity: int
    topic: int
    score: float
    edge: int = -1


@dataclass(frozen=True, slots=True)
class Step:
    """One more hyperedge on a path: a triple of head, hyperedge and tail, with the score of the path so far.

    Attributes:
        topic: The entity the path began at.
        heads: The entity the path came from; then others that led to the same hyperedge with lower scores.
        edge: The hyperedge.
        tail: The entity the path goes on to; -1 where it ends, because every member of the hyperedge was visited
            before, or could not be asked about.
        depth: From 1.
        score: The product of all scores on the path, or of this triple's two alone (equation 16), in (0, 1].
        parent: The hyperedge that led to the entity the path came from; -1 for a topic entity.
    """

    topic: int
    heads: tuple[int, ...]
    edge: int
    tail: int
    depth: int
    score: float
    parent: int = -1


class BeamSearch:
    """The state of one search; a retriever serves many threads, each with a search of its own.

    Attributes:
        topics: Rows of the entities it started from.
        steps: The kept steps, those of smaller depth first, then best first.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        embedder: Embedder,
        judge: Judge,
        settings: HyperMemorySettings,
        vector: FloatArray,
    ) -> None:
        self._snapshot = snapshot
        self._embedder = embedder
        self._judge = judge
        self._settings = settings
        self._vector = vector
        self._snapshots: dict[int, ScoredHyperedge] = {}
        self._texts: dict[int, str] = {}
        self._used: set[int] = set()
        self._visited: set[int] = set()
        self._depth = 0
        self._sufficient = False
        self.topics: list[int] = []
        self.steps: list[Step] = []

    def starts(self) -> list[int]:
        """Entities to start from when the question names none: of the nearest hyperedges, those with nearest names."""
        entities: dict[int, None] = {}
        ((edges, _),) = self._snapshot.nearest("hyperedge", self._vector[None], _START_HYPEREDGES)
        for edge in edges.tolist():
            entities.update(dict.fromkeys(self._nearest(self._members(edge), self._settings.width)))
        return list(entities)

    def notes(self) -> dict[str, int]:
        """How far the search went, and whether it ended because the evidence sufficed."""
        return {"depth": self._depth, **({"sufficient": 1} if self._sufficient else {})}

    def run(self, topics: Sequence[int]) -> None:
        """Search from ``topics`` until the evidence suffices, nothing is left to follow, or a limit is reached."""
        self.topics = list(topics)
        self._visited = set(topics)
        frontier = [Reached(entity, entity, 1.0) for entity in topics]
        while frontier and self._depth < self._settings.depth and not self._judge.exhausted:
            self._depth += 1
            frontier = self._go_on(frontier)
            # Where the search ends anyway the verdict would change nothing, and is not asked for.
            if frontier and self._depth < self._settings.depth and not self._judge.exhausted:
                self._sufficient = self._judge.sufficient(self._context())
                if self._sufficient:
                    return

    def _go_on(self, frontier: Sequence[Reached]) -> list[Reached]:
        """One depth of the search: keeps the best triples (equation 16) and returns where they lead.

        A hyperedge without an unvisited member leads nowhere, yet may hold the answer: the best of these are kept as
        evidence beside the beam, with the score of their hyperedge alone.
        """
        if self._settings.calls == "batched":
            chosen, tails = self._scored_together(frontier)
        else:
            chosen = _without_repeats(self._ranked(self._choose_edges(frontier)))
            tails = self._score_tails([step.edge for step in chosen])
        triples = [
            replace(step, tail=tail, score=step.score * score)
            for step in chosen
            for tail, score in tails[step.edge].items()
            if score > 0
        ]
        kept = self._best(triples)
        ends = self._best([step for step in chosen if not tails[step.edge]])
        self.steps += self._ranked([*kept, *ends])
        self._used.update(step.edge for step in (*kept, *ends))
        reached: dict[int, Reached] = {}
        for step in kept:  # best first, so that of two paths to one entity the better one goes on
            reached.setdefault(step.tail, Reached(step.tail, step.topic, step.score, step.edge))
        self._visited.update(reached)
        return list(reached.values())

    def _best(self, steps: Iterable[Step]) -> list[Step]:
        return self._ranked(steps)[: self._settings.width]

    def _ranked(self, steps: Iterable[Step]) -> list[Step]:
        """Best first, ties by the ids of head, hyperedge and tail."""
        listed = list(steps)
        heads, edges, tails = (
            np.array(column, dtype=np.int64)
            for column in (
                [step.heads[0] for step in listed],
                [step.edge for step in listed],
                [step.tail for step in listed],
            )
        )
        by_tail = (
            np.where(tails >= 0, self._snapshot.rank_by_id("entity", np.maximum(tails, 0)), -np.inf)
            if len(listed)
            else tails
        )
        ranked = np.lexsort(
            (
                by_tail,
                self._snapshot.rank_by_id("hyperedge", edges),
                self._snapshot.rank_by_id("entity", heads),
                np.array([-step.score for step in listed]),
            )
        )
        return [listed[place] for place in ranked.tolist()]

    def _choose_edges(self, frontier: Sequence[Reached]) -> list[Step]:
        """For each entity of the frontier its best hyperedges, with the score of the path that would go through."""
        offers = [
            (reached, edges)
            for reached in frontier
            if (edges := self._offered(reached.entity, self._settings.edge_tokens))
        ]
        names = entity_names(self._snapshot, [reached.entity for reached, _ in offers])
        scored = self._judge.edge_scores(
            [
                Offer(
                    one_line(names[reached.entity]),
                    [self._texts[edge] for edge in edges],
                    partial(self._closeness, edges),
                )
                for reached, edges in offers
            ]
        )
        return [
            step
            for (reached, edges), scores in zip(offers, scored, strict=True)
            for step in self._steps(reached, edges, scores or ())
        ]

    def _scored_together(self, frontier: Sequence[Reached]) -> tuple[list[Step], dict[int, dict[int, float]]]:
        """The best hyperedges of each entity of the frontier, and the scores of their unvisited entities; one call."""
        tokens = self._settings.edge_tokens // max(1, len(frontier))
        offers = [(reached, self._offered(reached.entity, tokens)) for reached in frontier]
        edges = list(dict.fromkeys(edge for _, offered in offers for edge in offered))
        if not edges:
            return [], {}
        members = {edge: self._unvisited(edge) for edge in edges}
        rows = list(dict.fromkeys(row for edge in edges for row in members[edge]))
        names = entity_names(self._snapshot, sorted({*rows, *(reached.entity for reached in frontier)}))
        scored = self._judge.depth_scores(
            Surroundings(
                [one_line(names[reached.entity]) for reached in frontier],
                [self._texts[edge] for edge in edges],
                [one_line(names[row]) for row in rows],
                lambda: [*self._closeness(edges), *(self._name_closeness(rows) if rows else ())],
            )
        )
        if scored is None:
            return [], {}
        of_edges, of_rows = dict(zip(edges, scored[0], strict=True)), dict(zip(rows, scored[1], strict=True))
        steps = [
            step
            for reached, offered in offers
            for step in self._steps(reached, offered, [of_edges[edge] for edge in offered])
        ]
        chosen = _without_repeats(self._ranked(steps))
        return chosen, {step.edge: {row: of_rows[row] for row in members[step.edge]} for step in chosen}

    def _steps(self, reached: Reached, edges: Sequence[int], scores: Sequence[float]) -> list[Step]:
        """The best of the hyperedges of an entity, with the score of the path through each; none without scores."""
        before = reached.score if self._settings.composite == "product" else 1.0
        # Equal scores leave the order of the offer: nearest to the question first.
        ranked = sorted(zip(scores, edges, strict=bool(scores)), key=lambda pair: -pair[0])
        return [
            Step(reached.topic, (reached.entity,), edge, -1, self._depth, before * score, reached.edge)
            for score, edge in ranked[: self._settings.width]
            if score > 0
        ]

    def _unvisited(self, edge: int) -> list[int]:
        """The entities of a hyperedge that the search was not at, of many those with the names nearest to it."""
        members = [row for row in self._members(edge) if row not in self._visited]
        return self._nearest(members, self._settings.entity_limit)

    def _offered(self, entity: int, most: int) -> list[int]:
        """The unused hyperedges of an entity nearest to the question, as many as fit ``most`` tokens; one at least."""
        found = self._snapshot.graph.memberships(np.array([entity]))[0]
        edges = found[~np.isin(found, list(self._used))]
        if not len(edges):
            return []
        near = self._snapshot.cosines("hyperedge", edges, self._vector)
        ordered = edges[np.lexsort((self._snapshot.rank_by_id("hyperedge", edges), -near))].tolist()
        offered: list[int] = []
        tokens = 0
        for begin in range(0, len(ordered), _BLOCK):
            self._read(ordered[begin : begin + _BLOCK])
            for edge in ordered[begin : begin + _BLOCK]:
                tokens += count_tokens(f"{len(offered) + 1}. {self._texts[edge]}")
                if offered and tokens > most:
                    return offered
                offered.append(edge)
        return offered

    def _score_tails(self, edges: Iterable[int]) -> dict[int, dict[int, float]]:
        """The unvisited entities of each hyperedge with their scores, which do not depend on the head; often none."""
        offers = []
        tails: dict[int, dict[int, float]] = {}
        for edge in edges:
            tails[edge] = {}
            if members := self._unvisited(edge):
                offers.append((edge, members))
        names = entity_names(self._snapshot, sorted({row for _, members in offers for row in members}))
        scored = self._judge.entity_scores(
            [
                Offer(
                    self._texts[edge], [one_line(names[row]) for row in members], partial(self._name_closeness, members)
                )
                for edge, members in offers
            ]
        )
        for (edge, members), scores in zip(offers, scored, strict=True):
            tails[edge] = dict(zip(members, scores, strict=True)) if scores else {}
        return tails

    def _nearest(self, entities: Sequence[int], limit: int) -> list[int]:
        """The entities whose names are nearest to the question, by row; all of them where there are few."""
        if len(entities) <= limit:
            return list(entities)
        near = np.array(self._name_closeness(entities), dtype=np.float32)
        nearest = find_top_positions(near, limit, lambda places: places)  # they come sorted by key
        return [entities[position] for position in np.sort(nearest).tolist()]

    def _members(self, edge: int) -> list[int]:
        """The entities of a hyperedge, sorted by key."""
        members = self._snapshot.graph.members(np.array([edge]))[0]
        ordered: list[int] = members[np.argsort(self._snapshot.rank_by_id("entity", members))].tolist()
        return ordered

    def _closeness(self, edges: Sequence[int]) -> list[float]:
        near: list[float] = self._snapshot.cosines("hyperedge", np.array(edges), self._vector).tolist()
        return near

    def _name_closeness(self, entities: Sequence[int]) -> list[float]:
        names = entity_names(self._snapshot, entities)
        vectors = self._embedder.encode([names[row] for row in entities], "query")
        closeness: list[float] = compute_cosines(vectors, self._vector).tolist()
        return closeness

    def _read(self, edges: Sequence[int]) -> None:
        """Fetch hyperedges and their texts as they are shown, in one line.

        The title goes before a text that does not contain it: "She was born there" says nothing by itself.
        """
        snapshot = self._snapshot
        new = [edge for edge in edges if edge not in self._snapshots]
        if not new:
            return
        scored = scored_hyperedges(snapshot, [(edge, 0.0) for edge in new])
        passages = snapshot.passages(snapshot.graph.passages(np.array(new)).tolist())
        for edge, shown, passage in zip(new, scored, passages, strict=True):
            title, text = one_line(passage.title), one_line(shown.hyperedge.text)
            self._snapshots[edge] = shown
            self._texts[edge] = text if title.casefold() in text.casefold() else f"{title}: {text}"

    def _context(self) -> str:
        """All evidence so far: each hyperedge with its entities, and what is known of the entities on the paths."""
        edges = list(dict.fromkeys(step.edge for step in self.steps))
        on_path = {
            *self._snapshot.ids("entity", [row for step in self.steps for row in (*step.heads, step.tail) if row >= 0])
        }
        lines = []
        described: dict[str, str] = {}
        for number, edge in enumerate(edges, start=1):
            members = self._snapshots[edge].members
            names = ", ".join(one_line(entity.name) for entity in members[: self._settings.entity_limit])
            lines.append(f"{number}. {self._texts[edge]}\n   Entities: {names}")
            for entity in members:
                if entity.key in on_path and entity.description:
                    said = in_one_line(entity.description)[:_DESCRIPTION_CHARACTERS]
                    described[entity.key] = f"{one_line(entity.name)}: {said}"
        known = "\n".join(["Known of the entities:", *described.values(), "", ""]) if described else ""
        return known + "\n".join(["Texts:", *lines])


def _without_repeats(steps: Iterable[Step]) -> list[Step]:
    """The best step through each hyperedge, of steps that come best first.

    Others lead to the same entities and would only take places in the beam.
    """
    found: dict[int, Step] = {}
    for step in steps:
        first = found.setdefault(step.edge, step)
        if first is not step:
            found[step.edge] = replace(first, heads=first.heads + step.heads)
    return list(found.values())
