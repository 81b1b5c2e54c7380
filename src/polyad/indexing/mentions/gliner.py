"""Mentions by GLiNER, a named entity recogniser with free labels (Zaratiana et al., NAACL 2024)."""

# ruff: noqa: RUF001  look-alike punctuation is matched

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model import Mention
from polyad.model_hub import choose_device
from polyad.protocols.components import LanguageModel
from polyad.text.words import split_by_size

DEFAULT_MODEL = "urchade/gliner_large-v2.1"
"""Model of HyperSU, trained on English texts."""

MULTILINGUAL_MODEL = "urchade/gliner_multi-v2.1"
"""Model for texts in other languages: ``--mention-extractor gliner:general:urchade/gliner_multi-v2.1``."""

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

_WINDOW_WORDS = 128
_SENTENCE_WINDOWS = "@sentence"

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"”’)\]]*\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")
"""A word as the default splitter of GLiNER defines it."""


class GlinerMentionExtractor:
    """A mention extractor with a GLiNER model (zero-shot named entity recognition), which the constructor loads.

    A text is split at the ends of sentences into windows that the model can read; spans are mapped back to the text.

    Args:
        model: Name on the Hugging Face Hub, or a folder with a saved model. The default model knows English only;
            :data:`MULTILINGUAL_MODEL` is for texts in other languages.
        labels: Name of a label set, labels separated by commas, or a sequence of labels.
        threshold: Lowest probability of a mention, in (0, 1) (HyperSU, Table 10: 0.3).
        window_words: Longest window, in words. With 1, each sentence is a window, as in HyperSU. More sentences in a
            window give the model more context, and need fewer passes over the labels.
        batch_size: Windows in one forward pass.
        device: PyTorch device, such as ``cpu`` or ``cuda``. ``auto`` is CUDA if available, else MPS, else the
            processor.

    Attributes:
        name: The extractor's name on the command line: ``gliner:LABELS:MODEL``, or ``gliner:LABELS@sentence:MODEL``.

    Raises:
        MissingExtraError: gliner is not installed.
        ConfigurationError: the model is not on this machine and cannot be downloaded, or a setting is out of range.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        labels: str | Sequence[str] = "general",
        threshold: float = 0.3,
        *,
        window_words: int = _WINDOW_WORDS,
        batch_size: int = 8,
        device: str = "auto",
    ) -> None:
        if not 0 < threshold < 1:
            raise ConfigurationError(f"threshold is {threshold!r}; expected a probability above 0 and below 1")
        if window_words < 1 or batch_size < 1:
            raise ConfigurationError(f"window_words is {window_words!r}, batch_size {batch_size!r}; expected 1 or more")
        self._labels = _parse_labels(labels)
        self._threshold = threshold
        self._batch_size = batch_size
        windows = _SENTENCE_WINDOWS if window_words == 1 else ""
        self.name = f"gliner:{labels if isinstance(labels, str) else ','.join(labels)}{windows}:{model}"
        self._gliner = _load(model, device)
        limit = int(getattr(self._gliner.config, "max_len", window_words))
        self._max_sentence_words = limit
        self._window_words = min(window_words, limit)

    @classmethod
    def from_name(cls, options: str, language_model: LanguageModel | None = None) -> Self:  # noqa: ARG003  # the signature of all extractors
        """Return the extractor ``gliner:LABELS:MODEL``; ``options`` is the text after the first colon.

        Model, or labels and model, may be missing: ``gliner:LABELS`` or ``gliner``.

        ``LABELS@sentence`` reads each sentence by itself, as in HyperSU (appendix C.2).

        Args:
            options: The text after the first colon.
            language_model: Not used.

        Raises:
            MissingExtraError: gliner is not installed.
            ConfigurationError: there are no such labels, or no such model.
        """
        labels, _, model = options.partition(":")
        window_words = 1 if labels.endswith(_SENTENCE_WINDOWS) else _WINDOW_WORDS
        labels = labels.removesuffix(_SENTENCE_WINDOWS) or "general"
        return cls(model or DEFAULT_MODEL, labels, window_words=window_words)

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the mentions in each text as one list per text, ordered by ``start``, the longest first.

        The score is the probability times 100.
        """
        mentions: list[list[Mention]] = [[] for _ in texts]
        windows = [
            (position, start, end)
            for position, text in enumerate(texts)
            for start, end in _split_into_windows(text, self._window_words, self._max_sentence_words)
        ]
        if not windows:
            return mentions
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
                mentions[position].append(
                    Mention(texts[position][start:end], start, end, type=str(entity["label"]), score=score)
                )
        return [sorted(of_text, key=lambda mention: (mention.start, -mention.end)) for of_text in mentions]


def _parse_labels(labels: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str):
        parsed = LABEL_SETS.get(labels) or (labels.split(",") if "," in labels else None)
        if parsed is None:
            raise ConfigurationError(
                f"no label set {labels!r}; expected one of {', '.join(LABEL_SETS)}, or labels separated by commas, "
                f"each optionally followed by {_SENTENCE_WINDOWS}"
            )
        labels = parsed
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
    device = choose_device(device)
    try:
        loaded = gliner.GLiNER.from_pretrained(model, map_location=device)
    except Exception as error:  # the library, the hub's client and PyTorch raise their own exceptions
        reason = next(iter(str(error).strip().splitlines()), "no reason given")
        raise ConfigurationError(
            f"the GLiNER model {model!r} cannot be loaded ({type(error).__name__}: {reason}); "
            "give the folder of a downloaded model, or a name on the Hugging Face Hub with network access, such as "
            f"gliner:general:{MULTILINGUAL_MODEL} for texts that are not English"
        ) from error
    loaded.eval()
    return loaded


def _split_into_windows(text: str, max_words: int, max_sentence_words: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of windows that cover the text, each of whole sentences with at most ``max_words`` words.

    A single sentence may have up to ``max_sentence_words`` words; a longer sentence is cut between words.
    """
    for group in split_by_size(_split_sentences(text, max_sentence_words), lambda sentence: sentence[2], max_words):
        yield group[0][0], group[-1][1]


def _split_sentences(text: str, max_words: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of words of each sentence; a sentence of more than ``max_words`` words is divided."""
    bounds = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    for left, right in pairwise(bounds):
        spans = [match.span() for match in _WORD.finditer(text, left, right)]
        for first in range(0, len(spans), max_words):
            piece = spans[first : first + max_words]
            yield piece[0][0], piece[-1][1], len(piece)
