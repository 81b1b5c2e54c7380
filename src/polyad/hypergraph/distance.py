"""Directional distance encoding: the position of an entity relative to the start entities of a question.

HyperRAG (sections 3.1.2 and 3.1.3) reads a hyperedge as *pseudo-binary triples*, its ordered pairs of members, and
lets an indicator of the starting entities flow along them: forward from head to tail, and backward from tail to head.
After l rounds an entity holds how much of what reaches it in l steps came from a start. Together with text vectors,
these numbers tell a classifier which triples lead to an answer.

The directions differ only where the heads are restricted. Over all ordered pairs each triple has its reverse, so the
backward columns repeat the forward ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from polyad.errors import ConfigurationError
from polyad.hypergraph.sparse import expand_ranges, is_in, sort_unique
from polyad.model import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Triples:
    """Triples (head entity, hyperedge, tail entity) as parallel arrays of row numbers.

    Attributes:
        heads: Rows of entities.
        edges: Rows of the hyperedges that contain head and tail.
        tails: Rows of entities.
    """

    heads: IntArray
    edges: IntArray
    tails: IntArray

    @classmethod
    def concatenate(cls, parts: Iterable[Triples]) -> Triples:
        """Return one object with the triples of several objects, in order."""
        nothing = np.empty(0, dtype=np.int64)
        columns = zip(*[(nothing,) * 3, *((part.heads, part.edges, part.tails) for part in parts)], strict=True)
        return cls(*map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.heads)

    def select(self, positions: IntArray | BoolArray) -> Triples:
        """Return only the triples at ``positions``, which are indices or a boolean mask."""
        return Triples(self.heads[positions], self.edges[positions], self.tails[positions])


Directions = Literal["separate", "mixed"]
"""Whether forward and backward distances are separate features, or each round mixes them."""

Members = Callable[[IntArray], tuple[IntArray, IntArray]]
"""Returns the sorted entities of hyperedges, and for each entity the position of its hyperedge."""


def build_triples(members: Members, edges: IntArray, heads: IntArray | None = None) -> Triples:
    """Return a triple (head, hyperedge, tail) for each pair of entities in ``edges``; ``heads`` limits the heads.

    This is equation 3 of HyperRAG.

    A hyperedge of n members has n * (n - 1) triples, or n - 1 for each member in ``heads``. The paper allows e_h = e_t;
    such triples carry no information and are omitted.

    >>> from polyad.hypergraph.incidence import Hypergraph
    >>> graph = Hypergraph.from_incidences(np.array([0, 1, 2, 1, 3]), np.array([0, 0, 0, 1, 1]), 4, 2)
    >>> triples = build_triples(graph.members.get_neighbours, np.array([0, 1]), heads=np.array([1]))
    >>> triples.heads.tolist(), triples.edges.tolist(), triples.tails.tolist()
    ([1, 1, 1], [0, 0, 1], [0, 2, 3])

    Args:
        members: Returns the members of hyperedges.
        edges: Rows of hyperedges, in any order; duplicates count once.
        heads: Rows of the nodes that may be heads, in any order; None for all members.

    Returns:
        The unique triples, sorted by head, then hyperedge, then tail.
    """
    edges = sort_unique(edges)
    entities, places = members(edges)
    sizes = np.bincount(places, minlength=len(edges))
    starts = np.cumsum(sizes) - sizes
    head_rows, owners = entities, places
    if heads is not None:
        allowed = is_in(head_rows, np.sort(heads))
        head_rows, owners = head_rows[allowed], owners[allowed]
    # Sort before repeating each head for its tails, while there are few rows to sort.
    order = np.lexsort((owners, head_rows))
    head_rows, owners = head_rows[order], owners[order]
    arities = sizes[owners]
    tails = entities[expand_ranges(starts[owners], arities)]
    repeated = np.repeat(head_rows, arities)
    proper = repeated != tails
    return Triples(repeated, np.repeat(edges[owners], arities), tails).select(proper)


def get_encoding_width(rounds: int, directions: Directions) -> int:
    """Return the number of distance features per entity; ``rounds`` is the maximum distance in hops.

    >>> get_encoding_width(3, "separate"), get_encoding_width(3, "mixed")
    (7, 15)
    """
    return 1 + 2 * rounds if directions == "separate" else 2 ** (rounds + 1) - 1


def compute_directional_distances(
    triples: Triples, starts: IntArray, rounds: int, directions: Directions = "separate"
) -> tuple[IntArray, FloatArray]:
    """Return (entity rows, features): how near an entity is to ``starts``, for each direction and number of hops.

    These are equations 4 to 7 of HyperRAG.

    With s^(0) = 1 for the starts and 0 for all others, and for l = 0 .. rounds - 1:

        s^(l+1)_e = mean of s^(l)_e' over the distinct heads e' of triples (e', ., e)         (forward, eq. 5)
        r^(l+1)_e = mean of r^(l)_e' over the distinct tails e' of triples (e, ., e')         (backward, eq. 6)

    where r^(0) = s^(0), and a mean over nothing is 0. Equation 5 divides by the number of distinct heads but sums over
    triples; here the sum, too, is over distinct heads, so that a pair joined by two hyperedges counts once and every
    value stays in [0, 1].

    Args:
        triples: T_q.
        starts: Rows of the start entities, in any order; entities in no triple are ignored. Equation 4 starts from
            every head, ``starts=triples.heads``, which is informative only for restricted heads: over all ordered pairs
            every entity is a head and every number 1. The published code starts from the topic entities, the entities
            that the question names.
        rounds: L, 0 or more.
        directions: ``mixed`` propagates the result of each round in both directions, as the published code does:
            M^(0) = s^(0), and M^(l+1) is M^(l) propagated forward beside M^(l) propagated backward, of 2^(l+1) columns.

    Returns:
        Rows of the distinct entities of the triples, sorted, ``[entities]``; and float32
        ``[entities, get_encoding_width(rounds, directions)]`` in the columns s^(0), s^(1) .. s^(L), r^(1) .. r^(L)
        (eq. 7) or M^(0) .. M^(L), each in [0, 1].

    Raises:
        ConfigurationError: ``rounds`` is below 0.
    """
    if rounds < 0:
        raise ConfigurationError(f"rounds is {rounds}; expected 0 or more")
    rows = sort_unique(np.concatenate([triples.heads, triples.tails]))
    heads, tails = _distinct_pairs(
        _find_positions(rows, triples.heads), _find_positions(rows, triples.tails), len(rows)
    )
    initial = _build_indicator(rows, starts)
    if directions == "mixed":
        columns = _mix_directions(initial, heads, tails, rounds)
    else:
        columns = [initial, *_propagate(initial, heads, tails, rounds), *_propagate(initial, tails, heads, rounds)]
    return rows, np.column_stack(columns).astype(np.float32)


def encode_triples(triples: Triples, rows: IntArray, encodings: FloatArray) -> FloatArray:
    """Return the distance features of each triple: the features (``encodings``) of head and tail, side by side.

    This is equation 8 of HyperRAG.

    Args:
        triples: All or some of the triples that the distances were computed on.
        rows: Rows of entities, sorted, ``[entities]``, from :func:`compute_directional_distances`.
        encodings: float32 ``[entities, 1 + 2 * rounds]``, from the same function.

    Returns:
        float32 ``[triples, 2 * (1 + 2 * rounds)]``.

    Raises:
        ValueError: An entity of a triple is not in ``rows``.
    """
    encoded: FloatArray = np.hstack(
        [encodings[_find_positions(rows, triples.heads)], encodings[_find_positions(rows, triples.tails)]]
    )
    return encoded


def _find_positions(rows: IntArray, entities: IntArray) -> IntArray:
    """Return the index of each of ``entities`` in the sorted array ``rows``. Raise ValueError if one is missing."""
    is_encoded = is_in(entities, rows)
    if not is_encoded.all():
        missing = int(entities[~is_encoded][0])
        raise ValueError(f"entity row {missing} has no encoding; compute the distances over all triples to encode")
    return rows.searchsorted(entities)


def _distinct_pairs(heads: IntArray, tails: IntArray, entity_count: int) -> tuple[IntArray, IntArray]:
    """Return the distinct pairs (head, tail) as parallel arrays; entities are numbered below ``entity_count``."""
    distinct_heads, distinct_tails = np.divmod(sort_unique(heads * entity_count + tails), max(entity_count, 1))
    return distinct_heads, distinct_tails


def _build_indicator(rows: IntArray, starts: IntArray) -> npt.NDArray[np.float64]:
    """Return a vector with 1 for each of the entities ``rows`` that is in ``starts``, and 0 for all other entities.

    The vector is s^(0) in equation 4.
    """
    return is_in(rows, np.sort(starts)).astype(np.float64)


def _mix_directions(
    initial: npt.NDArray[np.float64], heads: IntArray, tails: IntArray, rounds: int
) -> list[npt.NDArray[np.float64]]:
    """Return ``initial`` (a value for each entity), then per round the last columns propagated in both directions.

    These are M^(0) .. M^(L) of the published code. Each round has twice as many columns as the round before.
    """
    columns = sent = [initial]
    for _ in range(rounds):
        ways = ((heads, tails), (tails, heads))
        sent = [_propagate(values, *way, 1)[0] for way in ways for values in sent]
        columns = [*columns, *sent]
    return columns


def _propagate(
    initial: npt.NDArray[np.float64], sources: IntArray, targets: IntArray, rounds: int
) -> list[npt.NDArray[np.float64]]:
    """Return the values after each round; a round gives each target entity the mean value of its source entities."""
    # In double precision: sums over a hub's thousands of neighbours are rounded once, at the end.
    values = initial
    arriving = np.maximum(np.bincount(targets, minlength=len(initial)), 1)
    after = []
    for _ in range(rounds):
        values = np.bincount(targets, weights=values[sources], minlength=len(initial)) / arriving
        after.append(values)
    return after
