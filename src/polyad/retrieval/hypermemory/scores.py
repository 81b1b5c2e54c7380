"""Asking a language model what its candidates are worth: one prompt for each entity or hyperedge, many at a time.

Candidates are offered by number, so that no text has to be repeated word for word to be recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyad.errors import LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.protocols import LanguageModel, Prompt, Reply
from polyad.retrieval.hypermemory.replies import Repair, read_scores, read_verdict, shares
from polyad.text.json_schema import BOOLEAN, INTEGER, NUMBER, STRING, array_of, object_of
from polyad.text.packaged import packaged

_EDGES, _ENTITIES, _SUFFICIENCY = (
    packaged("polyad.retrieval.hypermemory", name) for name in ("hyperedges.md", "entities.md", "sufficiency.md")
)

_SCORES_SCHEMA = object_of(scores=array_of(object_of(number=INTEGER, score=NUMBER)))

_VERDICT_SCHEMA = object_of(reason=STRING, sufficient=BOOLEAN)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be scored in one prompt.

    Attributes:
        about: The entity whose hyperedges, or the hyperedge whose entities, these are.
        items: Each in one line; 1 or more.
        similarities: Their cosines to the question, in [-1, 1]; asked for only when the model gives no usable reply.
    """

    about: str
    items: Sequence[str]
    similarities: Callable[[], Sequence[float]]


class Judge:
    """Asks a language model about one question, a bounded number of times.

    Args:
        language_model: Who is asked.
        question: What the search is for.
        width: Hyperedges the model may choose from those of one entity.
        max_calls: Prompts that may be sent for the question.
        calls: How many of these were sent before, to find what it names.

    Attributes:
        calls: Prompts sent so far.
        requests: What this judge's prompts were in requests to the endpoint: more with retries, fewer where replies
            were recalled.
        repairs: Replies that failed or had to be put right, by kind.
    """

    def __init__(
        self, language_model: LanguageModel, question: str, *, width: int, max_calls: int, calls: int = 0
    ) -> None:
        self._language_model = language_model
        self._question = question
        self._max_calls = max_calls
        self._edge_instructions = _EDGES.format(width=width)
        self.calls = calls
        self.requests = 0
        self.repairs: Counter[Repair] = Counter()

    @property
    def exhausted(self) -> bool:
        """Whether no further prompt may be sent."""
        return self.calls >= self._max_calls

    def edge_scores(self, offers: Sequence[Candidates]) -> list[tuple[float, ...] | None]:
        """S_F of the hyperedges of each entity (equation 14), all asked at once; None where no call was left.

        Raises:
            NoMoreRepliesError: asking further is of no use.
        """
        return self._scores(offers, self._edge_instructions, ("Entity", "Texts"), selective=True)

    def entity_scores(self, offers: Sequence[Candidates]) -> list[tuple[float, ...] | None]:
        """S_E of the entities of each hyperedge (equation 15), likewise."""
        return self._scores(offers, _ENTITIES, ("Text", "Entities"), selective=False)

    def sufficient(self, evidence: str) -> bool:
        """Whether ``evidence`` answers the question (equation 17); without a readable reply it does not.

        Raises:
            NoMoreRepliesError: asking further is of no use.
        """
        user = f"Question: {one_line(self._question)}\n\n{evidence}"
        prompt = Prompt(user=user, system=_SUFFICIENCY, json_schema=_VERDICT_SCHEMA)
        for outcome in self._complete([prompt], lambda _, reply: read_verdict(reply) is not None, "yes or no"):
            if isinstance(outcome, Reply):
                return read_verdict(outcome.text) is True
            self.repairs[Repair.UNREADABLE_VERDICT if _is_unreadable(outcome) else Repair.FAILED] += 1
        return False

    def notes(self) -> dict[str, int]:
        """Calls, requests and repairs, by name; kinds of repair that were not needed are left out."""
        repairs = {kind.value: self.repairs[kind] for kind in Repair if self.repairs[kind]}
        return {"llm_calls": self.calls, "llm_requests": self.requests, **repairs}

    def _scores(
        self, offers: Sequence[Candidates], system: str, labels: tuple[str, str], *, selective: bool
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

    def _read(self, outcome: Reply | LanguageModelError, offer: Candidates, selective: bool) -> tuple[float, ...]:
        if isinstance(outcome, LanguageModelError):
            self.repairs[Repair.UNREADABLE if _is_unreadable(outcome) else Repair.FAILED] += 1
            return shares(offer.similarities())
        reading = read_scores(outcome.text, len(offer.items), selective=selective)
        self.repairs.update(reading.repairs)
        return reading.scores

    def _complete(
        self, prompts: Sequence[Prompt], is_usable: Callable[[int, str], bool], expected: str
    ) -> list[Reply | LanguageModelError]:
        """The outcomes of as many of ``prompts`` as may still be sent.

        A reply to the prompt at a position that is not usable is refused, so that it is not recalled for good.
        """
        allowed = prompts[: max(0, self._max_calls - self.calls)]
        if not allowed:
            return []
        self.calls += len(allowed)

        def take(position: int, outcome: Reply | LanguageModelError) -> None:
            self.requests += outcome.usage.calls
            if isinstance(outcome, Reply) and not is_usable(position, outcome.text):
                raise UnreadableReplyError(outcome.text, expected)

        outcomes = self._language_model.complete(allowed, take)
        for outcome in outcomes:
            if isinstance(outcome, NoMoreRepliesError):
                raise outcome
        return outcomes


def _is_unreadable(failure: LanguageModelError) -> bool:
    return isinstance(failure, UnreadableReplyError)


def one_line(text: str) -> str:
    """``text`` without line breaks, so that nothing in it can pass for a numbered line of the prompt."""
    return " ".join(text.split())


def _laid_out(question: str, offer: Candidates, labels: tuple[str, str]) -> str:
    about, items = labels
    numbered = "\n".join(f"{number}. {item}" for number, item in enumerate(offer.items, start=1))
    return f"Question: {one_line(question)}\n\n{about}: {offer.about}\n\n{items}:\n{numbered}"
