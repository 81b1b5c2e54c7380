"""A retriever for LlamaIndex."""

from __future__ import annotations

import hashlib

from typing_extensions import Unpack

from polyad.engine import AsyncEngine, Engine
from polyad.engine.engine import SearchArguments
from polyad.errors import MissingExtraError
from polyad.integrations.hits import CITATION, build_metadata
from polyad.model import Evidence, ScoredPassage

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ModuleNotFoundError as error:
    raise MissingExtraError("llama-index-core", "llama-index") from error


class PassageNode(TextNode):
    """A LlamaIndex node whose hash omits the score, so that results of several retrievers can be deduplicated."""

    @classmethod
    def class_name(cls) -> str:
        """Return the class name under which LlamaIndex serialises nodes."""
        return "PassageNode"

    @property
    def hash(self) -> str:
        """The hash of the passage's id and text."""
        return hashlib.sha256(f"{self.node_id}\n{self.text}".encode("utf-8", "surrogatepass")).hexdigest()


class PolyadRetriever(BaseRetriever):
    """A LlamaIndex retriever that searches a polyad index.

    Example:
        >>> retriever = PolyadRetriever(Engine.open("kb"), k=3, where="year >= 2020")   # doctest: +SKIP
        >>> retriever.retrieve("Who funded the trial?")[0].metadata["citation"]         # doctest: +SKIP

    Args:
        engine: The index.
        k: Maximum number of hits, as of :meth:`polyad.engine.engine.Engine.search`.
        callback_manager: Callbacks of LlamaIndex; None for none.
        verbose: Whether LlamaIndex prints what it retrieves from other objects.
        options: Further options of the search. LlamaIndex passes only the question to a
            retriever, so another filter needs another retriever; both may use one engine.
    """

    def __init__(
        self,
        engine: Engine,
        k: int | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        **options: Unpack[SearchArguments],
    ) -> None:
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self.engine = engine
        self.k = k
        self.options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _build_nodes(self.engine.search(query_bundle.query_str, self.k, **self.options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _build_nodes(await AsyncEngine(self.engine).search(query_bundle.query_str, self.k, **self.options))


def _build_nodes(evidence: Evidence) -> list[NodeWithScore]:
    return [NodeWithScore(node=_build_node(hit), score=hit.score) for hit in evidence.passages]


def _build_node(hit: ScoredPassage) -> PassageNode:
    passage, metadata = hit.passage, build_metadata(hit)
    others = [key for key in metadata if key != CITATION]  # a language model reads the citation above the text
    return PassageNode(
        id_=passage.id,
        text=passage.text,
        metadata=metadata,  # type: ignore[call-arg]  # mypy knows it by its alias only
        excluded_llm_metadata_keys=others,
        excluded_embed_metadata_keys=others,
        start_char_idx=passage.start,
        end_char_idx=passage.end,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=passage.document_id)},
    )
