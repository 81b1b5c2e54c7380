"""Answers a question from its evidence, with a citation behind every claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from polyad.answering.citations import CitableSource, CitationFilter, Claims
from polyad.answering.layout import CountTokens
from polyad.answering.name_lists import SEPARATOR, cite_names, parse_names
from polyad.answering.prompt import build_context, build_instructions
from polyad.config import AnswerSettings
from polyad.errors import LanguageModelError
from polyad.model import Answer, Citation, Evidence, HyperedgeKind
from polyad.protocols.components import LanguageModel, Prompt, Reply
from polyad.replies.answer_tags import AnswerFilter, extract_tagged_answer
from polyad.replies.thoughts import ThoughtFilter, extract_thoughts, remove_thoughts
from polyad.text.conflicts import find_conflicts
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import count_tokens, sanitize, separate_markup

NO_RETRIEVAL = "none"
"""The retriever without evidence (NaiveGeneration): the model answers from its own knowledge."""

NO_MODEL = (
    "No language model is set, so this is the evidence alone; to get an answer, give --model NAME and set "
    "OPENAI_BASE_URL to an OpenAI-compatible endpoint (or OPENAI_API_KEY for OpenAI's own)."
)
NO_EVIDENCE = "No passage was found to answer from, so the language model was not asked."
NOT_RELEVANT = "Nothing in the documents fits this question, so no language model was asked: best relevance {best:.2f}."
UNSURE = "It is not certain that the documents answer this question: best relevance {best:.2f}."
_SURE = 0.5
"""Relevance of the best passage below which an answer says that it is not certain."""

CUT = "The answer was cut at {limit} tokens; allow more with max_answer_tokens."
NO_NAMES = "The model found no name that answers the question."
UNREADABLE_NAMES = "The reply could not be read as a JSON array of names; it is shown as it came."


class CitingAnswerer:
    """Answers a question with a language model from numbered passages, citing them as ``[1]``.

    Without a language model, the answer is the evidence.

    Citations whose number is not in the prompt are removed from the text and counted. The text contains no thoughts of
    a reasoning model; with the prompt ``think-answer``, it contains only the text inside the answer tags.

    An answer in names (``form`` is ``entity`` or ``entities``) has no citations by the model. Each name is cited from
    every source in the prompt that contains it; see :func:`polyad.answering.name_lists.cite_names`.

    Args:
        language_model: Writes the answer; None if no language model is configured.
        settings: Token budgets, style and form of the answer.
        count_tokens: Returns the length of a text in tokens; a rough estimate by default.
        prompts: The parts of the instructions.
    """

    def __init__(
        self,
        language_model: LanguageModel | None,
        settings: AnswerSettings,
        count_tokens: CountTokens = count_tokens,
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        self._prompts = prompts
        self._language_model = language_model
        self._settings = settings
        self._count_tokens = count_tokens

    def answer(self, evidence: Evidence, on_text: Callable[[str], None] | None = None) -> Answer:
        """Return an answer with citations to the question in ``evidence``; ``on_text`` receives each piece of text.

        Args:
            evidence: The question with its evidence. Without evidence, the model is called only for the retriever
                ``none``. It is never called if the evidence is below the required relevance.
            on_text: Called with each piece of the answer during generation; names are one piece. The pieces make up
                the text of the answer, with one exception: thoughts without an opening tag are recognised at their
                closing tag, after they were passed on, and are not in the text.

        Returns:
            The answer, with a note if no passage contains a name of the question, if it is uncertain whether the
            documents answer it, or if facts that the user supplied as data give one subject different values. The
            ``answer_span`` of a citation is the sentence with the citation, or the name.

        Raises:
            LanguageModelError: The model failed.
        """
        answer = self._answer_from(evidence, on_text)
        edges = (scored.hyperedge for scored in evidence.hyperedges)
        supplied = (edge for edge in edges if edge.kind is HyperedgeKind.TUPLE)  # relations of texts have many values
        conflicts = find_conflicts(supplied, min_single_share=0.0)
        notes = [
            *_describe_doubts(evidence),
            *(f"The facts disagree: {conflict.describe()}." for conflict in conflicts),
        ]
        return replace(answer, note=" ".join(filter(None, (answer.note, *notes))))

    def _answer_from(self, evidence: Evidence, on_text: Callable[[str], None] | None) -> Answer:
        """Return an answer with citations to the question in ``evidence``, without a note on contradictory facts."""
        if evidence.best_relevance is not None:
            return Answer("", evidence, note=NOT_RELEVANT.format(best=evidence.best_relevance))
        if self._language_model is None:
            return Answer("", evidence, note=NO_MODEL)
        context = build_context(evidence, self._settings, self._count_tokens)
        if not context.text and evidence.retriever != NO_RETRIEVAL:
            return Answer("", evidence, note=NO_EVIDENCE)
        question_text = f"Question: {evidence.question.strip()}"
        prompt = Prompt(
            system=build_instructions(self._settings, context, self._prompts),
            user=f"{context.text}\n\n{question_text}" if context.text else question_text,
            max_tokens=self._settings.max_answer_tokens or None,
            temperature=self._settings.temperature,
        )
        sources = context.sources()
        if self._settings.form != "text":
            reply = _complete(self._language_model, prompt)
            answer = self._build_names_answer(reply, evidence, sources, on_text)
        else:
            reply = (
                _complete(self._language_model, prompt)
                if on_text is None
                else self._streamed(self._language_model, prompt, sources, on_text)
            )
            answer = self._build_cited_answer(reply, evidence, sources)
        return replace(answer, context=context.to_answer_context(), thoughts=reply.thoughts)

    def _streamed(
        self,
        language_model: LanguageModel,
        prompt: Prompt,
        sources: Mapping[int, CitableSource],
        on_text: Callable[[str], None],
    ) -> Reply:
        text_filter = AnswerFilter() if self._settings.prompt == "think-answer" else ThoughtFilter()
        citations = CitationFilter(frozenset(sources))

        def pass_on(text: str) -> None:
            if text:
                on_text(text)

        reply = language_model.stream(prompt, lambda piece: pass_on(citations.feed(text_filter.feed(sanitize(piece)))))
        pass_on(citations.feed(text_filter.finish()) + citations.finish())
        return _clean_reply(reply)

    def _extract_text(self, reply: Reply) -> str:
        """Return the answer in a language model's reply, without thoughts and ``<answer>`` tags."""
        return (
            extract_tagged_answer(reply.text)
            if self._settings.prompt == "think-answer"
            else remove_thoughts(reply.text)
        )

    def _build_cited_answer(self, reply: Reply, evidence: Evidence, sources: Mapping[int, CitableSource]) -> Answer:
        """Return an answer for a reply in sentences; citations of passages that are not in ``sources`` are removed."""
        filtered = CitationFilter(frozenset(sources))
        filtered.feed(self._extract_text(reply))
        filtered.finish()
        claims = Claims(filtered.text)
        citations: dict[Citation, None] = {}
        for cited in filtered.cited:
            source = sources[cited.number]
            claim = claims.find_sentence(cited.bracket)
            citations[Citation(cited.number, source.passage_id, source.document_id, claim)] = None
        return Answer(
            text=filtered.text,
            evidence=evidence,
            citations=tuple(citations),
            dropped_citations=filtered.dropped,
            usage=reply.usage,
            note=self._note(reply),
        )

    def _build_names_answer(
        self,
        reply: Reply,
        evidence: Evidence,
        sources: Mapping[int, CitableSource],
        on_text: Callable[[str], None] | None,
    ) -> Answer:
        """Return an answer for a reply that lists names; each name cites the ``sources`` that contain the name."""
        text = self._extract_text(reply)
        names = parse_names(text, sources)
        entities = tuple(map(separate_markup, names or ()))[: 1 if self._settings.form == "entity" else None]
        text = separate_markup(text) if names is None else SEPARATOR.join(entities)
        if text and on_text is not None:
            on_text(text)
        problem = UNREADABLE_NAMES if names is None else "" if names else NO_NAMES
        return Answer(
            text=text,
            evidence=evidence,
            citations=cite_names(entities, sources.values()),
            usage=reply.usage,
            note=" ".join(filter(None, (problem, self._note(reply)))),
            entities=entities,
        )

    def _note(self, reply: Reply) -> str:
        return CUT.format(limit=f"{self._settings.max_answer_tokens:,}") if reply.truncated else ""


def _describe_doubts(evidence: Evidence) -> list[str]:
    """Return what speaks against an answer: names that no passage contains, and a low relevance of the best passage."""
    notes = [name.describe() for name in evidence.absent_names]
    best = max((hit.relevance or 0 for hit in evidence.passages), default=1.0)
    if evidence.passages and evidence.passages[0].relevance is not None and best < _SURE:
        notes.append(UNSURE.format(best=best))
    return notes


def _complete(language_model: LanguageModel, prompt: Prompt) -> Reply:
    (outcome,) = language_model.complete([prompt])
    if isinstance(outcome, LanguageModelError):
        raise outcome
    return _clean_reply(outcome)


def _clean_reply(reply: Reply) -> Reply:
    """Return a language model's reply with its thoughts moved from the text to the field ``thoughts``."""
    thoughts = "\n\n".join(filter(None, (reply.thoughts, extract_thoughts(reply.text))))
    return replace(reply, text=sanitize(reply.text), thoughts=separate_markup(sanitize(thoughts)))
