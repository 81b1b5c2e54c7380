"""Adapters by the names that a command line or a settings file gives them."""

from __future__ import annotations

from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.protocols import Embedder, LanguageModel, MentionExtractor

DEFAULT_EMBEDDER = "all-MiniLM-L6-v2"
DEFAULT_EXTRACTOR = "rules"


def load_embedder(name: str) -> Embedder:
    """The embedder called ``name``.

    ``openai:MODEL`` is served by the OpenAI-compatible endpoint that the OpenAI library finds in the environment
    (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``); ``hashing:DIMENSION`` hashes words and needs no model, for tests and
    comparisons; anything else is the name or the folder of a sentence-transformers model.

    Raises:
        ConfigurationError: there is no such model.
    """
    kind, _, model = name.partition(":")
    if kind == "openai":
        from polyad.adapters.openai.embeddings import OpenAIEmbedder

        return OpenAIEmbedder(model)
    if kind == "hashing" and model.isdecimal() and int(model):
        from polyad.adapters.hashing import HashingEmbedder

        return HashingEmbedder(int(model))
    from polyad.adapters.sentence_transformers import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(name)


def load_extractor(name: str, language_model: LanguageModel | None) -> MentionExtractor:
    """The mention extractor called ``name``.

    ``rules`` needs no model; ``gliner`` or ``gliner:LABELS`` or ``gliner:LABELS:MODEL`` with the label set ``general``
    or ``medical``; ``llm`` asks the language model; ``given:FILE`` finds the names listed in a file.

    Raises:
        ConfigurationError: there is no such extractor, or it lacks what it needs.
    """
    kind, _, rest = name.partition(":")
    if kind == "rules" and not rest:
        from polyad.indexing.mentions.rules import RuleMentionExtractor

        return RuleMentionExtractor()
    if kind == "gliner":
        from polyad.adapters.gliner import DEFAULT_MODEL, GlinerMentionExtractor

        labels, _, model = rest.partition(":")
        return GlinerMentionExtractor(model or DEFAULT_MODEL, labels or "general")
    if kind == "llm" and not rest:
        from polyad.indexing.mentions.llm import LanguageModelMentionExtractor

        if language_model is None:
            raise ConfigurationError("mentions 'llm' need a language model; name one with --model or POLYAD_MODEL")
        return LanguageModelMentionExtractor(language_model)
    if kind == "given" and rest:
        from polyad.indexing.mentions.given import GivenMentionExtractor

        return GivenMentionExtractor(Path(rest))
    raise ConfigurationError(
        f"no mention extractor {name!r}; expected rules, gliner, gliner:medical, llm or given:FILE"
    )
