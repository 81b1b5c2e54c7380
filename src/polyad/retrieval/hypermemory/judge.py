"""Asks a language model to score the candidates of the beam search: one prompt a depth, or one for each candidate list.

Candidates are numbered, so that the model need not repeat any text.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyad.errors import LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.model import Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply
from polyad.replies.candidate_scores import (
    CandidateScores,
    Repair,
    normalize_shares,
    parse_candidate_scores,
    parse_verdict,
)
from polyad.replies.schema import BOOLEAN, INTEGER, NUMBER, STRING, build_array_schema, build_object_schema
from polyad.retrieval.hypermemory.settings import HyperMemorySettings
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts
from polyad.text.words import collapse_whitespace, format_count

_SCORES_SCHEMA = build_object_schema(scores=build_array_schema(build_object_schema(number=INTEGER, score=NUMBER)))

_VERDICT_SCHEMA = build_object_schema(reason=STRING, sufficient=BOOLEAN)


@dataclass(frozen=True, slots=True)
class CandidateList:
    """The hyperedges of an entity, or the entities of a hyperedge, which a language model scores in one prompt.

    Attributes:
        origin: The entity or hyperedge that the candidates belong to.
        items: One line for each candidate; at least one.
        compute_similarities: Returns the candidates' cosines to the question, in [-1, 1]; called if no reply is usable.
    """

    origin: str
    items: Sequence[str]
    compute_similarities: Callable[[], Sequence[float]]


@dataclass(frozen=True, slots=True)
class BeamCandidates:
    """All candidate hyperedges and entities at one depth of a beam search, which a language model scores in one prompt.

    Attributes:
        frontier: Names of the entities that the search has reached.
        texts: One line for each hyperedge of the frontier.
        names: Names of the unvisited entities in these hyperedges.
        compute_similarities: Returns cosines to the question, of the texts and then of the names; called only if no
            reply is usable.
    """

    frontier: Sequence[str]
    texts: Sequence[str]
    names: Sequence[str]
    compute_similarities: Callable[[], Sequence[float]]


class MemoryJudge:
    """Scores the candidates of one search with a language model, up to a maximum number and time of requests.

    After several failures in a row, or when the time is over, no further prompt is sent; requests in progress finish.

    Args:
        language_model: The model that scores and decides.
        question: The question of the search.
        settings: Width of the search, and limits on calls, seconds and failures.
        calls: Prompts sent earlier for the question, to extract its names.
        prompts: Instructions for the model.

    Attributes:
        settings: Settings of the search.
        calls: Number of prompts sent so far.
        failure: Why the first failed prompt failed; empty if none did.
        repairs: Number of replies that failed or had to be repaired, by kind.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        question: str,
        settings: HyperMemorySettings,
        *,
        calls: int = 0,
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        self._language_model = language_model
        self._question = collapse_whitespace(question)
        self._prompts = prompts
        self._limit = _CallLimit(settings)
        self.settings = settings
        self.calls = calls
        self._billed = 0
        self.failure = ""
        self.repairs: Counter[Repair] = Counter()

    @property
    def request_count(self) -> int:
        """The number of requests that this search sent to the language model, with retries.

        Failed attempts are not billed, and some language models report billed calls only: the higher number counts.
        """
        return max(self._billed, self._limit.attempts)

    @property
    def is_exhausted(self) -> bool:
        """Whether the search has used all the language model requests that it may send."""
        return self.calls >= self.settings.max_calls or self._limit.is_exceeded

    def score_hyperedge_lists(self, candidates: Sequence[CandidateList]) -> list[tuple[float, ...] | None]:
        """Score the hyperedges of several entities with the language model; return a list of scores for each entity.

        These are S_F in equation 14. None stands for a list that the limits exclude.

        All prompts are sent together.

        Raises:
            NoMoreRepliesError: The language model accepts no further prompts.
        """
        instructions = self._prompts.get_text("hypermemory_hyperedges", width=self.settings.width)
        return self._score_lists(candidates, instructions, ("Entity", "Texts"), selective=True)

    def score_entity_lists(self, candidates: Sequence[CandidateList]) -> list[tuple[float, ...] | None]:
        """Score the entities of several hyperedges with the language model; return a list of scores for each hyperedge.

        These are S_E in equation 15; see :meth:`score_hyperedge_lists`.
        """
        instructions = self._prompts.get_text("hypermemory_entities")
        return self._score_lists(candidates, instructions, ("Text", "Entities"), selective=False)

    def score_beam_candidates(self, candidates: BeamCandidates) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Score all candidates at one depth in one prompt; return (hyperedge scores, entity scores) or None.

        Scores are in [0, 1] (equations 14 and 15). None is returned if no further call is allowed.

        A name has one score for all texts that contain it, and a text has one score for all entities that led to it.

        Raises:
            NoMoreRepliesError: The language model accepts no further prompts.
        """
        lines = [*candidates.texts, *candidates.names]
        numbered = [f"{number}. {item}" for number, item in enumerate(lines, start=1)]
        texts, names = numbered[: len(candidates.texts)], numbered[len(candidates.texts) :]
        parts = [
            f"Question: {self._question}",
            f"The search stands at: {'; '.join(candidates.frontier)}",
        ]
        parts += [f"{label}:\n" + "\n".join(items) for label, items in (("Texts", texts), ("Entities", names)) if items]
        prompt = Prompt(
            user="\n\n".join(parts), system=self._prompts.get_text("hypermemory_depth"), json_schema=_SCORES_SCHEMA
        )

        def parse(reply: str) -> CandidateScores:
            return parse_candidate_scores(reply, len(lines), is_selection=True, is_absolute=True, names=lines)

        scores: Sequence[float] | None = None
        for outcome in self._send_prompts([prompt], lambda _, reply: not parse(reply).is_empty, '{"scores": [...]}'):
            if isinstance(outcome, Reply):
                reading = parse(outcome.text)
                self.repairs.update(reading.repairs)
                scores = reading.scores
            else:
                self._count_repair(outcome, Repair.UNREADABLE)
                scores = [min(1.0, max(0.0, cosine)) for cosine in candidates.compute_similarities()]
        if scores is None:
            return None
        return tuple(scores[: len(texts)]), tuple(scores[len(texts) :])

    def is_sufficient(self, evidence: str) -> bool:
        """Ask the language model whether the evidence answers the question (equation 17).

        False if the reply cannot be read.

        Raises:
            NoMoreRepliesError: The language model accepts no further prompts.
        """
        user = f"Question: {self._question}\n\n{evidence}"
        name = f"hypermemory_sufficiency{'_own_knowledge' if self.settings.own_knowledge else ''}"
        prompt = Prompt(user=user, system=self._prompts.get_text(name), json_schema=_VERDICT_SCHEMA)
        for outcome in self._send_prompts([prompt], lambda _, reply: parse_verdict(reply) is not None, "yes or no"):
            if isinstance(outcome, Reply):
                return parse_verdict(outcome.text) is True
            self._count_repair(outcome, Repair.UNREADABLE_VERDICT)
        return False

    def _count_repair(self, outcome: LanguageModelError, unreadable: Repair) -> None:
        is_unreadable = isinstance(outcome, UnreadableReplyError)
        self.repairs[unreadable if is_unreadable else Repair.FAILED] += 1
        if not is_unreadable:
            self.failure = self.failure or str(outcome)

    def build_notes(self) -> dict[str, int]:
        """Return the numbers of prompts, requests and repaired replies of a search, by name."""
        repairs = {kind.value: self.repairs[kind] for kind in Repair if self.repairs[kind]}
        return {"llm_calls": self.calls, "llm_requests": self.request_count, **repairs}

    def _score_lists(
        self, candidates: Sequence[CandidateList], system: str, labels: tuple[str, str], *, selective: bool
    ) -> list[tuple[float, ...] | None]:
        # Scores of a list add up to 1, so a single candidate has score 1 without a prompt.
        prompted = [position for position, candidate_list in enumerate(candidates) if len(candidate_list.items) > 1]
        prompts = [
            Prompt(
                user=self._format_candidates(candidates[position], labels),
                system=system,
                json_schema=_SCORES_SCHEMA,
            )
            for position in prompted
        ]

        def has_scores(position: int, reply: str) -> bool:
            return not parse_candidate_scores(reply, len(candidates[prompted[position]].items)).is_empty

        outcomes = dict(zip(prompted, self._send_prompts(prompts, has_scores, '{"scores": [...]}'), strict=False))
        scores: list[tuple[float, ...] | None] = []
        for position, candidate_list in enumerate(candidates):
            if len(candidate_list.items) == 1:
                scores.append((1.0,))
            elif position in outcomes:
                scores.append(self._parse_scores(outcomes[position], candidate_list, selective))
            else:
                scores.append(None)
        return scores

    def _format_candidates(self, candidates: CandidateList, labels: tuple[str, str]) -> str:
        origin_label, items_label = labels
        numbered = "\n".join(f"{number}. {item}" for number, item in enumerate(candidates.items, start=1))
        return f"Question: {self._question}\n\n{origin_label}: {candidates.origin}\n\n{items_label}:\n{numbered}"

    def _parse_scores(
        self, outcome: Reply | LanguageModelError, candidate_list: CandidateList, selective: bool
    ) -> tuple[float, ...]:
        if isinstance(outcome, LanguageModelError):
            self._count_repair(outcome, Repair.UNREADABLE)
            return normalize_shares(candidate_list.compute_similarities())
        reading = parse_candidate_scores(
            outcome.text, len(candidate_list.items), is_selection=selective, names=candidate_list.items
        )
        self.repairs.update(reading.repairs)
        return reading.scores

    def _send_prompts(
        self, prompts: Sequence[Prompt], is_usable: Callable[[int, str], bool], expected_format: str
    ) -> list[Reply | LanguageModelError]:
        """Send the prompts, up to the limit on calls; return the reply or the error of each prompt that was sent.

        A reply that ``is_usable`` rejects becomes an error that names the ``expected_format``, and is not cached.
        """
        allowed = prompts[: max(0, self.settings.max_calls - self.calls)]
        if not allowed or self._limit.is_exceeded:
            return []
        self.calls += len(allowed)

        def check_outcome(position: int, outcome: Reply | LanguageModelError) -> None:
            self._billed += outcome.usage.calls
            self._limit.record_outcome(isinstance(outcome, Reply))
            if isinstance(outcome, Reply) and not is_usable(position, outcome.text):
                raise UnreadableReplyError(outcome.text, expected_format)

        outcomes = self._language_model.complete(allowed, check_outcome, self._limit)
        for outcome in outcomes:
            if isinstance(outcome, NoMoreRepliesError) and not self._limit.is_exceeded:
                raise outcome
        return outcomes


class _CallLimit:
    """A limit on language model calls, reached after a maximum time or too many failures in a row.

    Attributes:
        attempts: Number of attempts so far.
    """

    def __init__(self, settings: HyperMemorySettings) -> None:
        self._settings = settings
        self._until = time.monotonic() + settings.max_seconds
        self.attempts = 0
        self._failures = 0
        self._attempts_by_prompt: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def is_exceeded(self) -> bool:
        """Whether the limit is reached, so that the search must not send any more prompts."""
        return self._failures >= self._settings.max_failures or time.monotonic() >= self._until

    def __call__(self, prompt: Prompt, spent: Usage) -> None:  # noqa: ARG002  # the signature of a BudgetCheck
        """Allow an attempt at a prompt. A second attempt at a prompt means that the first attempt failed.

        Raises:
            NoMoreRepliesError: A limit is exceeded.
        """
        with self._lock:
            self._failures += self._attempts_by_prompt[prompt.user] > 0
            self._attempts_by_prompt[prompt.user] += 1
        if self.is_exceeded:
            raise NoMoreRepliesError(
                f"{format_count(self._failures, 'attempt')} in a row failed, or time is over (max_failures = "
                f"{self._settings.max_failures}, max_seconds = {self._settings.max_seconds:g} for one question)"
            )
        with self._lock:
            self.attempts += 1

    def record_outcome(self, is_reply: bool) -> None:
        """Record for the limit whether a prompt got a reply (``is_reply``) or failed."""
        with self._lock:
            self._failures = 0 if is_reply else self._failures + 1
            self._attempts_by_prompt.clear()
