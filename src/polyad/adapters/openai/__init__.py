"""Endpoints that speak OpenAI's protocol: chat models, embedders and rerankers. Naming them here takes no extra."""

from polyad.adapters.openai.embeddings import OpenAIEmbedder
from polyad.adapters.openai.language_model import OpenAILanguageModel
from polyad.adapters.openai.rerank import EndpointReranker

__all__ = ["EndpointReranker", "OpenAIEmbedder", "OpenAILanguageModel"]
