"""Rerankers on this machine: cross-encoders through the sentence-transformers library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from polyad.config import RerankerSettings
from polyad.errors import ConfigurationError, MissingExtraError, RerankerError
from polyad.model import FloatArray
from polyad.model_hub import can_fetch

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class CrossEncoderReranker:
    """Scores passages with any cross-encoder of one output that sentence-transformers can load.

    A passage longer than the model reads counts by its beginning, which mostly is about 400 words.

    Args:
        model: Name or folder.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ConfigurationError: there is no such model on this machine, and it cannot be fetched; or it does not give one
            score a passage.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        self._model = _load(model)
        outputs = self._model.num_labels
        if outputs != 1:
            raise ConfigurationError(
                f"the model {model!r} gives {outputs} numbers for a passage; expected a cross-encoder that gives one"
            )

    @classmethod
    def from_name(cls, name: str, settings: RerankerSettings) -> Self:  # noqa: ARG003  # those of endpoints
        """The reranker ``cross-encoder:NAME``."""
        if not name.strip():
            raise ConfigurationError("no reranker 'cross-encoder:'; expected cross-encoder:MODEL_OR_FOLDER")
        return cls(name)

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"cross-encoder:{self._name}"

    def scores(self, question: str, passages: Sequence[str]) -> FloatArray:
        """The model's score of each passage; see :class:`polyad.protocols.components.Reranker`.

        Raises:
            RerankerError: the model could not be run.
        """
        if not passages:
            return np.zeros(0, dtype=np.float32)
        pairs = [(_encodable(question), _encodable(passage)) for passage in passages]
        try:
            scores = self._model.predict(pairs, show_progress_bar=False, convert_to_numpy=True)
        except (RuntimeError, ValueError, IndexError) as error:
            raise RerankerError(f"the cross-encoder {self._name!r} failed: {error}; try another model") from error
        return np.asarray(scores, dtype=np.float32)


def _encodable(text: str) -> str:
    """``text`` with a question mark for each lone surrogate, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _load(model: str) -> CrossEncoder:
    # The tokenizer's own threads only get in the way of a process that forks, and warn about it.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import transformers
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "local") from error
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped upstream
    problem: Exception | None = None
    for only_local in (True, False):  # what is on this machine needs no waiting for a network
        if not only_local and not can_fetch():
            break
        try:
            loaded: CrossEncoder = CrossEncoder(model, device="cpu", local_files_only=only_local)
            return loaded
        except (OSError, ValueError) as error:
            problem = error
    reason = (str(problem).strip().splitlines() or [""])[0]
    raise ConfigurationError(
        f"the cross-encoder {model!r} cannot be loaded ({reason}); expected a folder, or a name that is cached on this "
        "machine or can be fetched"
    ) from problem
