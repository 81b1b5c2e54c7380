"""The plug-in points: structural, small, batch-shaped; those of stores are in :mod:`polyad.protocols.store`.

Implementations live in ``adapters`` and the pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from polyad.errors import LanguageModelError
from polyad.model import Document, Evidence, Failure, FloatArray, Mention, Query, Span, Usage
from polyad.protocols.snapshot import Snapshot

TextKind = Literal["query", "passage"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine."""

    @property
    def name(self) -> str:
        """Identifies model and preprocessing; two embedders of one name give comparable vectors."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Embed ``texts``: float32 of shape ``[len(texts), dimension]``, rows of length 1, in the order given."""


class Reader(Protocol):
    """Turns files and folders into documents; what cannot be read comes back as a failure, in its place."""

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
        """Identifies the splitter and its settings; what was cut under another name is cut again."""

    def passages(self, text: str, breaks: Sequence[int] = ()) -> list[Span]:
        """Return the spans of the passages in ``text``, in order; they may overlap. Empty for blank text.

        Args:
            text: Of a document.
            breaks: Offsets at which a section begins, in order; a passage had better not go across them.
        """

    def sentences(self, text: str) -> list[Span]:
        """Return the spans of the sentences in ``text``, in order, disjoint, without surrounding white space."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in ``text``, as this splitter counts them."""


class MentionExtractor(Protocol):
    """Finds mentions of entities in texts."""

    @property
    def name(self) -> str:
        """Identifies the extractor and its settings; part of what decides whether a passage is unchanged."""

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
    """What a language model said, and what it cost. A cached reply has ``usage`` of zero.

    ``thoughts`` are what a reasoning model thought before, as far as the server tells; they are no part of the text.
    """

    text: str
    usage: Usage
    cached: bool = False
    truncated: bool = False
    thoughts: str = ""


OnOutcome = Callable[[int, Reply | LanguageModelError], None]
"""Told of the outcome of the prompt at a position. It may refuse a reply by raising LanguageModelError, which is then
the outcome."""

BudgetCheck = Callable[[Prompt, Usage], None]
"""Lets a prompt pass, on which so much was spent in vain before, or raises NoMoreRepliesError to have none sent."""


class LanguageModel(Protocol):
    """A chat model. Threads, retries and rate limits are the adapter's business."""

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
            prompts: What to ask, many at a time.
            on_outcome: Told of each outcome as it comes, in the calling thread: whoever pays for replies can keep each
                one before the next arrives.
            gate: Called before each try at a prompt, from any thread.
        """

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of these tokens in US dollars; 0 if the price is unknown."""

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Call ``on_text`` with each piece as it comes, then return the whole. Raises LanguageModelError."""


class Retriever(Protocol):
    """Finds the evidence for a question. It is tied to no index: each time it is given the snapshot to search."""

    @property
    def name(self) -> str:
        """As on the command line."""

    def retrieve(self, query: Query, snapshot: Snapshot) -> Evidence:
        """Return at most ``query.k`` passages with the hyperedges and entities that led to them, best first.

        Raises:
            StaleSnapshotError: what was to be shown has gone from the store since; the search begins again with a later
                snapshot.
        """


class Reranker(Protocol):
    """Says how well passages answer a question, having read both together; too slow for more than some dozens."""

    @property
    def name(self) -> str:
        """As on the command line."""

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """Return a score for each passage, in input order; higher is better. float32 ``[len(passages)]``.

        Raises:
            RerankerError: it failed.
        """


class Progress(Protocol):
    """Told how far a long piece of work is; the command line draws it, a library user may ignore it."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """``done`` of ``total`` (None while unknown); ``message`` names the unit and the present state."""


def silent(done: int, total: int | None, message: str) -> None:
    """Ignore the progress: the default :class:`Progress` callback."""
