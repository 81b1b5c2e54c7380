"""The tokens of a language model, read from the ``tokenizer.json`` of the library tokenizers."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path

from polyad.errors import ConfigurationError, MissingExtraError
from polyad.evaluation.measures.answers import Split
from polyad.model_hub import replace_surrogates


def load_tokenizer(file: Path) -> tuple[str, Split]:
    """Return the name of a tokenizer, with a hash of its file, and a function that returns the tokens of a text.

    Raises:
        MissingExtraError: tokenizers is not installed.
        ConfigurationError: the file cannot be read as a tokenizer.
    """
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ModuleNotFoundError as error:
        raise MissingExtraError("tokenizers", "local") from error
    try:
        content = file.read_bytes()
        tokenizer = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises its own exceptions
        raise ConfigurationError(
            f"tokenizer is {str(file)!r}: {error}; expected a tokenizer.json, such as that of GPT-2"
        ) from error

    def split(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(replace_surrogates(text), add_special_tokens=False).ids
        return ids

    return f"{file.name} {hashlib.sha256(content).hexdigest()[:12]}", split
