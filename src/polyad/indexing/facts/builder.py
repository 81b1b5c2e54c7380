"""Fact hyperedges (HyperGraphRAG, section 4.1): n-ary facts that a language model finds in a passage.

Many passages are asked about at a time. Every reply is read as it comes, so that one that cannot be read is never kept
as if it were good; such a passage is asked about again, and in the end reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.errors import CutReplyError, LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.indexing.builders import BuildResult, DraftHyperedge, OnMessage, build_hyperedge_id, ignore_message
from polyad.indexing.facts.budget import Budget, count_prompt_tokens
from polyad.indexing.facts.grounding import Grounder, grounded_share
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.subjects import NO_SUBJECTS, RULES_VERSION, Subjects, find_subjects
from polyad.model import SUBJECT, Hyperedge, HyperedgeKind, Incidence, Mention, Passage, Usage
from polyad.protocols.components import LanguageModel, Prompt, Reply, Splitter
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction, merged
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES
from polyad.text.counting import count_tokens, format_count
from polyad.text.keys import build_entity_key, build_name_key, find_named_key

# Kinds of notes.
UNGROUNDED = "ungrounded entities"
UNSAID = "facts of which less than half the content words stand where they are from"
FEW = "facts with fewer than 2 entities"
NOTHING = "passages without facts"
JOINED = "subjects of passages joined to facts that do not name them"

_QUOTES = "\"'`“”„‘’«» "  # noqa: RUF001
"""Models put them around names, within the quotes of JSON, that stand in the passage without."""

_HALF = 0.5

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
        settings: See :class:`polyad.indexing.facts.settings.FactSettings`.
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
            f"join_subject={settings.join_subject} {RULES_VERSION if settings.join_subject else 'no-subjects'}"
        )

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """The facts of each passage; see :class:`polyad.indexing.builders.HyperedgeBuilder`."""
        replies = self._replies(passages, on_message)
        return [self._built(passage, own) for passage, own in zip(passages, replies, strict=True)]

    # Asking

    def _replies(self, passages: Sequence[Passage], on_message: OnMessage) -> list[_Replies]:
        """What the language model says of each passage, asked again where a reply was unreadable, then for more."""
        found = [_Replies(passage) for passage in passages]
        prompts = {place: self._style.prompt(passage) for place, passage in enumerate(passages)}
        self._ask_until_readable(prompts, found, on_message)
        self._ask_for_the_rest(found, on_message)
        for _ in range(self._settings.gleaning):
            self._glean(found, on_message)
            self._ask_for_the_rest(found, on_message)
        return found

    def _ask_until_readable(self, prompts: Mapping[int, Prompt], found: list[_Replies], on_message: OnMessage) -> None:
        """Ask, and where a reply cannot be read ask again, saying why, as often as the settings allow."""
        asked = prompts
        for attempt in range(1, self._settings.attempts + 1):
            self._ask(asked, found, on_message)
            asked = {
                place: self._style.again(prompts[place], failure, attempt)
                for place in asked
                if isinstance(failure := found[place].failure, UnreadableReplyError)
            }

    def _glean(self, found: list[_Replies], on_message: OnMessage) -> None:
        """Ask once more for what the replies about each passage missed."""
        more = {
            place: self._style.more(replies.passage, "\n".join(replies.said))
            for place, replies in enumerate(found)
            if replies.said and not replies.failure
        }
        self._ask(more, found, on_message)
        for place in more:
            if isinstance(found[place].failure, UnreadableReplyError):
                found[place].failure = None  # the earlier replies are good, and asking the same again is of no use
                found[place].notes["gleaning rounds without a usable reply"] += 1

    def _ask_for_the_rest(self, found: list[_Replies], on_message: OnMessage) -> None:
        """Where an earlier run kept a reply that was cut, ask for what it had no room for.

        A reply that is cut in this run is left to the next, which recalls it: a model that never comes to an end is
        asked once a run.
        """
        while prompts := {
            place: self._style.rest(replies.passage, "\n".join(replies.said))
            for place, replies in enumerate(found)
            if replies.is_cut and replies.is_recalled
        }:
            self._ask_until_readable(prompts, found, on_message)
            for place in prompts:
                found[place].end_of_rest()

    def _ask(self, prompts: Mapping[int, Prompt], found: list[_Replies], on_message: OnMessage) -> None:
        """Ask the prompt of each place, and put what the reply says, or why there is none, where it belongs."""
        places = list(prompts)
        paid: set[tuple[str, str]] = set()  # of equal prompts, only the first reply is not recalled
        done = 0

        def take(position: int, outcome: Reply | LanguageModelError) -> None:
            nonlocal done
            prompt, replies = prompts[places[position]], found[places[position]]
            if isinstance(outcome, LanguageModelError) or not outcome.cached:
                self._budget.settle(prompt, outcome.usage)
                paid.add((prompt.system, prompt.user))
            if isinstance(outcome, LanguageModelError):
                replies.failure = outcome
                return
            replies.is_recalled = (prompt.system, prompt.user) not in paid
            replies.read(outcome, self._style, self._settings.max_records)
            done += 1
            on_message(f"extracted {done:,} of {len(places):,} passages, {self._account()}")

        if places:
            self._language_model.complete([prompts[place] for place in places], take, self._budget)
        for place in places:
            if isinstance(failure := found[place].failure, NoMoreRepliesError):
                found[place].failure = self._budget.closed(failure)

    def _account(self) -> str:
        spent = self._budget.spent
        return f"{spent.tokens:,} tokens" + (f", ${spent.cost:,.2f}" if spent.cost else "")

    # Reading

    def _built(self, passage: Passage, replies: _Replies) -> BuildResult:
        extraction = replies.extraction
        usual = FACT_SCORES.usual(fact.score for fact in extraction.facts)
        sentences = self._splitter.sentences(passage.text)
        grounder = Grounder(passage.title, passage.text, sentences)
        joins = self._settings.join_subject
        about = find_subjects(passage, sentences, _mentions(extraction.facts, grounder)) if joins else NO_SUBJECTS
        notes = replies.notes + Counter(extraction.notes)
        importance = _Importance(extraction.facts)
        drafts = []
        for position, fact in enumerate(extraction.facts):
            span = grounder.span_of(fact.text)
            id = build_hyperedge_id(passage.id, position)
            notes[UNSAID] += grounded_share(fact.text, span.of(passage.text)) < _HALF
            score = usual if fact.score is None else fact.score
            edge = Hyperedge(id, HyperedgeKind.FACT, fact.text, passage.id, span.start, span.end, score)
            members = self._members(id, fact, about, grounder, importance, notes)
            for key, section in about.get_sections(span):
                if key not in members:
                    notes[JOINED] += 1
                    members[key] = Incidence(
                        key, id, section.name, SUBJECT, score=importance.of_subject(key), strength=section.strength
                    )
            drafts.append(DraftHyperedge(edge, tuple(members[key] for key in sorted(members))))
        notes["facts"] += len(drafts)
        notes[NOTHING] += bool(replies.said) and not drafts
        return BuildResult(drafts, replies.failure, notes)

    def _members(
        self,
        hyperedge_id: str,
        fact: ExtractedFact,
        about: Subjects,
        grounder: Grounder,
        importance: _Importance,
        notes: Counter[str],
    ) -> dict[str, Incidence]:
        """The incidence of each entity that a fact names, by key."""
        strengths = {key: section.strength for key, section in about.sections}
        strengths |= {key: strength for key, _, strength in about.definitions}
        members: dict[str, Incidence] = {}
        for entity in fact.entities:
            key = find_named_key(entity.name, entity.type, grounder.title, grounder.text, grounder.spans(entity.name))
            if not key:
                notes["dropped: names that name nothing by themselves, such as small numbers"] += 1
                continue
            is_grounded = grounder.is_grounded(entity.name)
            notes[UNGROUNDED] += not is_grounded
            if is_grounded or not self._settings.drop_ungrounded:
                member = _incidence(key, hyperedge_id, entity, importance.of(entity), grounder, is_grounded)
                if key in strengths:
                    member = replace(member, role=SUBJECT, strength=strengths[key])
                members.setdefault(key, member)
        notes[FEW] += len(members) < 2
        notes["entities"] += len(members)
        return members

    def estimate(self, passages: Sequence[Passage], known: Callable[[Sequence[Prompt]], list[str | None]]) -> Usage:
        """As :class:`~polyad.indexing.builders.HyperedgeBuilder`; a gleaning round is half the first reply.

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
        failure: Why not all is known of the passage; None where it is.
        is_recalled: Whether the last reply was paid for by an earlier run.
        notes: Of the requests, not of what the replies say.
    """

    passage: Passage
    said: list[str] = field(default_factory=list)
    extraction: Extraction = field(default_factory=Extraction)
    failure: LanguageModelError | None = None
    is_recalled: bool = False
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_cut(self) -> bool:
        """Whether the last reply ended before it had said all."""
        return isinstance(self.failure, CutReplyError)

    def read(self, reply: Reply, style: ExtractionStyle, most: int) -> None:
        """Add what a reply says; one that cannot be read, or says too much, is the failure, raised as a refusal."""
        self.notes["replies cut at the model's limit"] += reply.truncated
        try:
            addition = style.read(reply.text, self.passage, most)
        except UnreadableReplyError as error:
            cut = ", and an end before the model's limit of tokens" if reply.truncated else ""
            self.failure = UnreadableReplyError(reply.text, error.expected + cut)
            raise self.failure from error
        before = len(self.extraction.facts)
        self.extraction = merged(self.extraction, addition) if self.said else addition
        self.said.append(reply.text)
        self.failure = _cut(len(self.extraction.facts)) if reply.truncated else None
        if reply.truncated and len(self.said) > 1 and len(self.extraction.facts) == before:
            self.failure = None
            self.notes["replies that repeat what was said until they are cut"] += 1

    def end_of_rest(self) -> None:
        """Take note of a rest that could not be read: what was said before stays, and is all there is in this run."""
        if isinstance(self.failure, UnreadableReplyError):
            self.failure = _cut(len(self.extraction.facts))
            self.is_recalled = False


def _cut(facts: int) -> CutReplyError:
    return CutReplyError(f"the reply was cut at the model's limit of tokens, after {format_count(facts, 'fact')}")


class _Importance:
    """How important the model says entities are to a passage, and what is usual there where it does not say."""

    def __init__(self, facts: Sequence[ExtractedFact]) -> None:
        entities = [entity for fact in facts for entity in fact.entities]
        self._usual = ENTITY_SCORES.usual(entity.score for entity in entities)
        self._highest: dict[str, float] = {}
        for entity in entities:
            key = build_name_key(entity.name)
            self._highest[key] = max(self._highest.get(key, 0.0), self.of(entity))

    def of(self, entity: ExtractedEntity) -> float:
        """Of an entity as one fact names it."""
        return self._usual if entity.score is None else entity.score

    def of_subject(self, key: str) -> float:
        """Of what the passage stands under: as much as all that is scored there, where the model does not say."""
        return self._highest.get(key) or max(self._highest.values(), default=self._usual)


def _incidence(
    key: str, hyperedge_id: str, entity: ExtractedEntity, score: float, grounder: Grounder, is_grounded: bool
) -> Incidence:
    spans = grounder.spans(entity.name) or grounder.spans(entity.name.strip(_QUOTES))
    name = " ".join((grounder.slice(spans[0]) if spans else entity.name).split())
    return Incidence(key, hyperedge_id, name, "", entity.type, entity.description, score, is_grounded)


def _mentions(facts: Sequence[ExtractedFact], grounder: Grounder) -> list[tuple[str, Mention]]:
    """The entities of the facts where they stand in the text, ordered by ``start``; each with its key."""
    names = dict.fromkeys(entity.name for fact in facts for entity in fact.entities)
    found = [
        (key, Mention(name, start, end))
        for name in names
        if (key := build_entity_key(name))
        for start, end in grounder.spans(name)
    ]
    return sorted(found, key=lambda item: (item[1].start, -item[1].end, item[0]))
