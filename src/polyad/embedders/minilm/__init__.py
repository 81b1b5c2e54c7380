"""The default embedding model, all-MiniLM-L6-v2, computed with numpy alone."""

from polyad.embedders.minilm.embedder import MiniLMEmbedder

__all__ = ["MiniLMEmbedder"]
