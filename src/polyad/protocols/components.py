"""The protocols of components that users choose or replace; that of stores is in :mod:`polyad.protocols.store`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from polyad.errors import LanguageModelError, PolyadError
from polyad.model import Document, Evidence, Failure, FloatArray, IndexedHyperedge, Mention, Passage, Query, Span, Usage
from polyad.protocols.snapshot import Snapshot

TextKind = Literal["query", "passage"]


@runtime_checkable
class Embedder(Protocol):
    """A protocol of models that embed texts as unit vectors, whose dot product is their cosine."""

    @property
    def name(self) -> str:
        """Name of the embedding model with its preprocessing.

        Embedders with the same name return comparable vectors.
        """

    @property
    def dimension(self) -> int:
        """Number of components of every embedding vector."""

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return the unit vectors of ``texts``, in order; float32 ``[len(texts), dimension]``."""


@runtime_checkable
class WordModel(Protocol):
    """A protocol of embedders that state which words they know, so that a question's rare words are not corrected."""

    def knows_words(self, words: Sequence[str], /) -> Sequence[bool]:
        """Return for each word whether the vocabulary of the model has it as a whole."""


def knows_words(embedder: Embedder, words: Sequence[str]) -> Sequence[bool]:
    """Return for each word whether an embedder knows it; False if the embedder does not state its vocabulary."""
    return embedder.knows_words(words) if isinstance(embedder, WordModel) else [False] * len(words)


class Reader(Protocol):
    """A protocol of readers of files and folders, which yield documents and a :class:`Failure` for each bad file."""

    @property
    def skipped(self) -> Sequence[str]:
        """The paths of the files that the last :meth:`read` skipped: unsupported types and minified code."""

    def count(self, paths: Iterable[Path]) -> int:
        """Return the number of files that :meth:`read` would open."""

    def read(
        self, paths: Iterable[Path], on_progress: Callable[[str], None] = ...
    ) -> Generator[Document | Failure, None, None]:
        """Yield the documents in ``paths``, in a fixed order; a file that cannot be read yields a :class:`Failure`.

        Args:
            paths: Files and folders.
            on_progress: Called now and then with a message about the file being read.
        """


class Splitter(Protocol):
    """A protocol of text splitters, which split a text into passages, and a passage into sentences."""

    @property
    def name(self) -> str:
        """Name of the text splitter with its settings.

        If the name changes, stored documents are split again.
        """

    def passages(self, text: str, breaks: Sequence[int] = ()) -> list[Span]:
        """Return the character spans of the passages in ``text``, in order; spans may overlap.

        The list is empty for blank text.

        Args:
            text: Text of a document.
            breaks: Sorted offsets at which sections begin; passages should not cross them.
        """

    def sentences(self, text: str) -> list[Span]:
        """Return the disjoint character spans of the sentences in ``text``, in order, without surrounding spaces."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in ``text``, by the counting rule of this splitter."""


class MentionExtractor(Protocol):
    """A protocol of extractors that find mentions of entities (their names) in texts."""

    @property
    def name(self) -> str:
        """Name of the mention extractor with its settings.

        If the name changes, stored passages are built again.
        """

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return for each text the list of its mentions (names of entities), sorted by start offset.

        The spans of mentions are offsets in the text.

        The spans of mentions refer to the text.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request to a language model: system and user text, optionally with a JSON schema for the reply."""

    user: str
    system: str = ""
    json_schema: Mapping[str, object] | None = None
    max_tokens: int | None = None
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a language model with its token usage; usage is zero for a cached reply.

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
    """A protocol of chat models, which complete prompts; implementations handle threads, retries and rate limits."""

    @property
    def name(self) -> str:
        """Name of the language model, part of the cache key of its replies."""

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        check_budget: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Return a reply or an error for each prompt, in order; an error does not stop the other prompts.

        Args:
            prompts: The prompts.
            on_outcome: Called with each outcome as it arrives, in the calling thread, so that replies can be stored
                one by one.
            check_budget: Called before each try of a prompt, from any thread.
        """

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of a number of tokens in US dollars; 0 if the price is unknown."""

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Call ``on_text`` with each piece of the reply as it arrives, then return the whole reply.

        Raises LanguageModelError.
        """


