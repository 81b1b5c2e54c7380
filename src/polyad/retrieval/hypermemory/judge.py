"""Asking a language model what its candidates are worth: one prompt a depth, or one for each entity and hyperedge.

Candidates are offered by number, so that no text has to be repeated word for word to be recognised.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyad.errors import LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.model import Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply
from polyad.replies.candidate_scores import Reading, Repair, read_scores, read_verdict, shares
from polyad.replies.schema import BOOLEAN, INTEGER, NUMBER, STRING, array_of, object_of
from polyad.text.counting import counted
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

_SCORES_SCHEMA = object_of(scores=array_of(object_of(number=INTEGER, score=NUMBER)))

_VERDICT_SCHEMA = object_of(reason=STRING, sufficient=BOOLEAN)


@dataclass(frozen=True, slots=True)
class Offer:
    """What is to be scored in one prompt.

    Attributes:
        about: The entity whose hyperedges, or the hyperedge whose entities, these are.
        items: Each in one line; 1 or more.
        similarities: Their cosines to the question, in [-1, 1]; asked for only when the model gives no usable reply.
    """

    about: str
    items: Sequence[str]
    similarities: Callable[[], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the search has come upon at one depth, to be scored in one prompt.

    Attributes:
        about: The entities it stands at.
        texts: Of hyperedges, each in one line.
        names: Of the entities in them that it was not at before.
        similarities: Cosines of the texts, then of the names, to the question; asked for only without a usable reply.
    """

    about: Sequence[str]
    texts: Sequence[str]
    names: Sequence[str]
    similarities: Callable[[], Sequence[float]]


