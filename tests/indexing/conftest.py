from __future__ import annotations

import pytest

from polyad.adapters.sentence_transformers import SentenceTransformerEmbedder
from polyad.protocols import Embedder


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return SentenceTransformerEmbedder()
