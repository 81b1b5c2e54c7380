"""Scripted language models: for tests, and for trying polyad without a model.

``python -m polyad.language_models.scripted --port 8123`` serves a model that answers each question with the first
sentence of the first passage, and cites the passage. Set ``OPENAI_BASE_URL=http://127.0.0.1:8123/v1`` to use it.
"""

from polyad.language_models.scripted.model import (
    ScriptedLanguageModel,
    ScriptedOutcome,
    cite_first_passage,
    extract_passage,
)
from polyad.language_models.scripted.server import (
    Request,
    ScriptedReply,
    ScriptedServer,
)

__all__ = [
    "Request",
    "ScriptedLanguageModel",
    "ScriptedOutcome",
    "ScriptedReply",
    "ScriptedServer",
    "cite_first_passage",
    "extract_passage",
]
