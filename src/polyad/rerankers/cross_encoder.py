"""A reranker that runs a local cross-encoder with the sentence-transformers library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from polyad.config import RerankerSettings
from polyad.errors import ConfigurationError, MissingExtraError, RerankerError
from polyad.model import FloatArray
from polyad.model_hub import disable_tokenizer_threads, load_model
from polyad.text.words import replace_surrogates

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class CrossEncoderReranker:
    """Scores passages with a cross-encoder that sentence-transformers can load and that has one output.

    A passage that is longer than the model's input is truncated, usually to about 400 words.

    Args:
        model: Name or folder of the model.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigurationError: the model is not on this machine and cannot be downloaded, or it returns several scores for
            a passage.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        self._model = _load(model)
        outputs = self._model.num_labels
        if outputs != 1:
            raise ConfigurationError(
                f"the model {model!r} returns {outputs} scores for a passage; expected a cross-encoder that returns one"
            )

    @classmethod
    def from_name(cls, name: str, settings: RerankerSettings) -> Self:  # noqa: ARG003  # settings of endpoints
        """Return the reranker ``cross-encoder:NAME``; ``name`` is the text after the colon."""
        if not name.strip():
            raise ConfigurationError("no reranker 'cross-encoder:'; expected cross-encoder:MODEL_OR_FOLDER")
        return cls(name)

    @property
    def name(self) -> str:
        """Name of the reranker, such as ``cross-encoder:BAAI/bge-reranker-base``."""
        return f"cross-encoder:{self._name}"

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """Return the relevance of each passage to the question, float32 ``[passages]``; higher is better.

        Raises:
            RerankerError: the model failed.
        """
        if not passages:
            return np.zeros(0, dtype=np.float32)
        pairs = [(replace_surrogates(question), replace_surrogates(passage)) for passage in passages]
        try:
            scores = self._model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
        except (RuntimeError, ValueError, IndexError) as error:
            raise RerankerError(f"the cross-encoder {self._name!r} failed: {error}; try another model") from error
        return np.asarray(scores, dtype=np.float32)


def _load(model: str) -> CrossEncoder:
    disable_tokenizer_threads()
    try:
        import transformers
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "local") from error
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped upstream

    def load(only_local_files: bool) -> CrossEncoder:
        model_on_cpu: CrossEncoder = CrossEncoder(model, device="cpu", local_files_only=only_local_files)
        return model_on_cpu

    return load_model(load, f"the cross-encoder {model!r}")
