"""The protocols of components that users choose or replace; that of stores is in :mod:`polyad.protocols.store`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from polyad.errors import LanguageModelError
from polyad.model import Document, Evidence, Failure, FloatArray, IndexedHyperedge, Mention, Passage, Query, Span, Usage
from polyad.protocols.snapshot import Snapshot

TextKind = Literal["query", "passage"]


@runtime_checkable
class Embedder(Protocol):
    """Embeds texts as unit vectors, so that a dot product is a cosine."""

    @property
    def name(self) -> str:
        """Name of model and preprocessing; embedders with the same name return comparable vectors."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Embed ``texts``: float32 of shape ``[len(texts), dimension]``, rows of length 1, in the order given."""


class Reader(Protocol):
    """Reads documents from files and folders; a file that cannot be read yields a failure in its place."""

    @property
    def skipped(self) -> Sequence[str]:
        """Files in the folders of the last call of :meth:`read` that were skipped: unsupported file types."""

    def count(self, paths: Iterable[Path]) -> int:
        """Return the number of files that :meth:`read` would open."""

    def read(
        self, paths: Iterable[Path], on_progress: Callable[[str], None] = ...
    ) -> Generator[Document | Failure, None, None]:
        """Yield every document below ``paths`` in a fixed order. Never raises for a bad file.

        Args:
            paths: Files and folders.
            on_progress: Called now and then with a message about the file being read.
        """


class Splitter(Protocol):
    """Cuts text into passages and passages into sentences, by exact character spans."""

    @property
    def name(self) -> str:
        """Name of the splitter and its settings; documents split under another name are split again."""

    def passages(self, text: str, breaks: Sequence[int] = ()) -> list[Span]:
        """Return the spans of the passages in ``text``, in order; they may overlap. Empty for blank text.

        Args:
            text: Text of a document.
            breaks: Sorted offsets at which sections begin; passages should not cross them.
        """

    def sentences(self, text: str) -> list[Span]:
        """Return the spans of the sentences in ``text``, in order, disjoint, without surrounding white space."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in ``text``, as this splitter counts them."""


class MentionExtractor(Protocol):
    """Finds mentions of entities in texts."""

    @property
    def name(self) -> str:
        """Name of the extractor and its settings; passages are rebuilt if it changes."""

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the mentions in each text, ordered by ``start``. Spans refer to that text; one list for each text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a language model. ``json_schema`` asks for structured output where the endpoint has it."""

    user: str
    system: str = ""
    json_schema: Mapping[str, object] | None = None
    max_tokens: int | None = None
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a language model with its usage, which is zero for a cached reply.

    ``thoughts`` is the reasoning of a reasoning model, if the server returns it; it is no part of ``text``.
    """

    text: str
    usage: Usage
    cached: bool = False
    truncated: bool = False
    thoughts: str = ""


OnOutcome = Callable[[int, Reply | LanguageModelError], None]
"""Called with the position of a prompt and its outcome. May reject a reply by raising LanguageModelError, which becomes
the outcome."""

BudgetCheck = Callable[[Prompt, Usage], None]
"""Called with a prompt and the usage of its failed tries. Raises NoMoreRepliesError if the budget is exhausted."""


class LanguageModel(Protocol):
    """A chat model. Implementations take care of threads, retries and rate limits."""

    @property
    def name(self) -> str:
        """The model's name, part of the key under which replies are cached."""

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        gate: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Return one outcome per prompt, in order; a prompt that failed after its retries does not fail the others.

        Args:
            prompts: The prompts.
            on_outcome: Called with each outcome as it arrives, in the calling thread, so that replies can be stored
                one by one.
            gate: Called before each try of a prompt, from any thread.
        """

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of these tokens in US dollars; 0 if the price is unknown."""

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Call ``on_text`` with each piece as it comes, then return the whole. Raises LanguageModelError."""


OnMessage = Callable[[str], None]
"""Callback that receives a short message about the progress of a long step."""

FindReplies = Callable[[Sequence[Prompt]], list[str | None]]
"""Returns the cached reply to each prompt, or None for a prompt without one."""


def ignore_message(message: str) -> None:
    """Discard a progress message: the default ``on_message`` callback."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The hyperedges built from one passage.

    Attributes:
        hyperedges: The hyperedges, ordered by position, with :data:`polyad.model.NO_VECTOR` as their vectors.
        failure: The reason why hyperedges are missing; None if there are none missing.
        notes: Counts of extracted, dropped and repaired items, by reason.
    """

    hyperedges: Sequence[IndexedHyperedge]
    failure: LanguageModelError | None = None
    notes: Counter[str] = field(default_factory=Counter)


class HyperedgeBuilder(Protocol):
    """Builds the hyperedges of passages by one construction method."""

    @property
    def name(self) -> str:
        """The method with its settings; passages that were built under another name are built again."""

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """Build the hyperedges of each passage.

        If a language model gives no usable reply for a passage, the result has that failure: the text is indexed, and
        the next run retries the passage. A NoMoreRepliesError as the failure ends the run.

        Raises:
            PolyadError: a passage cannot be built; the indexer then finds that passage and reports its document.
        """

    def estimate(self, passages: Sequence[Passage], find_replies: FindReplies) -> Usage:
        """Estimate the language model usage of building passages: prompts are counted, replies guessed.

        Args:
            passages: Passages that are not in the index yet.
            find_replies: Returns the cached reply to each prompt, which costs nothing.
        """


def build_hyperedge_id(passage_id: str, position: int) -> str:
    """Return the id of a passage's hyperedge, zero-padded so that up to 1,000 ids sort by position."""
    return f"{passage_id}/{position:03}"


class Retriever(Protocol):
    """Finds the evidence for a question in any snapshot."""

    @property
    def name(self) -> str:
        """Name of the retriever, as on the command line."""

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return at most ``query.k`` passages with the hyperedges and entities that led to them, best first.

        Raises:
            StaleSnapshotError: A passage was deleted from the store; the engine searches again with a later snapshot.
        """


class Reranker(Protocol):
    """Scores passages by reading question and passage together; slow, so it is used for some dozens of passages."""

    @property
    def name(self) -> str:
        """Name of the reranker, as on the command line."""

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """Return a score for each passage, in input order; higher is better. float32 ``[len(passages)]``.

        Raises:
            RerankerError: The reranker failed.
        """


class Progress(Protocol):
    """A callback that receives the progress of a long task. The command line draws a bar with it."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """Receive ``done`` of ``total`` units (None if unknown) and a message that names unit and state."""


def silent(done: int, total: int | None, message: str) -> None:
    """Ignore the progress: the default :class:`Progress` callback."""
