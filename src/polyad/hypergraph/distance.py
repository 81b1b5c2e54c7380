"""Where an entity stands relative to those a question starts from: directional distance encoding over triples.

HyperRAG (sections 3.1.2 and 3.1.3) reads a hyperedge as *pseudo-binary triples*, its ordered pairs of members, and
lets an indicator of the starting entities flow along them: forward from head to tail, and backward from tail to head.
After l rounds an entity holds how much of what reaches it in l steps came from a start. These numbers, beside the
vectors of the texts, tell a classifier which triples lead somewhere.

The directions differ only where the heads are restricted. Over all ordered pairs each triple has its reverse, so the
backward columns repeat the forward ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from polyad.errors import ConfigurationError
from polyad.hypergraph.incidence import distinct, ranges
from polyad.hypergraph.sparse import among
from polyad.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Triples:
    """Pseudo-binary triples (e_h, f, e_t) as parallel arrays of rows, each of shape ``[triples]``.

    Attributes:
        heads: Rows of entities.
        edges: Rows of the hyperedges that join head and tail.
        tails: Rows of entities.
    """

    heads: IntArray
    edges: IntArray
    tails: IntArray

    def __len__(self) -> int:
        return len(self.heads)


Directions = Literal["separate", "mixed"]
"""Whether what flows forward and what flows backward are kept apart."""

Members = Callable[[IntArray], tuple[IntArray, IntArray]]
"""The entities of each of some hyperedges, sorted, and the position among these that each belongs to."""


def triples_of(members: Members, edges: IntArray, heads: IntArray | None = None) -> Triples:
    """All ordered pairs of distinct members within some hyperedges (HyperRAG, eq. 3).

    A hyperedge of n members gives n * (n - 1) triples, or n - 1 for each head when ``heads`` are given. The paper's
    e_h and e_t may be the same entity; such a triple says nothing, and is left out.

    >>> from polyad.hypergraph.incidence import Hypergraph
    >>> graph = Hypergraph.from_incidences(np.array([0, 1, 2, 1, 3]), np.array([0, 0, 0, 1, 1]), 4, 2)
    >>> triples = triples_of(graph.members.get_neighbours, np.array([0, 1]), heads=np.array([1]))
    >>> triples.heads.tolist(), triples.edges.tolist(), triples.tails.tolist()
    ([1, 1, 1], [0, 0, 1], [0, 2, 3])

    Args:
        members: Of the hypergraph.
        edges: Rows of hyperedges, in any order; one given twice counts once.
        heads: Rows of the nodes that may be heads, in any order; None for every member.

    Returns:
        The triples, sorted by head, then hyperedge, then tail, each once.
    """
    edges = distinct(edges)
    entities, places = members(edges)
    sizes = np.bincount(places, minlength=len(edges))
    starts = np.cumsum(sizes) - sizes
    own, owners = entities, places
    if heads is not None:
        allowed = among(own, np.sort(heads))
        own, owners = own[allowed], owners[allowed]
    # Sorted before each head is repeated for its tails, while there are still few rows to sort.
    order = np.lexsort((owners, own))
    own, owners = own[order], owners[order]
    arities = sizes[owners]
    tails = entities[ranges(starts[owners], arities)]
    repeated = np.repeat(own, arities)
    proper = repeated != tails
    return Triples(repeated[proper], np.repeat(edges[owners], arities)[proper], tails[proper])


def encoding_width(rounds: int, directions: Directions) -> int:
    """How many numbers encode an entity.

    >>> encoding_width(3, "separate"), encoding_width(3, "mixed")
    (7, 15)
    """
    return 1 + 2 * rounds if directions == "separate" else 2 ** (rounds + 1) - 1


def directional_distances(
    triples: Triples, starts: IntArray, rounds: int, directions: Directions = "separate"
) -> tuple[IntArray, FloatArray]:
    """Directional distance encoding of every entity of some triples (HyperRAG, eq. 4-7).

    With s^(0) = 1 for the starts and 0 for all others, and for l = 0 .. rounds - 1:

        s^(l+1)_e = mean of s^(l)_e' over the distinct heads e' of triples (e', ., e)         (forward, eq. 5)
        r^(l+1)_e = mean of r^(l)_e' over the distinct tails e' of triples (e, ., e')         (backward, eq. 6)

    where r^(0) = s^(0), and a mean over nothing is 0. Equation 5 divides by the number of distinct heads but sums over
    triples; here the sum, too, is over distinct heads, so that a pair joined by two hyperedges counts once and every
    value stays in [0, 1].

    Args:
        triples: T_q.
        starts: Rows of the entities that start at 1, in any order; those in no triple are passed over. Equation 4
            starts from each entity that is a head, ``starts=triples.heads``; that tells something only where heads
            were restricted, as over all ordered pairs every entity is a head and every number 1. The published code
            starts from the topic entities, those the question names.
        rounds: L, 0 or more.
        directions: ``mixed`` sends on, in both directions, all that a round has brought, as the published code does:
            M^(0) = s^(0), and M^(l+1) is M^(l) sent forward beside M^(l) sent backward, of 2^(l+1) columns.

    Returns:
        Rows of the distinct entities of the triples, sorted, ``[entities]``; and float32
        ``[entities, encoding_width(rounds, directions)]`` in the columns s^(0), s^(1) .. s^(L), r^(1) .. r^(L) (eq. 7)
        or M^(0) .. M^(L), each in [0, 1].

    Raises:
        ConfigurationError: ``rounds`` is below 0.
    """
    if rounds < 0:
        raise ConfigurationError(f"rounds is {rounds}; expected 0 or more")
    rows = _entities(triples)
    heads, tails = _distinct_pairs(_positions(rows, triples.heads), _positions(rows, triples.tails), len(rows))
    initial = _indicator(rows, starts)
    if directions == "mixed":
        columns = _mixed(initial, heads, tails, rounds)
    else:
        columns = [initial, *_propagate(initial, heads, tails, rounds), *_propagate(initial, tails, heads, rounds)]
    return rows, np.column_stack(columns).astype(np.float32)


def triple_encoding(triples: Triples, rows: IntArray, encodings: FloatArray) -> FloatArray:
    """The structural features of each triple: its head's encoding, then its tail's (HyperRAG, eq. 8).

    Args:
        triples: Those to encode: the ones the distances were computed on, or some of them.
        rows: Rows of entities, sorted, ``[entities]``, from :func:`directional_distances`.
        encodings: float32 ``[entities, 1 + 2 * rounds]``, from the same.

    Returns:
        float32 ``[triples, 2 * (1 + 2 * rounds)]``.

    Raises:
        ValueError: A triple has an entity that is not among ``rows``.
    """
    encoded: FloatArray = np.hstack(
        [encodings[_positions(rows, triples.heads)], encodings[_positions(rows, triples.tails)]]
    )
    return encoded


def _entities(triples: Triples) -> IntArray:
    return distinct(np.concatenate([triples.heads, triples.tails]))


def _positions(rows: IntArray, wanted: IntArray) -> IntArray:
    """The place of each of ``wanted`` in ``rows``."""
    known = among(wanted, rows)
    if not known.all():
        missing = int(wanted[~known][0])
        raise ValueError(f"entity row {missing} has no encoding; compute the distances over all triples to encode")
    return rows.searchsorted(wanted)


def _distinct_pairs(heads: IntArray, tails: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Each (head, tail) once, whatever number of hyperedges join them; ``count`` is above both."""
    distinct_heads, distinct_tails = np.divmod(distinct(heads * count + tails), max(count, 1))
    return distinct_heads, distinct_tails


def _indicator(rows: IntArray, starts: IntArray) -> npt.NDArray[np.float64]:
    """s^(0): 1 for each of ``rows`` that is a start (eq. 4)."""
    return among(rows, np.sort(starts)).astype(np.float64)


def _mixed(
    initial: npt.NDArray[np.float64], heads: IntArray, tails: IntArray, rounds: int
) -> list[npt.NDArray[np.float64]]:
    """M^(0) .. M^(L), column by column."""
    columns = sent = [initial]
    for _ in range(rounds):
        ways = ((heads, tails), (tails, heads))
        sent = [_propagate(values, *way, 1)[0] for way in ways for values in sent]
        columns = [*columns, *sent]
    return columns


def _propagate(
    initial: npt.NDArray[np.float64], sources: IntArray, targets: IntArray, rounds: int
) -> list[npt.NDArray[np.float64]]:
    """After each round, the mean over each target's sources of what they held before it."""
    # In double precision: sums over a hub's thousands of neighbours are rounded once, at the end.
    values = initial
    arriving = np.maximum(np.bincount(targets, minlength=len(initial)), 1)
    after = []
    for _ in range(rounds):
        values = np.bincount(targets, weights=values[sources], minlength=len(initial)) / arriving
        after.append(values)
    return after
