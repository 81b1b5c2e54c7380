"""RAPTOR (Sarthi et al., 2024): a tree of summaries over clusters of passages, searched as one layer.

Passages, then summaries, are clustered by their vectors: in all, then within each cluster. A Gaussian mixture, with the
number of components that has the lowest Bayesian information criterion, assigns a node to each component of at least
``min_probability``. A cluster of more text than the language model may read is clustered again. The model summarises
each cluster, until a layer is too small (section 3). Retrieval ranks nodes of all layers by cosine (the collapsed
tree). A summary leads to the passages below it, by cosine, because evidence consists of passages; or it is evidence
itself, as in the paper (``evidence``).

Vectors are reduced by principal components, where the paper uses UMAP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyad.errors import MissingExtraError
from polyad.hypergraph.sparse import compute_cosines, rank_by_id, sort_unique
from polyad.model import Evidence, FloatArray, IntArray, Passage, Query
from polyad.protocols.components import Embedder, LanguageModel
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.evidence import build_evidence
from polyad.text.prompts import Prompts
from polyad.text.words import shorten_at_word
from polyad_baselines import PROMPTS
from polyad_baselines.graph import SnapshotCache, Weights, rank_similar
from polyad_baselines.settings import RaptorSettings
from polyad_baselines.summaries import CHARACTERS_PER_TOKEN, list_texts, write_summaries

_SEED = 224
"""Random seed of the mixtures, as in the public code."""

_SHOWN_CHARACTERS = 120
"""Characters of a summary in the reason of a passage."""


@dataclass(frozen=True, slots=True, eq=False)
class SummaryTree:
    """The summaries of all layers, each with the passages below it.

    Attributes:
        texts: The summaries.
        vectors: Their vectors; float32 ``[summaries, dimension]``.
        leaves: Rows of the passages below each summary, sorted.
    """

    texts: list[str]
    vectors: FloatArray
    leaves: list[IntArray]


class RaptorRetriever:
    """Ranks passages by their own cosine or that of a summary above them.

    Args:
        embedder: The embedder of the index.
        language_model: Writes the summaries, at the first search after a change of the index.
        settings: The parameters of the paper.
        prompts: The prompts of this package.
    """

    name: ClassVar[str] = "raptor"

    def __init__(
        self,
        embedder: Embedder,
        language_model: LanguageModel,
        settings: RaptorSettings,
        prompts: Prompts = PROMPTS,
    ) -> None:
        self._embedder, self._language_model, self._settings = embedder, language_model, settings
        self._prompts = prompts
        self._trees = SnapshotCache(self._build_tree)

    def prepare(self, snapshot: Snapshot) -> SummaryTree:
        """Build the tree of a snapshot and cache it."""
        return self._trees.get(snapshot)

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the passages of the nodes with the highest cosines as evidence."""
        vector = self._embedder.encode([query.text], "query")[0]
        tree = self.prepare(snapshot)
        passages, cosines = rank_similar(snapshot, vector)
        nodes = [(float(cosine), -1, [row]) for row, cosine in zip(passages.tolist(), cosines.tolist(), strict=True)]
        for place, cosine in enumerate(compute_cosines(tree.vectors, vector).tolist()):
            leaves = passages[np.isin(passages, tree.leaves[place])].tolist()  # in the order of their cosines
            nodes.append((cosine, place, leaves))
        ranked: dict[int, tuple[float, str]] = {}
        summaries: list[tuple[str, float, str]] = []
        is_listed = self._settings.evidence == "summaries"
        for cosine, place, leaves in sorted(nodes, key=lambda node: -node[0])[: self._settings.top_k_nodes or None]:
            reason = "similar to the question"
            if place >= 0 and is_listed:
                summaries += [(tree.texts[place], cosine, snapshot.ids("passage", leaves[:1])[0])] if leaves else []
                continue
            if place >= 0:
                reason = f"below the summary {shorten_at_word(tree.texts[place], _SHOWN_CHARACTERS)!r}"
            for row in leaves:
                ranked.setdefault(row, (cosine, reason))
        hits = [(row, score, reason) for row, (score, reason) in ranked.items()]
        evidence = build_evidence(snapshot, query.text, self.name, hits[: query.k])
        return list_texts(evidence, summaries) if is_listed else evidence

    def _build_tree(self, snapshot: Snapshot) -> SummaryTree:
        vector = np.zeros(self._embedder.dimension, dtype=np.float32)
        rows = sort_unique(rank_similar(snapshot, vector)[0])
        rows = rows[rank_by_id(snapshot, "passage", rows).argsort()]
        texts = [f"{passage.title}\n{passage.text}" for passage in snapshot.get(Passage, rows.tolist())]
        vectors, leaves = snapshot.vectors("passage", rows), [rows[place : place + 1] for place in range(len(rows))]
        tree = SummaryTree([], np.empty((0, self._embedder.dimension), dtype=np.float32), [])
        for _ in range(self._settings.layers):
            if len(texts) <= self._settings.dimension + 1:
                break
            sizes = np.array([len(text) for text in texts])
            clusters = split_clusters(vectors, sizes, cluster(vectors, self._settings), self._settings)
            joined = ["\n\n".join(texts[place] for place in places.tolist()) for places in clusters]
            instructions = self._prompts.get_text("cluster_summary")
            summaries = write_summaries(self._language_model, instructions, joined, self._settings.max_cluster_tokens)
            usable = [place for place, summary in enumerate(summaries) if summary]
            if not usable or len(usable) >= len(texts):
                break
            leaves = [sort_unique(np.concatenate([leaves[i] for i in clusters[place].tolist()])) for place in usable]
            texts = [summaries[place] for place in usable]
            vectors = self._embedder.encode(texts, "passage")
            tree = SummaryTree(tree.texts + texts, np.vstack([tree.vectors, vectors]), tree.leaves + leaves)
        return tree


