"""Mentions by GLiNER, a named entity recogniser that takes any labels (Zaratiana et al., NAACL 2024)."""

# ruff: noqa: RUF001  the look-alike punctuation below is what is being told apart

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model import Mention
from polyad.protocols.components import LanguageModel

DEFAULT_MODEL = "urchade/gliner_large-v2.1"

LABEL_SETS = {
    "general": (
        "person", "character", "book", "novel", "film", "song", "work of art", "location", "country", "city",
        "organization", "event", "date", "year", "object", "product", "scientific concept",
    ),
    "medical": (
        "disease", "disorder", "symptom", "clinical sign", "drug", "treatment", "procedure", "body part", "organ",
        "diagnostic test", "lab test",
    ),
}  # fmt: skip
"""The label sets of HyperSU, Table 9."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"”’)\]]*\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")
"""What GLiNER counts as a word, in its default splitter."""


class GlinerMentionExtractor:
    """Finds mentions with a GLiNER model, which is loaded when the extractor is made.

    A text is cut at the ends of sentences into windows that the model can read whole; spans are mapped back.

    Args:
        model: Name on the Hugging Face Hub, or a folder with a saved model.
        labels: The name of a label set, labels separated by commas, or the labels.
        threshold: Least probability of a mention, in (0, 1) (HyperSU, Table 10: 0.3).
        window_words: Longest window, in words. 1 gives every sentence by itself, as HyperSU does; more sentences at
            once give the model more context and fewer runs over the labels.
        batch_size: Windows in one forward pass.
        device: As PyTorch names it, such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtraError: gliner is not installed.
        ConfigurationError: the model is not on this machine and cannot be fetched, or a setting is out of range.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        labels: str | Sequence[str] = "general",
        threshold: float = 0.3,
        *,
        window_words: int = 128,
        batch_size: int = 8,
        device: str = "cpu",
    ) -> None:
        if not 0 < threshold < 1:
            raise ConfigurationError(f"threshold is {threshold!r}; expected a probability above 0 and below 1")
        if window_words < 1 or batch_size < 1:
            raise ConfigurationError(f"window_words is {window_words!r}, batch_size {batch_size!r}; expected 1 or more")
        self._labels = _labels(labels)
        self._threshold = threshold
        self._batch_size = batch_size
        self._name = f"gliner:{labels if isinstance(labels, str) else ','.join(labels)}:{model}"
        self._gliner = _load(model, device)
        longest = int(getattr(self._gliner.config, "max_len", window_words))
        self._longest_sentence = longest
        self._window_words = min(window_words, longest)

    @classmethod
    def from_name(cls, rest: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # asks none
        """The extractor of ``gliner``, ``gliner:LABELS`` or ``gliner:LABELS:MODEL``, from what follows the colon.

        Raises:
            MissingExtraError: gliner is not installed.
            ConfigurationError: there are no such labels, or no such model.
        """
        labels, _, model = rest.partition(":")
        return cls(model or DEFAULT_MODEL, labels or "general")

    @property
    def name(self) -> str:
        """``gliner:LABELS:MODEL``, as on the command line."""
        return self._name

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions in each text by ``start``, then longest first; the score is the probability times 100."""
        found: list[list[Mention]] = [[] for _ in texts]
        windows = [
            (position, start, end)
            for position, text in enumerate(texts)
            for start, end in _windows(text, self._window_words, self._longest_sentence)
        ]
        if not windows:
            return found
        predictions = self._gliner.inference(
            [texts[position][start:end] for position, start, end in windows],
            list(self._labels),
            threshold=self._threshold,
            flat_ner=True,
            batch_size=self._batch_size,
        )
        for (position, offset, _), entities in zip(windows, predictions, strict=True):
            for entity in entities:
                start, end = offset + int(entity["start"]), offset + int(entity["end"])
                score = min(100.0, 100 * float(entity["score"]))
                found[position].append(
                    Mention(texts[position][start:end], start, end, type=str(entity["label"]), score=score)
                )
        return [sorted(mentions, key=lambda mention: (mention.start, -mention.end)) for mentions in found]


def _labels(labels: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str):
        chosen = LABEL_SETS.get(labels) or (labels.split(",") if "," in labels else None)
        if chosen is None:
            raise ConfigurationError(
                f"no label set {labels!r}; expected one of {', '.join(LABEL_SETS)}, or labels separated by commas"
            )
        labels = chosen
    stripped = tuple(label.strip() for label in labels if label.strip())
    if not stripped:
        raise ConfigurationError("no labels for GLiNER; expected at least one kind of thing to find")
    return stripped


def _load(model: str, device: str) -> Any:
    try:
        gliner = importlib.import_module("gliner")
    except ModuleNotFoundError as error:
        if error.name != "gliner":
            raise
        raise MissingExtraError("gliner", "gliner") from error
    try:
        loaded = gliner.GLiNER.from_pretrained(model, map_location=device)
    except Exception as error:  # the library, the hub's client and PyTorch each raise their own
        reason = next(iter(str(error).strip().splitlines()), "no reason given")
        raise ConfigurationError(
            f"the GLiNER model {model!r} cannot be loaded ({type(error).__name__}: {reason}); "
            "give the folder of a downloaded model, or a name on the Hugging Face Hub with network access"
        ) from error
    loaded.eval()
    return loaded


def _windows(text: str, words: int, longest: int) -> Iterator[tuple[int, int]]:
    """Spans that together hold every word of the text: whole sentences, up to ``words`` words where there are several.

    A single sentence may have up to ``longest`` words; what is longer is cut between words.
    """
    start = end = count = 0
    for sentence_start, sentence_end, length in _sentences(text, longest):
        if count and count + length > words:
            yield start, end
            count = 0
        if not count:
            start = sentence_start
        end = sentence_end
        count += length
    if count:
        yield start, end


def _sentences(text: str, longest: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and length in words of the sentences; one of more than ``longest`` words in pieces."""
    bounds = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    for left, right in pairwise(bounds):
        spans = [match.span() for match in _WORD.finditer(text, left, right)]
        for first in range(0, len(spans), longest):
            piece = spans[first : first + longest]
            yield piece[0][0], piece[-1][1], len(piece)
