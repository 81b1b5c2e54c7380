"""Settings: frozen, keyword-only, validated on construction. Each stage is given only its own.

Every default carries its unit and its source. Nothing here reads the environment or a file; ``cli.py`` does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from polyad.errors import ConfigurationError

Segmentation = Literal["mdl", "mdl-no-entities", "mdl-no-semantics", "sentence", "window", "semantic-chunking"]


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise ConfigurationError(f"{name} is {value!r}; expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """Limits on what is read.

    Attributes:
        max_bytes: Files larger than this are reported and skipped. 64 MiB: several thousand printed pages.
    """

    max_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        _require(self.max_bytes > 0, "max_bytes", self.max_bytes, "a number of bytes above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How documents are cut into passages.

    Attributes:
        passage_tokens: Longest passage, in tokens (HyperGraphRAG, section 4.1: 1,200).
        overlap_tokens: How much of a passage's end begins the next, in tokens (HyperGraphRAG: 100).
        language: ISO 639-1 code for the rules that find the ends of sentences.
    """

    passage_tokens: int = 1200
    overlap_tokens: int = 100
    language: str = "en"

    def __post_init__(self) -> None:
        _require(self.passage_tokens > 0, "passage_tokens", self.passage_tokens, "a number of tokens above 0")
        _require(
            0 <= self.overlap_tokens < self.passage_tokens,
            "overlap_tokens",
            self.overlap_tokens,
            f"0 or more and less than passage_tokens ({self.passage_tokens})",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """How a passage's sentences are grouped into semantic units (HyperSU, section 4.1 and Table 11).

    Attributes:
        method: ``mdl`` is the paper's; the others are its Table 11.
        kappa: Semantic reward scale. The paper's 75 is for bge-large, where units average 3 to 6 sentences.
        effective_dimension: d_eff of the complexity term (Table 10: 32).
        min_words: Shortest unit, in words (20).
        max_words: Longest unit, in words (200).
        window: Sentences in a unit of method ``window`` (Table 11: 3).
        percentile: For ``semantic-chunking``: cut where the distance of neighbours is above this percentile, 0-100.
    """

    method: Segmentation = "mdl"
    kappa: float = 75.0
    effective_dimension: int = 32
    min_words: int = 20
    max_words: int = 200
    window: int = 3
    percentile: float = 80.0

    def __post_init__(self) -> None:
        _require(self.method in get_args(Segmentation), "method", self.method, f"one of {get_args(Segmentation)}")
        _require(self.kappa >= 0, "kappa", self.kappa, "0 or more")
        _require(self.effective_dimension >= 1, "effective_dimension", self.effective_dimension, "1 or more")
        _require(self.min_words >= 0, "min_words", self.min_words, "0 or more")
        _require(
            self.max_words >= max(1, self.min_words),
            "max_words",
            self.max_words,
            f"min_words ({self.min_words}) or more",
        )
        _require(self.window >= 1, "window", self.window, "1 or more")
        _require(0 <= self.percentile <= 100, "percentile", self.percentile, "0 to 100")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelSettings:
    """An OpenAI-compatible endpoint and how hard it may be driven.

    Attributes:
        model: The model's name at the endpoint.
        base_url: Such as ``http://localhost:11434/v1``; empty for the SDK's default.
        api_key: Sent as a bearer token; local servers accept any.
        concurrency: Requests under way at once.
        timeout: Seconds one request may take.
        max_retries: Further tries after a failure that may pass (429, 5xx, a cut connection, an empty reply).
        requests_per_minute: 0 for no limit.
        tokens_per_minute: Prompt and completion tokens together; 0 for no limit.
        prompt_price: US dollars a million prompt tokens; 0 where unknown.
        completion_price: US dollars a million completion tokens; 0 where unknown.
    """

    model: str
    base_url: str = ""
    api_key: str = "none"
    concurrency: int = 16
    timeout: float = 120.0
    max_retries: int = 5
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    prompt_price: float = 0.0
    completion_price: float = 0.0

    def __post_init__(self) -> None:
        _require(bool(self.model), "model", self.model, "the name of a model at the endpoint")
        _require(self.concurrency >= 1, "concurrency", self.concurrency, "1 or more")
        _require(self.timeout > 0, "timeout", self.timeout, "seconds above 0")
        for name in ("max_retries", "requests_per_minute", "tokens_per_minute", "prompt_price", "completion_price"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