def cluster(vectors: FloatArray, settings: RaptorSettings) -> list[IntArray]:
    """Return overlapping clusters of vectors, as sorted indices: clusters within clusters of all."""
    clusters = []
    for places in _cluster_once(vectors, settings):
        clusters += [places[inner] for inner in _cluster_once(vectors[places], settings)]
    distinct = {tuple(places.tolist()): places for places in clusters}
    return [distinct[key] for key in sorted(distinct)]


def split_clusters(
    vectors: FloatArray, sizes: IntArray, clusters: list[IntArray], settings: RaptorSettings
) -> list[IntArray]:
    """Return clusters whose texts fit into a prompt: a larger one is clustered again, or halved if it stays whole.

    Args:
        vectors: float32 ``[nodes, dimension]``.
        sizes: Characters of each node; ``[nodes]``.
        clusters: Indices of the nodes of each cluster.
        settings: Parameters of the clusters.
    """
    fitting = []
    for places in clusters:
        if len(places) == 1 or sizes[places].sum() <= settings.max_cluster_tokens * CHARACTERS_PER_TOKEN:
            fitting.append(places)
            continue
        parts = [places[inner] for inner in cluster(vectors[places], settings)]
        if max(map(len, parts)) == len(places):
            order = _project(vectors[places], 1)[:, 0].argsort(kind="stable")
            parts = [np.sort(half) for half in np.array_split(places[order], 2)]
        fitting += split_clusters(vectors, sizes, parts, settings)
    return fitting


def _project(vectors: FloatArray, dimension: int) -> Weights:
    """Return the vectors on their principal axes; ``[vectors, dimension]``."""
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    points: Weights = centred @ axes[:dimension].T
    return points


def _cluster_once(vectors: FloatArray, settings: RaptorSettings) -> list[IntArray]:
    """Return the clusters of a Gaussian mixture; all vectors as one cluster if they are few."""
    if len(vectors) <= settings.dimension + 1:
        return [np.arange(len(vectors))]
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "baselines") from error
    points = _project(vectors, settings.dimension)
    counts = range(1, min(settings.max_clusters, len(vectors)))
    mixtures = [GaussianMixture(count, random_state=_SEED, reg_covar=1e-4).fit(points) for count in counts]
    best = min(mixtures, key=lambda mixture: float(mixture.bic(points)))
    probabilities = best.predict_proba(points)
    is_member = probabilities >= settings.min_probability
    is_member[np.arange(len(points)), probabilities.argmax(axis=1)] = True
    return [places for column in is_member.T if len(places := np.flatnonzero(column))]
