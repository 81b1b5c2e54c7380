"""Answers a question from its evidence, with a citation behind every claim."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable

from polyad.answering.citations import CitationFilter, sentence_around
from polyad.answering.context import Context, CountTokens, build_context
from polyad.config import AnswerSettings
from polyad.errors import LanguageModelError
from polyad.model import Answer, Citation, Evidence
from polyad.protocols import LanguageModel, Prompt, Reply
from polyad.text.thoughts import ThoughtFilter, without_thoughts
from polyad.text.tokens import count_tokens

UNAIDED = "none"
"""The retriever that finds nothing on purpose (NaiveGeneration): the model answers from what it knows."""

NO_MODEL = (
    "No language model is set, so this is the evidence alone; to get an answer, give --model NAME and set "
    "OPENAI_BASE_URL to an OpenAI-compatible endpoint (or OPENAI_API_KEY for OpenAI's own)."
)
NO_EVIDENCE = "No passage was found to answer from, so the language model was not asked."
CUT = "The answer was cut at {limit} tokens; allow more with max_answer_tokens."


class CitingAnswerer:
    """Answers from numbered passages and cites them as ``[1]``; without a model, hands the evidence on and says so.

    Citations that point at no passage of the prompt are removed from the text and counted. A reasoning model's
    thoughts are neither shown nor streamed.

    Args:
        llm: Who writes the answer; None where none is set.
        settings: Budgets.
        count_tokens: Measures the passages against the budget; a rough estimate by default.
    """

    def __init__(
        self, llm: LanguageModel | None, settings: AnswerSettings, count_tokens: CountTokens = count_tokens
    ) -> None:
        self._llm = llm
        self._settings = settings
        self._count_tokens = count_tokens
        prompts = importlib.resources.files("polyad.answering")
        self._instructions = prompts.joinpath("answer.md").read_text(encoding="utf-8").strip()
        self._instructions_unaided = prompts.joinpath("answer_unaided.md").read_text(encoding="utf-8").strip()

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None) -> Answer:
        """Answer the evidence's question.

        Args:
            evidence: The question and what was found for it. Without passages the model is asked only if that was
                the intention (retriever ``none``).
            on_text: Called with each piece of the answer as it comes. The pieces make up the answer's text.

        Returns:
            The answer. Each citation's ``answer_span`` is the sentence that carries it, brackets included: the claim.

        Raises:
            LanguageModelError: the model failed; the evidence is still good.
        """
        if self._llm is None:
            return Answer("", evidence, note=NO_MODEL)
        context = build_context(evidence.passages, self._settings.max_context_tokens, self._count_tokens)
        if not context.passages and evidence.retriever != UNAIDED:
            return Answer("", evidence, note=NO_EVIDENCE)
        reply = self._ask(self._llm, self._prompt(evidence.question, context), context, on_text)
        return self._read(reply, evidence, context)

    def _prompt(self, question: str, context: Context) -> Prompt:
        asked = f"Question: {question.strip()}"
        return Prompt(
            system=self._instructions if context.passages else self._instructions_unaided,
            user=f"{context.text}\n\n{asked}" if context.passages else asked,
            max_tokens=self._settings.max_answer_tokens or None,
            temperature=self._settings.temperature,
        )

    def _ask(
        self, llm: LanguageModel, prompt: Prompt, context: Context, on_text: Callable[[str], None] | None
    ) -> Reply:
        if on_text is None:
            (outcome,) = llm.complete([prompt])
            if isinstance(outcome, LanguageModelError):
                raise outcome
            return outcome
        show = on_text
        thoughts, citations = ThoughtFilter(), _citation_filter(context)

        def show_some(text: str) -> None:
            if text:
                show(text)

        reply = llm.stream(prompt, lambda piece: show_some(citations.feed(thoughts.feed(piece))))
        show_some(citations.feed(thoughts.finish()) + citations.finish())
        return reply

    def _read(self, reply: Reply, evidence: Evidence, context: Context) -> Answer:
        """The answer in a reply."""
        filtered = _citation_filter(context)
        filtered.feed(without_thoughts(reply.text))
        filtered.finish()
        passages = {numbered.number: numbered.passage for numbered in context.passages}
        citations: dict[Citation, None] = {}
        for cited in filtered.cited:
            passage = passages[cited.number]
            claim = sentence_around(filtered.text, cited.bracket)
            citations[Citation(cited.number, passage.id, passage.document_id, claim)] = None
        return Answer(
            text=filtered.text,
            evidence=evidence,
            citations=tuple(citations),
            dropped_citations=filtered.dropped,
            usage=reply.usage,
            note=CUT.format(limit=f"{self._settings.max_answer_tokens:,}") if reply.truncated else "",
        )


def _citation_filter(context: Context) -> CitationFilter:
    return CitationFilter(frozenset(numbered.number for numbered in context.passages))