class Judge:
    """Asks a language model about one question, a bounded number of times and for a bounded time.

    After some failures in a row, or when its time is over, nothing more is sent; what is under way is waited for.

    Args:
        language_model: Who is asked.
        question: What the search is for.
        width: Hyperedges the model may choose from those of one entity.
        max_calls: Prompts that may be sent for the question.
        calls: How many of these were sent before, to find what it names.
        max_seconds: After which nothing more is sent.
        max_failures: Tries that may fail one after another.
        clock: In seconds.
        prompts: What the model is told.

    Attributes:
        calls: Prompts sent so far.
        failures: Why a prompt brought no reply, the last; empty where all did.
        repairs: Replies that failed or had to be put right, by kind.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        question: str,
        *,
        width: int,
        max_calls: int,
        calls: int = 0,
        max_seconds: float = math.inf,
        max_failures: int = 6,
        clock: Callable[[], float] = time.monotonic,
        prompts: Prompts = DEFAULT_PROMPTS,
    ) -> None:
        self._language_model = language_model
        self._question = question
        self._max_calls = max_calls
        self._prompts = prompts
        self._width = width
        self._fuse = _Fuse(max_seconds, max_failures, clock)
        self.calls = calls
        self._billed = 0
        self.failure = ""
        self.repairs: Counter[Repair] = Counter()

    @property
    def requests(self) -> int:
        """What this judge's prompts were in requests to the endpoint: more with retries, fewer with recalled replies.

        Tries that brought nothing are on no bill, and a model that is asked elsewhere may tell of its bill alone.
        """
        return max(self._billed, self._fuse.passed)

    @property
    def exhausted(self) -> bool:
        """Whether no further prompt may be sent."""
        return self.calls >= self._max_calls or self._fuse.is_blown

    def edge_scores(self, offers: Sequence[Offer]) -> list[tuple[float, ...] | None]:
        """S_F of the hyperedges of each entity (equation 14), all asked at once; None where no call was left.

        Raises:
            NoMoreRepliesError: asking further is of no use.
        """
        instructions = self._prompts.text("hypermemory_hyperedges", width=self._width)
        return self._scores(offers, instructions, ("Entity", "Texts"), selective=True)

    def entity_scores(self, offers: Sequence[Offer]) -> list[tuple[float, ...] | None]:
        """S_E of the entities of each hyperedge (equation 15), likewise."""
        return self._scores(offers, self._prompts.text("hypermemory_entities"), ("Text", "Entities"), selective=False)

    def depth_scores(self, found: Surroundings) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """S_F of each text and S_E of each name, each in [0, 1] by itself (equations 14 and 15); None without a call.

        A name has one score, whichever of the texts it stands in, and a text one, whichever entity led to it.

        Raises:
            NoMoreRepliesError: asking further is of no use.
        """
        shown = [*found.texts, *found.names]
        numbered = [f"{number}. {item}" for number, item in enumerate(shown, start=1)]
        texts, names = numbered[: len(found.texts)], numbered[len(found.texts) :]
        parts = [f"Question: {one_line(self._question)}", f"The search stands at: {'; '.join(found.about)}"]
        parts += [f"{label}:\n" + "\n".join(lines) for label, lines in (("Texts", texts), ("Entities", names)) if lines]
        prompt = Prompt(
            user="\n\n".join(parts), system=self._prompts.text("hypermemory_depth"), json_schema=_SCORES_SCHEMA
        )

        def read(reply: str) -> Reading:
            return read_scores(reply, len(shown), selective=True, absolute=True, names=shown)

        scores: Sequence[float] | None = None
        for outcome in self._complete([prompt], lambda _, reply: not read(reply).is_empty, '{"scores": [...]}'):
            if isinstance(outcome, Reply):
                reading = read(outcome.text)
                self.repairs.update(reading.repairs)
                scores = reading.scores
            else:
                self._note(outcome, Repair.UNREADABLE)
                scores = [min(1.0, max(0.0, cosine)) for cosine in found.similarities()]
        if scores is None:
            return None
        return tuple(scores[: len(texts)]), tuple(scores[len(texts) :])

    def sufficient(self, evidence: str) -> bool:
        """Whether ``evidence`` answers the question (equation 17); without a readable reply it does not.

        Raises:
            NoMoreRepliesError: asking further is of no use.
        """
        user = f"Question: {one_line(self._question)}\n\n{evidence}"
        prompt = Prompt(user=user, system=self._prompts.text("hypermemory_sufficiency"), json_schema=_VERDICT_SCHEMA)
        for outcome in self._complete([prompt], lambda _, reply: read_verdict(reply) is not None, "yes or no"):
            if isinstance(outcome, Reply):
                return read_verdict(outcome.text) is True
            self._note(outcome, Repair.UNREADABLE_VERDICT)
        return False

    def _note(self, outcome: LanguageModelError, unreadable: Repair) -> None:
        is_unreadable = isinstance(outcome, UnreadableReplyError)
        self.repairs[unreadable if is_unreadable else Repair.FAILED] += 1
        if not is_unreadable:
            self.failure = self.failure or str(outcome)

    def notes(self) -> dict[str, int]:
        """Calls, requests and repairs, by name; kinds of repair that were not needed are left out."""
        repairs = {kind.value: self.repairs[kind] for kind in Repair if self.repairs[kind]}
        return {"llm_calls": self.calls, "llm_requests": self.requests, **repairs}

    def _scores(
        self, offers: Sequence[Offer], system: str, labels: tuple[str, str], *, selective: bool
    ) -> list[tuple[float, ...] | None]:
        # Shares of one whole: a candidate that is alone has all of it, whatever the model would say.
        asked = [position for position, offer in enumerate(offers) if len(offer.items) > 1]
        prompts = [
            Prompt(user=_laid_out(self._question, offers[position], labels), system=system, json_schema=_SCORES_SCHEMA)
            for position in asked
        ]

        def has_scores(position: int, reply: str) -> bool:
            return not read_scores(reply, len(offers[asked[position]].items)).is_empty

        outcomes = dict(zip(asked, self._complete(prompts, has_scores, '{"scores": [...]}'), strict=False))
        scores: list[tuple[float, ...] | None] = []
        for position, offer in enumerate(offers):
            if len(offer.items) == 1:
                scores.append((1.0,))
            elif position in outcomes:
                scores.append(self._read(outcomes[position], offer, selective))
            else:
                scores.append(None)
        return scores

    def _read(self, outcome: Reply | LanguageModelError, offer: Offer, selective: bool) -> tuple[float, ...]:
        if isinstance(outcome, LanguageModelError):
            self._note(outcome, Repair.UNREADABLE)
            return shares(offer.similarities())
        reading = read_scores(outcome.text, len(offer.items), selective=selective, names=offer.items)
        self.repairs.update(reading.repairs)
        return reading.scores

    def _complete(
        self, prompts: Sequence[Prompt], is_usable: Callable[[int, str], bool], expected: str
    ) -> list[Reply | LanguageModelError]:
        """The outcomes of as many of ``prompts`` as may still be sent.

        A reply to the prompt at a position that is not usable is refused, so that it is not recalled for good.
        """
        allowed = prompts[: max(0, self._max_calls - self.calls)]
        if not allowed or self._fuse.is_blown:
            return []
        self.calls += len(allowed)

        def take(position: int, outcome: Reply | LanguageModelError) -> None:
            self._billed += outcome.usage.calls
            self._fuse.note(isinstance(outcome, Reply))
            if isinstance(outcome, Reply) and not is_usable(position, outcome.text):
                raise UnreadableReplyError(outcome.text, expected)

        outcomes = self._language_model.complete(allowed, take, self._fuse)
        for outcome in outcomes:
            if isinstance(outcome, NoMoreRepliesError) and not self._fuse.is_blown:
                raise outcome
        return outcomes


class _Fuse:
    """Lets prompts pass until the time is over, or too many tries have failed in a row; a gate of a language model.

    Attributes:
        passed: Tries so far.
    """

    def __init__(self, max_seconds: float, max_failures: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = clock() + max_seconds
        self._seconds = max_seconds
        self._max_failures = max_failures
        self.passed = 0
        self._failures = 0
        self._tried: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def is_blown(self) -> bool:
        """Whether nothing more may be sent."""
        return self._failures >= self._max_failures or self._clock() >= self._until

    def __call__(self, prompt: Prompt, spent: Usage) -> None:  # noqa: ARG002  # a gate's signature
        """Let a try at a prompt pass. A further one means that the one before has failed.

        Raises:
            NoMoreRepliesError: no try may pass any more.
        """
        with self._lock:
            self._failures += self._tried[prompt.user] > 0
            self._tried[prompt.user] += 1
        if self.is_blown:
            raise NoMoreRepliesError(
                f"{counted(self._failures, 'try')} in a row failed (max_failures = {self._max_failures}, max_seconds = "
                f"{self._seconds:g} for one question)"
            )
        with self._lock:
            self.passed += 1

    def note(self, is_reply: bool) -> None:
        """Take note of how a prompt ended."""
        with self._lock:
            self._failures = 0 if is_reply else self._failures + 1
            self._tried.clear()


def one_line(text: str) -> str:
    """``text`` without line breaks, so that nothing in it can pass for a numbered line of the prompt."""
    return " ".join(text.split())


def _laid_out(question: str, offer: Offer, labels: tuple[str, str]) -> str:
    about, items = labels
    numbered = "\n".join(f"{number}. {item}" for number, item in enumerate(offer.items, start=1))
    return f"Question: {one_line(question)}\n\n{about}: {offer.about}\n\n{items}:\n{numbered}"
