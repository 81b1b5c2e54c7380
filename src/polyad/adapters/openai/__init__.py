"""Endpoints that speak OpenAI's protocol: chat models and embedders. Naming them here takes no extra."""

from polyad.adapters.openai.embeddings import OpenAIEmbedder
from polyad.adapters.openai.language_model import OpenAILanguageModel

__all__ = ["OpenAIEmbedder", "OpenAILanguageModel"]
