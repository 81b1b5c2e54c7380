"""An embedder that calls an OpenAI-compatible endpoint."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from polyad.config import EncoderSettings
from polyad.errors import ConfigurationError, EmbedderError
from polyad.model import FloatArray
from polyad.openai_api.endpoint import Endpoint, EndpointError
from polyad.openai_api.rate_limit import RateLimiter
from polyad.protocols.components import TextKind
from polyad.text.words import format_count, replace_surrogates

_PROBE = "dimension"


class OpenAIEmbedder:
    """An embedder behind an OpenAI-compatible endpoint, with retries after failures.

    A blank text is not sent, because many endpoints reject it: its vector is the first unit vector, nearly orthogonal
    to the vectors of other texts.

    Args:
        model: Name of the model at the endpoint.
        base_url: Such as ``http://localhost:11434/v1``; empty for the SDK's default (``OPENAI_BASE_URL``, else OpenAI).
        api_key: Bearer token; empty for the SDK's default (``OPENAI_API_KEY``). Local servers need none.
        dimension: Length of the vectors; if None, one text is embedded on first use to find the length.
        query_prefix: Prefix of queries.
        passage_prefix: Prefix of all other texts.
        batch_size: Texts per request. 64 passages of 1,200 tokens stay within OpenAI's 300,000 tokens per request.
        concurrency: Maximum number of concurrent requests.
        timeout: Seconds that the endpoint may be silent; the whole reply may take four times as long.
        max_retries: Maximum number of retries after a temporary failure.
        retry_delay: Seconds before the first retry; doubled for each further retry, up to 8.
        max_reply_bytes: Maximum size of a decompressed reply. 64 MiB is ten times the size of 64 vectors of 4,096
            numbers.

    Raises:
        MissingExtraError: the extra ``llm`` is not installed.
        ConfigurationError: the API key contains characters that cannot be sent.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "",
        api_key: str = "",
        *,
        dimension: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 64,
        concurrency: int = 4,
        timeout: float = 120.0,
        max_retries: int = 5,
        retry_delay: float = 0.5,
        max_reply_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._model = model
        self._dimension = dimension
        self._probing = threading.Lock()
        self._prefixes: dict[TextKind, str] = {"query": query_prefix, "passage": passage_prefix}
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._endpoint = Endpoint(
            base_url=base_url,
            api_key=api_key,
            model=model,
            timeout=timeout,
            max_retries=max_retries,
            retry_delay=retry_delay,
            max_reply_bytes=max_reply_bytes,
            limiter=RateLimiter(),
        )

    @classmethod
    def from_name(cls, model: str, settings: EncoderSettings) -> Self:
        """Return the embedder ``openai:MODEL``; ``model`` is the text after the colon.

        Raises:
            MissingExtraError: the extra ``llm`` is not installed.
            ConfigurationError: ``model`` is empty, or the API key cannot be sent.
        """
        if not model:
            raise ConfigurationError("no embedder 'openai:'; expected openai:MODEL, a model that the endpoint serves")
        return cls(model, settings.base_url, settings.api_key)

    @property
    def name(self) -> str:
        """Name of the embedder: ``openai:MODEL``, and a short hash of the text prefixes if there are any.

        Vectors with other prefixes are not comparable. An embedder with prefixes cannot be loaded by name: to open the
        index again, pass an equal embedder.
        """
        name = f"openai:{self._model}"
        prefixes = "\0".join(self._prefixes.values())
        if len(prefixes) == 1:
            return name
        return f"{name}+{hashlib.sha256(prefixes.encode()).hexdigest()[:8]}"

    @property
    def dimension(self) -> int:
        """The number of components of the embedding vectors; the first access may send a request.

        Raises:
            EmbedderError: the length is unknown and the endpoint failed.
        """
        with self._probing:
            if self._dimension is None:
                self._dimension = self._request([_PROBE]).shape[1]
            return self._dimension

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: the endpoint failed after all retries, or did not return one vector for each text.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        not_blank = [row for row, text in enumerate(texts) if text.strip()]
        batches = [not_blank[start : start + self._batch_size] for start in range(0, len(not_blank), self._batch_size)]
        prefixed = [[self._prefixes[kind] + texts[row] for row in rows] for rows in batches]
        for rows, unit_vectors in zip(batches, self._request_all(prefixed), strict=True):
            if unit_vectors.shape[1] != self.dimension:
                raise EmbedderError(
                    f"model {self._model!r} returned vectors of length {unit_vectors.shape[1]}; expected "
                    f"{self.dimension}; check which model the endpoint serves"
                )
            vectors[rows] = unit_vectors
        if len(not_blank) < len(texts):
            vectors[[row for row, text in enumerate(texts) if not text.strip()], 0] = 1.0
        return vectors

    def _request_all(self, batches: Sequence[Sequence[str]]) -> list[FloatArray]:
        if len(batches) < 2:
            return [self._request(batch) for batch in batches]
        pool = ThreadPoolExecutor(min(self._concurrency, len(batches)), thread_name_prefix="polyad-embed")
        try:
            return list(pool.map(self._request, batches))
        finally:
            pool.shutdown(cancel_futures=True)

    def _request(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors of texts from one request, shape ``[texts, dimension]``."""
        create = self._endpoint.client.embeddings.with_raw_response.create
        inputs = [replace_surrogates(text) for text in texts]

        def send() -> str:
            # "float" because not every server knows the SDK's default, base64.
            reply: str = create(model=self._model, input=inputs, encoding_format="float").text
            return reply

        try:
            return self._endpoint.request_json(send, lambda body: _parse_vectors(body, len(inputs)))
        except EndpointError as error:
            raise EmbedderError(str(error)) from error


def _parse_vectors(body: Mapping[str, object], count: int) -> FloatArray:
    """Return the unit vectors in an endpoint's JSON response as a float32 array ``[count, dimension]``.

    Raises:
        ValueError: the reply does not have one finite vector other than zero for each text.
    """
    data = body.get("data")
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        actual = len(data) if isinstance(data, list) else "no list of"
        raise ValueError(f"asked for {format_count(count, 'vector')}, the reply has {actual}")
    rows = {str(item.get("index", position)): item.get("embedding") for position, item in enumerate(data)}
    if rows.keys() != {str(index) for index in range(count)}:
        raise ValueError(f"the indices of the vectors are not 0 to {count - 1}")
    try:
        vectors = np.array([rows[str(index)] for index in range(count)], dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError("the vectors are not lists of numbers of one length") from error
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise ValueError("the vectors are not lists of numbers")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise ValueError("a vector is zero or has numbers that are not finite")
    unit: FloatArray = (vectors / lengths).astype(np.float32)
    return unit
