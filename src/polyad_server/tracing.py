"""OpenTelemetry spans of searches and answers, with the names of the GenAI conventions (v0.1.0).

Without the package opentelemetry-api, or without an exporter, nothing is recorded. Questions and texts are attributes
only if the setting ``server.log_questions`` is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from polyad.model import Answer, Evidence

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

PROVIDER = "polyad"


class TraceSpan(Protocol):
    """A protocol of a trace span (OpenTelemetry), to which attributes can be added."""

    def set_attribute(self, key: str, value: str | int | float | list[str], /) -> None:
        """Set an attribute of the trace span."""


class _NoSpan:
    def set_attribute(self, key: str, value: str | int | float | list[str], /) -> None:
        """Do nothing, because OpenTelemetry is not installed."""


@contextmanager
def trace_search(workspace: str, retriever: str, question: str) -> Iterator[TraceSpan]:
    """Yield a trace span with the name ``retrieval WORKSPACE`` that covers a search.

    Args:
        workspace: Name of the workspace.
        retriever: Name of the retriever.
        question: The question; empty if it must not be recorded.
    """
    with _start("retrieval", workspace) as span:
        span.set_attribute("polyad.retriever", retriever)
        if question:
            span.set_attribute("gen_ai.retrieval.query.text", question)
        yield span


@contextmanager
def trace_answer(workspace: str, model: str) -> Iterator[TraceSpan]:
    """Yield a trace span with the name ``chat WORKSPACE`` that covers an answer.

    Args:
        workspace: Name of the workspace.
        model: Name of the language model; empty if there is none.
    """
    with _start("chat", workspace) as span:
        span.set_attribute("gen_ai.request.model", model)
        yield span


def record_evidence(span: TraceSpan, evidence: Evidence) -> None:
    """Add the number of hits and the durations of a search to a trace span."""
    span.set_attribute("polyad.hits", len(evidence.passages))
    span.set_attribute("polyad.encode_ms", evidence.timings.encode)
    span.set_attribute("polyad.retrieve_ms", evidence.timings.retrieve)


def record_answer(span: TraceSpan, answer: Answer) -> None:
    """Add the numbers of tokens and citations of an answer to a trace span."""
    span.set_attribute("gen_ai.usage.input_tokens", answer.usage.prompt_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", answer.usage.completion_tokens)
    span.set_attribute("polyad.citations", len(answer.citations))


@contextmanager
def _start(operation: str, workspace: str) -> Iterator[TraceSpan]:
    if trace is None:
        yield _NoSpan()
        return
    # The span does not become the current span of its thread, since several threads write one answer.
    span = trace.get_tracer("polyad").start_span(f"{operation} {workspace}")
    try:
        span.set_attribute("gen_ai.operation.name", operation)
        span.set_attribute("gen_ai.provider.name", PROVIDER)
        span.set_attribute("gen_ai.data_source.id", workspace)
        yield span
    finally:
        span.end()
