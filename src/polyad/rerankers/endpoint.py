"""A reranker that calls ``POST /rerank`` of an endpoint, as served by Cohere, Jina and vLLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from polyad.config import RerankerSettings
from polyad.errors import ConfigurationError, RerankerError
from polyad.model import FloatArray
from polyad.openai_api.endpoint import Endpoint, EndpointError
from polyad.openai_api.rate_limit import RateLimiter
from polyad.text.words import replace_surrogates

_MAX_FLOAT32 = float(np.finfo(np.float32).max)


class EndpointReranker:
    """Scores passages through the rerank API of an endpoint, with one request for each question.

    Args:
        model: Name of the model at the endpoint.
        settings: Address, API key and time limits of the endpoint.

    Raises:
        MissingExtraError: the extra ``llm`` is not installed.
        ConfigurationError: the API key contains characters that cannot be sent.
    """

    def __init__(self, model: str, settings: RerankerSettings | None = None) -> None:
        settings = settings or RerankerSettings()
        self._model = model
        self._endpoint = Endpoint(
            base_url=settings.base_url,
            api_key=settings.api_key,
            model=model,
            timeout=settings.timeout,
            max_retries=settings.max_retries,
            retry_delay=settings.retry_delay,
            max_reply_bytes=settings.max_reply_bytes,
            limiter=RateLimiter(),
        )

    @classmethod
    def from_name(cls, name: str, settings: RerankerSettings) -> Self:
        """Return the reranker ``endpoint:NAME``; ``name`` is the text after the colon."""
        if not name.strip():
            raise ConfigurationError(
                "no reranker 'endpoint:'; expected endpoint:MODEL, a model that the endpoint serves"
            )
        return cls(name, settings)

    @property
    def name(self) -> str:
        """Name of the reranker: ``endpoint:`` and the name of the model."""
        return f"endpoint:{self._model}"

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """Return the relevance of each passage to the question, float32 ``[passages]``; higher is better.

        Raises:
            RerankerError: the endpoint failed after all retries, or did not return a score for each passage.
        """
        if not passages:
            return np.zeros(0, dtype=np.float32)
        request = {
            "model": self._model,
            "query": replace_surrogates(question),
            "documents": list(map(replace_surrogates, passages)),
        }

        try:
            return self._endpoint.request_json(
                lambda: self._endpoint.client.post("/rerank", body=request, cast_to=str),
                lambda body: _parse_scores(body, len(passages)),
            )
        except EndpointError as error:
            raise RerankerError(str(error)) from error


def _parse_scores(body: Mapping[str, Any], passage_count: int) -> FloatArray:
    """Return the scores in the JSON ``body`` of a rerank API's response, in the order of the passages.

    Raises:
        ValueError: the reply does not have one finite number for each passage.
    """
    results = body.get("results")
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise ValueError("the reply has no list of results; check that the endpoint reranks")
    scores = {str(result.get("index")): result.get("relevance_score") for result in results}
    if len(results) != passage_count or scores.keys() != {str(index) for index in range(passage_count)}:
        raise ValueError(f"the reply has scores for {len(scores)} of {passage_count} passages, or for others")
    values = [scores[str(index)] for index in range(passage_count)]
    if not all(_is_finite(value) for value in values):
        raise ValueError("a relevance_score is not a finite number")
    return np.array(values, dtype=np.float32)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_FLOAT32
