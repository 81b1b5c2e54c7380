"""An embedder that calls an OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np

from polyad.config import EncoderSettings
from polyad.embedders.prefixes import Prefixes, find_prefixes
from polyad.errors import ConfigurationError, EmbedderError
from polyad.model import FloatArray
from polyad.openai_api.endpoint import Endpoint, EndpointError
from polyad.openai_api.rate_limit import RateLimiter
from polyad.protocols.components import TextKind
from polyad.text.words import format_count, replace_surrogates

_LOG = logging.getLogger(__name__)

_PROBE = "dimension"

_REFUSALS = (400, 413, 422)
"""Status codes with which servers refuse a request for its number of texts or its length."""

_LIMIT = re.compile(r"(?:max\w*|limit\w*|than|most|exceed\w*|up to|[<>]=?)\D{0,40}?(\d{1,4})\b", re.IGNORECASE)
"""The largest number of texts of a request, in an error message."""

_MIN_HALF = 50
"""Characters of a text up to which its length is not the reason of a refusal, so that the text is not halved."""


class OpenAIEmbedder:
    """An embedder behind an OpenAI-compatible endpoint, with retries after failures.

    A blank text is not sent, because many endpoints reject it: its vector is the first unit vector, nearly orthogonal
    to the vectors of other texts. A text that the endpoint refuses as too long is embedded in halves, whose vectors are
    averaged, weighted by their lengths.

    Args:
        model: Name of the model at the endpoint.
        base_url: Such as ``http://localhost:11434/v1``; empty for the SDK's default (``OPENAI_BASE_URL``, else OpenAI).
        api_key: Bearer token; empty for the SDK's default (``OPENAI_API_KEY``). Local servers need none.
        dimension: Length of the vectors; if None, one text is embedded on first use to find the length.
        query_prefix: Prefix of queries.
        passage_prefix: Prefix of all other texts.
        batch_size: Maximum number of texts per request, lowered once the endpoint refuses as many. 64 passages of 1,200
            tokens stay within OpenAI's 300,000 tokens per request.
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
        self._halved_texts = 0
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
        # An index stores the hash of its prefixes; "+" alone stands for the name of an index without prefixes.
        name = re.fullmatch(r"(?P<model>.+?)(?P<hash>\+(?:[0-9a-f]{8})?)?", model)
        assert name is not None
        prefixes = find_prefixes(name["model"]) if name["hash"] != "+" else Prefixes()
        query, passage = settings.query_prefix, settings.passage_prefix
        embedder = cls(
            name["model"],
            settings.base_url,
            settings.api_key,
            query_prefix=prefixes.query if query == "auto" else query,
            passage_prefix=prefixes.passage if passage == "auto" else passage,
            batch_size=settings.batch_size,
        )
        if name["hash"] and embedder.name != f"openai:{model.removesuffix('+')}":
            raise ConfigurationError(
                f"the index was built with other prefixes of texts than {query!r} and {passage!r}; set "
                "encoder.query_prefix and encoder.passage_prefix to those that built it, or index into another --store"
            )
        return embedder

    @property
    def name(self) -> str:
        """Name of the embedder: ``openai:MODEL``, and a short hash of the text prefixes if there are any.

        Vectors with other prefixes are not comparable.
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
                self._dimension = self._request([_PROBE], "").shape[1]
            return self._dimension

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: the endpoint failed after all retries, or did not return one vector for each text.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        not_blank = [row for row, text in enumerate(texts) if text.strip()]
        batches = [not_blank[start : start + self._batch_size] for start in range(0, len(not_blank), self._batch_size)]
        prefix = self._prefixes[kind]
        for rows, unit_vectors in zip(
            batches, self._request_all([[texts[row] for row in rows] for rows in batches], prefix), strict=True
        ):
            if unit_vectors.shape[1] != self.dimension:
                raise EmbedderError(
                    f"model {self._model!r} returned vectors of length {unit_vectors.shape[1]}; expected "
                    f"{self.dimension}; check which model the endpoint serves"
                )
            vectors[rows] = unit_vectors
        if len(not_blank) < len(texts):
            vectors[[row for row, text in enumerate(texts) if not text.strip()], 0] = 1.0
        return vectors

    def _request_all(self, batches: Sequence[Sequence[str]], prefix: str) -> list[FloatArray]:
        if len(batches) < 2:
            return [self._request(batch, prefix) for batch in batches]
        pool = ThreadPoolExecutor(min(self._concurrency, len(batches)), thread_name_prefix="polyad-embed")
        try:
            return list(pool.map(lambda batch: self._request(batch, prefix), batches))
        finally:
            pool.shutdown(cancel_futures=True)

    def _request(self, texts: Sequence[str], prefix: str) -> FloatArray:
        """Return unit vectors of texts, shape ``[texts, dimension]``, from one request, or more if it is refused.

        If smaller requests of one size succeed, this size is the limit of all later requests.
        """
        if len(texts) > self._batch_size:  # another thread has learnt a lower limit
            return self._request_parts(texts, prefix, self._batch_size)
        vectors = self._send(texts, prefix)
        if not isinstance(vectors, EndpointError):
            return vectors
        if vectors.status not in _REFUSALS or (len(texts) == 1 and len(texts[0]) < 2 * _MIN_HALF):
            raise EmbedderError(str(vectors)) from vectors
        if len(texts) == 1:
            return self._embed_halves(texts[0], prefix)
        limits = (int(number) for number in _LIMIT.findall(str(vectors)))
        size = next((limit for limit in limits if 0 < limit < len(texts)), -(-len(texts) // 2))
        halved_texts = self._halved_texts
        parts = self._request_parts(texts, prefix, size)
        if self._halved_texts == halved_texts:  # no text was too long by itself
            self._batch_size = min(self._batch_size, size)
        return parts

    def _request_parts(self, texts: Sequence[str], prefix: str, size: int) -> FloatArray:
        return np.vstack([self._request(texts[start : start + size], prefix) for start in range(0, len(texts), size)])

    def _embed_halves(self, text: str, prefix: str) -> FloatArray:
        """Return the unit vector of a text that is too long, shape ``[1, dimension]``: the average of its halves."""
        self._halved_texts += 1
        if self._halved_texts.bit_count() == 1:  # 1, 2, 4, 8, ...
            _LOG.warning(
                "the model %r has no room for some texts (%d so far); they are embedded in halves",
                *(self._model, self._halved_texts),
            )
        middle = text.rfind(" ", len(text) // 4, len(text) // 2) + 1 or len(text) // 2
        halves = (text[:middle], text[middle:])
        vectors = np.vstack([self._request([half], prefix) for half in halves])
        total = np.array([[len(half) for half in halves]], dtype=np.float32) @ vectors
        mean: FloatArray = total / max(float(np.linalg.norm(total)), 1e-12)
        return mean

    def _send(self, texts: Sequence[str], prefix: str) -> FloatArray | EndpointError:
        """Return unit vectors of texts from one request, shape ``[texts, dimension]``, or the error of the endpoint."""
        client = self._endpoint.client
        body: dict[str, object] = {
            "model": self._model,
            "input": [replace_surrogates(prefix + text) for text in texts],
        }

        def send() -> str:
            # Not by the SDK's method for embeddings, which always sends an encoding_format; some servers reject it.
            return client.post("/embeddings", cast_to=str, body=body)

        try:
            return self._endpoint.request_json(send, lambda reply: _parse_vectors(reply, len(texts)))
        except EndpointError as error:
            return error


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
        vectors = np.array([_decode_vector(rows[str(index)]) for index in range(count)], dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError("the vectors are not lists of numbers of one length") from error
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise ValueError("the vectors are not lists of numbers")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise ValueError("a vector is zero or has numbers that are not finite")
    unit: FloatArray = (vectors / lengths).astype(np.float32)
    return unit


def _decode_vector(vector: object) -> object:
    """Return a vector as numbers if it is the base64 of little-endian float32, otherwise ``vector`` itself."""
    return np.frombuffer(base64.b64decode(vector, validate=True), "<f4") if isinstance(vector, str) else vector
