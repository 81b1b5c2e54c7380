"""Fact hyperedges (HyperGraphRAG, section 4.1): n-ary facts that a language model finds in a passage.

Many passages are asked about at a time. Every reply is read as it comes, so that one that cannot be read is never kept
as if it were good; such a passage is asked about again, and in the end reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.config import FactSettings
from polyad.errors import LanguageModelError, UnreadableReplyError
from polyad.indexing.builder import Built, DraftHyperedge, Tell, hyperedge_id, untold
from polyad.indexing.facts.budget import Budget, count_prompt_tokens
from polyad.indexing.facts.extraction import (
    ENTITY_SCORES,
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    merged,
)
from polyad.indexing.facts.grounding import Grounder
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.subjects import RULES, Subjects, subjects
from polyad.model import SUBJECT, Hyperedge, HyperedgeKind, Incidence, Mention, Passage, Usage
from polyad.protocols import LanguageModel, Prompt, Reply, Splitter
from polyad.text.keys import entity_key
from polyad.text.tokens import count_tokens

# Kinds of notes.
UNGROUNDED = "ungrounded entities"
FEW = "facts with fewer than 2 entities"
NOTHING = "passages without facts"
JOINED = "subjects of passages joined to facts that do not name them"

_QUOTES = "\"'`“”„‘’«» "  # noqa: RUF001
"""Models put them around names, within the quotes of JSON, that stand in the passage without."""

REPLY_RATIO = {"compact": 3.4, "paper": 7.0}
"""Completion tokens for each token of a passage, by style: measured with what gpt-3.5-turbo found in the passages of
MuSiQue, laid out in either style (``benchmarks/extraction.py``). Another model may say less."""


class FactBuilder:
    """Builds one hyperedge for each fact that the language model finds in a passage.

    Its members are the entities the model names, and with ``join_subject`` the passage's subject: a fact that says "the
    film" is about the film its passage is titled by. The contributions of each passage stay on its own incidences; the
    published code merges them into one record an entity and adds up the scores, which cannot be undone.

    Args:
        splitter: Finds sentences.
        language_model: Is asked.
        style: Words the prompt and reads the reply.
        settings: See :class:`polyad.config.FactSettings`.
        budget: Of the run.
    """

    def __init__(
        self,
        splitter: Splitter,
        language_model: LanguageModel,
        style: ExtractionStyle,
        settings: FactSettings,
        budget: Budget,
    ) -> None:
        self._splitter = splitter
        self._language_model = language_model
        self._style = style
        self._settings = settings
        self._budget = budget

    @property
    def name(self) -> str:
        """The method and what changes its result, but not the model: another one may go on with an index."""
        settings = self._settings
        return (
            f"facts {self._style.name} gleaning={settings.gleaning} drop_ungrounded={settings.drop_ungrounded} "
            f"join_subject={settings.join_subject} {RULES}"
        )

    def build(self, passages: Sequence[Passage], tell: Tell = untold) -> list[Built]:
        """The facts of each passage; see :class:`polyad.indexing.builder.HyperedgeBuilder`."""
        replies = self._replies(passages, tell)
        return [self._built(passage, own) for passage, own in zip(passages, replies, strict=True)]

    # Asking

    def _replies(self, passages: Sequence[Passage], tell: Tell) -> list[_Replies]:
        """What the language model says of each passage, asked again where a reply was unreadable, then for more."""
        found = [_Replies(passage) for passage in passages]
        prompts = {place: self._style.prompt(passage) for place, passage in enumerate(passages)}
        for _ in range(self._settings.attempts):
            self._ask(prompts, found, tell)
            prompts = {place: prompts[place] for place in prompts if found[place].is_unreadable}
        for _ in range(self._settings.gleaning):
            self._glean(passages, found, tell)
        return found

    def _glean(self, passages: Sequence[Passage], found: list[_Replies], tell: Tell) -> None:
        """Ask once more for what the replies about each passage missed."""
        more = {
            place: self._style.more(passages[place], "\n".join(replies.said))
            for place, replies in enumerate(found)
            if replies.said and not replies.failure
        }
        self._ask(more, found, tell)
        for place in more:
            if found[place].is_unreadable:
                found[place].failure = None  # the earlier replies are good, and asking the same again is of no use
                found[place].notes["gleaning rounds without a usable reply"] += 1

    def _ask(self, prompts: Mapping[int, Prompt], found: list[_Replies], tell: Tell) -> None:
        """Ask the prompt of each place, and put what the reply says, or why there is none, where it belongs."""
        places = list(prompts)
        done = 0

        def take(position: int, outcome: Reply | LanguageModelError) -> None:
            nonlocal done
            place = places[position]
            if isinstance(outcome, LanguageModelError) or not outcome.cached:
                self._budget.settle(prompts[place], outcome.usage)
            found[place].failure = outcome if isinstance(outcome, LanguageModelError) else None
            if isinstance(outcome, Reply):
                found[place].read(outcome, self._style, self._settings.max_records)
                done += 1
                tell(f"extracted {done:,} of {len(places):,} passages, {self._account()}")

        if places:
            self._language_model.complete([prompts[place] for place in places], take, self._budget)

    def _account(self) -> str:
        spent = self._budget.spent
        return f"{spent.tokens:,} tokens" + (f", ${spent.cost:,.2f}" if spent.cost else "")

    # Reading

    def _built(self, passage: Passage, replies: _Replies) -> Built:
        extraction = replies.extraction
        sentences = self._splitter.sentences(passage.text)
        grounder = Grounder(passage.title, passage.text, sentences)
        about = subjects(passage, sentences, _mentions(extraction.facts, grounder))
        notes = replies.notes + Counter(extraction.notes)
        importance = _importance([key for key, _ in about.sections], extraction.facts)
        drafts = []
        for position, fact in enumerate(extraction.facts):
            span = grounder.span_of(fact.text)
            id = hyperedge_id(passage.id, position)
            edge = Hyperedge(id, HyperedgeKind.FACT, fact.text, passage.id, span.start, span.end, fact.score)
            members = self._members(id, fact, about, grounder, notes)
            for key, section in about.of(span) if self._settings.join_subject else ():
                if key not in members:
                    notes[JOINED] += 1
                    members[key] = Incidence(
                        key, id, section.name, SUBJECT, score=importance[key], strength=section.strength
                    )
            drafts.append(DraftHyperedge(edge, tuple(members[key] for key in sorted(members))))
        notes["facts"] += len(drafts)
        notes[NOTHING] += bool(replies.said) and not drafts
        return Built(drafts, replies.failure, notes)

    def _members(
        self, hyperedge_id: str, fact: ExtractedFact, about: Subjects, grounder: Grounder, notes: Counter[str]
    ) -> dict[str, Incidence]:
        """The incidence of each entity that a fact names, by key."""
        strengths = {key: section.strength for key, section in about.sections}
        strengths |= {key: strength for key, _, strength in about.defined}
        members: dict[str, Incidence] = {}
        for entity in fact.entities:
            key = entity_key(entity.name)
            if not key:
                notes["dropped: names that name nothing by themselves, such as small numbers"] += 1
                continue
            is_grounded = grounder.is_grounded(entity.name)
            notes[UNGROUNDED] += not is_grounded
            if is_grounded or not self._settings.drop_ungrounded:
                member = _incidence(key, hyperedge_id, entity, grounder, is_grounded)
                if key in strengths:
                    member = replace(member, role=SUBJECT, strength=strengths[key])
                members.setdefault(key, member)
        notes[FEW] += len(members) < 2
        notes["entities"] += len(members)
        return members

    def estimate(self, passages: Sequence[Passage], known: Callable[[Sequence[Prompt]], list[str | None]]) -> Usage:
        """See :class:`polyad.indexing.builder.HyperedgeBuilder`; of a gleaning round half the first reply is expected.

        Whatever follows a reply that is not known yet is guessed; after one that is, the next prompt is known too.
        """
        total = Usage()
        prompts = {place: self._style.prompt(passage) for place, passage in enumerate(passages)}
        said: dict[int, list[str]] = {place: [] for place in prompts}
        for rounds_left in range(self._settings.gleaning, -1, -1):
            replies = dict(zip(prompts, known(list(prompts.values())), strict=True))
            new = {place: prompts[place] for place, reply in replies.items() if reply is None}
            for place, prompt in new.items():
                total += self._expected(prompt, passages[place], len(said[place]), rounds_left)
            for place, reply in replies.items():
                if reply is not None:
                    said[place].append(reply)
            prompts = {
                place: self._style.more(passages[place], "\n".join(said[place]))
                for place in prompts
                if place not in new
            }
        return replace(total, cost=self._language_model.cost(total.prompt_tokens, total.completion_tokens))

    def _expected(self, prompt: Prompt, passage: Passage, first: int, rounds_left: int) -> Usage:
        """Usage of the request of gleaning round ``first``, 0 for the first request, and of the rounds that follow."""
        whole = REPLY_RATIO[self._settings.style] * count_tokens(passage.text)
        usage = Usage()
        asked = count_prompt_tokens(prompt)
        for number in range(first, first + rounds_left + 1):
            usage += Usage(1, asked + usage.completion_tokens, int(whole if number == 0 else whole / 2))
            if number == 0:
                asked = count_prompt_tokens(self._style.more(passage, ""))
        return usage


@dataclass(slots=True)
class _Replies:
    """The replies about one passage, so far.

    Attributes:
        passage: That they are about.
        said: Those that could be read.
        extraction: All that they say.
        failure: Why the last request brought nothing; None where it did.
        notes: Of the requests, not of what the replies say.
    """

    passage: Passage
    said: list[str] = field(default_factory=list)
    extraction: Extraction = field(default_factory=Extraction)
    failure: LanguageModelError | None = None
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_unreadable(self) -> bool:
        """Whether the last reply could not be read."""
        return isinstance(self.failure, UnreadableReplyError)

    def read(self, reply: Reply, style: ExtractionStyle, most: int) -> None:
        """Add what a reply says; one that cannot be read, or says too much, is the failure, raised as a refusal."""
        self.notes["replies cut at the model's limit"] += reply.truncated
        try:
            addition = style.read(reply.text, self.passage, most)
        except UnreadableReplyError as error:
            self.failure = error
            raise
        self.extraction = merged(self.extraction, addition) if self.said else addition
        self.said.append(reply.text)


def _importance(keys: Sequence[str], facts: Sequence[ExtractedFact]) -> dict[str, float]:
    """How important the model says entities are to a passage; as much as all that it scored, where it does not say."""
    highest: dict[str, float] = {}
    for entity in (entity for fact in facts for entity in fact.entities):
        key = entity_key(entity.name)
        highest[key] = max(highest.get(key, 0.0), entity.score)
    otherwise = max(highest.values(), default=ENTITY_SCORES.highest)
    return {key: highest.get(key, otherwise) for key in keys}


def _incidence(
    key: str, hyperedge_id: str, entity: ExtractedEntity, grounder: Grounder, is_grounded: bool
) -> Incidence:
    spans = grounder.spans(entity.name) or grounder.spans(entity.name.strip(_QUOTES))
    name = " ".join((grounder.slice(spans[0]) if spans else entity.name).split())
    return Incidence(key, hyperedge_id, name, "", entity.type, entity.description, entity.score, is_grounded)


def _mentions(facts: Sequence[ExtractedFact], grounder: Grounder) -> list[tuple[str, Mention]]:
    """The entities of the facts where they stand in the text, ordered by ``start``; each with its key."""
    names = dict.fromkeys(entity.name for fact in facts for entity in fact.entities)
    found = [
        (key, Mention(name, start, end))
        for name in names
        if (key := entity_key(name))
        for start, end in grounder.spans(name)
    ]
    return sorted(found, key=lambda item: (item[1].start, -item[1].end, item[0]))