OnMessage = Callable[[str], None]
"""Callback that receives a short message about the progress of a long step."""

FindReplies = Callable[[Sequence[Prompt]], list[str | None]]
"""Returns the cached reply to each prompt, or None for a prompt without one."""


def ignore_message(message: str) -> None:
    """Do nothing: the default ``on_message`` callback, which discards progress messages."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The hyperedges built from one passage, and the reason if extraction failed in part.

    Attributes:
        hyperedges: The hyperedges, ordered by position, with :data:`polyad.model.NO_VECTOR` as their vectors.
        failure: The reason why hyperedges are missing; None if there are none missing.
        notes: Counts of extracted, dropped and repaired items, by reason.
    """

    hyperedges: Sequence[IndexedHyperedge]
    failure: LanguageModelError | None = None
    notes: Counter[str] = field(default_factory=Counter)


class HyperedgeBuilder(Protocol):
    """A protocol of construction methods, which build hyperedges (facts or groups of sentences) from passages."""

    @property
    def name(self) -> str:
        """Name of the construction method with its settings.

        If the name changes, stored passages are built again.
        """

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """Return for each passage, in order, a :class:`BuildResult` with the hyperedges built from the passage.

        If a language model gives no usable reply for a passage, the result has that failure: the text is indexed, and
        the next run retries the passage. A NoMoreRepliesError as the failure ends the run.

        Raises:
            PolyadError: a passage cannot be built; the indexer then finds that passage and reports its document.
        """

    def estimate(self, passages: Sequence[Passage], find_replies: FindReplies) -> Usage:
        """Return the tokens and cost that :meth:`build` would take, without calling the language model.

        Args:
            passages: Passages that are not in the index yet.
            find_replies: Returns the cached reply to each prompt, which costs nothing.
        """


def build_hyperedge_id(passage_id: str, position: int) -> str:
    """Return the id of the hyperedge at ``position`` in a passage, such as ``handbook.pdf#0007/002``.

    Up to 1,000 ids sort by position.
    """
    return f"{passage_id}/{position:03}"


class Retriever(Protocol):
    """A protocol of retrievers, which find passages, hyperedges and entities for a question."""

    @property
    def name(self) -> str:
        """Name of the retriever, as on the command line and in the registry."""

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return the best passages, at most ``query.k``, with the hyperedges and entities that explain the rank.

        Raises:
            StaleSnapshotError: A passage was deleted from the store; the engine searches again with a later snapshot.
        """


class Reranker(Protocol):
    """A protocol of rerankers, which score each passage by reading question and passage together."""

    @property
    def name(self) -> str:
        """Name of the reranker, as on the command line."""

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """Return a score for each passage, in input order; a higher score is better. float32 ``[len(passages)]``.

        Raises:
            RerankerError: The reranker failed.
        """


class Progress(Protocol):
    """A protocol of callbacks that receive the progress of a long task."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """Receive ``done`` of ``total`` units (None if unknown) and a message that names unit and state."""


def silent(done: int, total: int | None, message: str) -> None:
    """Do nothing: the default :class:`Progress` callback, which discards the progress."""


@contextmanager
def report_failure(kind: type[PolyadError], component: str) -> Iterator[None]:
    """Convert any exception in the ``with`` block into an error of class ``kind`` that names the component.

    The component may be code of the user. Errors of polyad are not converted.

    Args:
        kind: Class of the error.
        component: The component as the subject of a sentence, such as "the retriever 'x'".

    Raises:
        PolyadError: Of the class ``kind``; errors of polyad pass unchanged.
    """
    try:
        yield
    except PolyadError:
        raise
    except Exception as error:
        raise kind(" ".join(f"{component} failed: {type(error).__name__}: {error}".split())) from error
