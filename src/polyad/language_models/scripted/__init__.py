"""Language models that say what a script tells them to: for tests, and for trying polyad without a model.

``python -m polyad.language_models.scripted --port 8123`` serves one that answers every question with the beginning of
the first passage, and cites it. Point polyad at it with ``OPENAI_BASE_URL=http://127.0.0.1:8123/v1``.
"""

from polyad.language_models.scripted.faults import (
    Body,
    CutConnection,
    EmptyReply,
    Fault,
    Hang,
    MalformedJson,
    RateLimited,
    Refused,
    ServerError,
    UnsupportedSchema,
)
from polyad.language_models.scripted.model import Line, ScriptedLanguageModel, cite_first_passage
from polyad.language_models.scripted.server import Embedded, Recorded, Request, Reranked, Say, ScriptedServer, Spoken

__all__ = [
    "Body",
    "CutConnection",
    "Embedded",
    "EmptyReply",
    "Fault",
    "Hang",
    "Line",
    "MalformedJson",
    "RateLimited",
    "Recorded",
    "Refused",
    "Request",
    "Reranked",
    "Say",
    "ScriptedLanguageModel",
    "ScriptedServer",
    "ServerError",
    "Spoken",
    "UnsupportedSchema",
    "cite_first_passage",
]
