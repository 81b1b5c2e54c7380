"""Fact hyperedges (HyperGraphRAG, section 4.1): n-ary facts that a language model extracts from passages.

Requests about many passages are sent at the same time. Each reply is parsed when it arrives, so that an invalid reply
is never cached. A passage with an invalid reply is requested again, and reported if the second reply is invalid too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyad.errors import CutReplyError, LanguageModelError, NoMoreRepliesError, UnreadableReplyError
from polyad.indexing.facts.budget import Budget
from polyad.indexing.facts.grounding import Grounder, compute_grounded_share
from polyad.indexing.facts.settings import FactSettings
from polyad.indexing.facts.style import ExtractionStyle
from polyad.indexing.subjects import NO_SUBJECTS, RULES_VERSION, Subjects, find_subjects
from polyad.model import (
    NO_VECTOR,
    SUBJECT,
    Argument,
    Hyperedge,
    HyperedgeKind,
    Incidence,
    IndexedHyperedge,
    Mention,
    Passage,
    Usage,
)
from polyad.protocols.components import (
    BuildResult,
    FindReplies,
    LanguageModel,
    OnMessage,
    Prompt,
    Reply,
    Splitter,
    build_hyperedge_id,
    ignore_message,
)
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction, merge_extractions
from polyad.replies.scores import ENTITY_SCORES, FACT_SCORES
from polyad.text.keys import build_entity_key, build_name_key, find_named_key
from polyad.text.prompts import count_prompt_tokens
from polyad.text.words import collapse_whitespace, count_tokens, format_count

# Kinds of notes.
UNGROUNDED = "ungrounded entities"
UNSUPPORTED = "facts of which less than half the content words stand where they are from"
TOO_FEW_ENTITIES = "facts with fewer than 2 entities"
NO_FACTS = "passages without facts"
JOINED_SUBJECTS = "subjects of passages joined to facts that do not name them"

_QUOTATION_MARKS = "\"'`“”„‘’«» "  # noqa: RUF001
"""Quotation marks that models add around names, within the quotation marks of JSON."""

NO_TYPE = "entity"
"""Role of an entity without a type in the arguments of a fact."""

_HALF = 0.5

REPLY_RATIO = {"compact": 3.4, "paper": 7.0}
"""Completion tokens for each token of a passage, by style: measured with the facts that gpt-3.5-turbo extracted from
MuSiQue, written in either style (``benchmarks/extraction.py``). Another model may write less."""


class FactBuilder:
    """Builds hyperedges of the kind ``fact``: one for each n-ary fact that a language model extracts from a passage.

    The members are the entities that the model lists, and with ``join_subject`` the passage's subject: a fact that says
    "the film" is about the film in the passage's title. Contributions of each passage stay on its own incidences; the
    published code merges them into one record for each entity and adds up the scores, which cannot be undone.

    Args:
        splitter: Finds sentences.
        language_model: The model to ask.
        style: Writes the prompts and parses the replies.
        settings: The settings of the method ``facts``.
        budget: The budget of the run.
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
        """Name of the construction method ``facts``, with all settings that change the extracted facts.

        The model is left out, so that another model may continue an index.
        """
        settings = self._settings
        return (
            f"facts {self._style.name} gleaning={settings.gleaning} drop_ungrounded={settings.drop_ungrounded} "
            f"join_subject={settings.join_subject} {RULES_VERSION if settings.join_subject else 'no-subjects'}"
        )

    def build(self, passages: Sequence[Passage], on_message: OnMessage = ignore_message) -> list[BuildResult]:
        """Return one result per passage, with a hyperedge for each fact that the language model extracts."""
        replies = self._request_facts(passages, on_message)
        return [
            self._build_facts(passage, passage_replies)
            for passage, passage_replies in zip(passages, replies, strict=True)
        ]

    # Asking

    def _request_facts(self, passages: Sequence[Passage], on_message: OnMessage) -> list[_PassageState]:
        """Request the facts of each passage from the language model, and return replies with parsed facts.

        An unreadable reply is requested again.

        A continuation completes a cut reply. A gleaning round requests facts that the earlier replies missed.
        """
        passage_states = [_PassageState(passage) for passage in passages]
        prompts = {place: self._style.build_prompt(passage) for place, passage in enumerate(passages)}
        self._request_until_readable(prompts, passage_states, on_message)
        self._request_continuations(passage_states, on_message)
        for _ in range(self._settings.gleaning):
            self._request_missed_facts(passage_states, on_message)
            self._request_continuations(passage_states, on_message)
        return passage_states

    def _request_until_readable(
        self, prompts: Mapping[int, Prompt], passage_states: list[_PassageState], on_message: OnMessage
    ) -> None:
        """Send ``prompts``, resend prompts whose reply is unreadable, and add replies to ``passage_states``.

        ``prompts`` is keyed by passage position; ``passage_states`` has one item for each passage.
        """
        prompts_to_ask = prompts
        for attempt in range(1, self._settings.attempts + 1):
            self._send_prompts(prompts_to_ask, passage_states, on_message)
            prompts_to_ask = {
                place: self._style.build_retry_prompt(prompts[place], failure, attempt)
                for place in prompts_to_ask
                if isinstance(failure := passage_states[place].failure, UnreadableReplyError)
            }

    def _request_missed_facts(self, passage_states: list[_PassageState], on_message: OnMessage) -> None:
        """Request facts that the replies so far missed (gleaning), and add these facts to ``passage_states``."""
        more = {
            place: self._style.build_gleaning_prompt(replies.passage, "\n".join(replies.texts))
            for place, replies in enumerate(passage_states)
            if replies.texts and not replies.failure
        }
        self._send_prompts(more, passage_states, on_message)
        for place in more:
            if isinstance(passage_states[place].failure, UnreadableReplyError):
                # The earlier replies are valid, and the same request would fail again.
                passage_states[place].failure = None
                passage_states[place].notes["gleaning rounds without a usable reply"] += 1

    def _request_continuations(self, passage_states: list[_PassageState], on_message: OnMessage) -> None:
        """Request the rest of each reply in ``passage_states`` that was truncated and cached by an earlier run.

        A reply that is cut in this run is continued by the next run, which reads the reply from the cache. So a model
        that never finishes receives one request in each run.
        """
        while prompts := {
            place: self._style.build_continuation_prompt(replies.passage, "\n".join(replies.texts))
            for place, replies in enumerate(passage_states)
            if isinstance(replies.failure, CutReplyError) and replies.is_cached
        }:
            self._request_until_readable(prompts, passage_states, on_message)
            for place in prompts:
                passage_states[place].ignore_unreadable_continuation()

    def _send_prompts(
        self, prompts: Mapping[int, Prompt], passage_states: list[_PassageState], on_message: OnMessage
    ) -> None:
        """Send ``prompts``, keyed by passage position, and add each reply or failure to ``passage_states``."""
        places = list(prompts)
        sent: set[tuple[str, str]] = set()  # prompts of this run; later replies to equal prompts come from the cache
        completed = 0

        def add_reply(position: int, outcome: Reply | LanguageModelError) -> None:
            nonlocal completed
            prompt, replies = prompts[places[position]], passage_states[places[position]]
            if isinstance(outcome, LanguageModelError) or not outcome.cached:
                self._budget.settle(prompt, outcome.usage)
                sent.add((prompt.system, prompt.user))
            if isinstance(outcome, LanguageModelError):
                replies.failure = outcome
                return
            replies.is_cached = (prompt.system, prompt.user) not in sent
            replies.add(outcome, self._style, self._settings.max_records)
            completed += 1
            spent = self._budget.spent
            cost = f", ${spent.cost:,.2f}" if spent.cost else ""
            on_message(f"extracted {completed:,} of {len(places):,} passages, {spent.tokens:,} tokens{cost}")

        if places:
            self._language_model.complete([prompts[place] for place in places], add_reply, self._budget)
        for place in places:
            if isinstance(failure := passage_states[place].failure, NoMoreRepliesError):
                passage_states[place].failure = self._budget.update_failure(failure)

    # Building

    def _build_facts(self, passage: Passage, replies: _PassageState) -> BuildResult:
        extraction, dropped = self._style.ontology.restrict(replies.extraction)
        default = FACT_SCORES.compute_default(fact.score for fact in extraction.facts)
        sentences = self._splitter.sentences(passage.text)
        grounder = Grounder(passage.title, passage.text, sentences)
        subjects = (
            find_subjects(passage, sentences, _find_mentions(extraction.facts, grounder))
            if self._settings.join_subject
            else NO_SUBJECTS
        )
        notes = replies.notes + Counter(extraction.notes)
        importance = _ImportanceScores(extraction.facts)
        builder = _IncidenceBuilder(grounder, subjects, importance, drop_ungrounded=self._settings.drop_ungrounded)
        hyperedges = []
        for position, fact in enumerate(extraction.facts):
            span = grounder.find_span(fact.text)
            id = build_hyperedge_id(passage.id, position)
            notes[UNSUPPORTED] += compute_grounded_share(fact.text, span.of(passage.text)) < _HALF
            score = default if fact.score is None else fact.score
            members = builder.build(id, fact)
            edge = Hyperedge(
                *(id, HyperedgeKind.FACT, fact.text, passage.id, span.start, span.end, score, fact.relation),
                # The type of an entity is the role of an argument, its name the value.
                arguments=tuple(Argument(member.type or NO_TYPE, member.name) for member in members.values())
                if fact.relation
                else (),
                valid_from=fact.valid_from,
                valid_to=fact.valid_to,
            )
            for key, section in subjects.get_sections(span):
                if key not in members and key not in dropped:
                    notes[JOINED_SUBJECTS] += 1
                    members[key] = Incidence(
                        key, id, section.name, SUBJECT, score=importance.get_for_subject(key), strength=section.strength
                    )
            hyperedges.append(IndexedHyperedge(edge, tuple(members[key] for key in sorted(members)), NO_VECTOR))
        notes.update(builder.notes)
        notes["facts"] += len(hyperedges)
        notes[NO_FACTS] += bool(replies.texts) and not hyperedges
        return BuildResult(hyperedges, replies.failure, notes)

    def estimate(self, passages: Sequence[Passage], find_replies: FindReplies) -> Usage:
        """Return the estimated language model usage of building hyperedges; cached replies are free.

        ``find_replies`` returns the cached replies.

        A gleaning round (a further request for missed facts) counts as half of the first reply.

        The usage after a prompt without a cached reply is guessed; after a cached reply, the next prompt is known.
        """
        total = Usage()
        prompts = {place: self._style.build_prompt(passage) for place, passage in enumerate(passages)}
        texts: dict[int, list[str]] = {place: [] for place in prompts}
        for rounds_left in range(self._settings.gleaning, -1, -1):
            replies = dict(zip(prompts, find_replies(list(prompts.values())), strict=True))
            new = {place: prompts[place] for place, reply in replies.items() if reply is None}
            for place, prompt in new.items():
                total += self._estimate_rounds(prompt, passages[place], len(texts[place]), rounds_left)
            for place, reply in replies.items():
                if reply is not None:
                    texts[place].append(reply)
            prompts = {
                place: self._style.build_gleaning_prompt(passages[place], "\n".join(texts[place]))
                for place in prompts
                if place not in new
            }
        return replace(total, cost=self._language_model.cost(total.prompt_tokens, total.completion_tokens))

    def _estimate_rounds(self, prompt: Prompt, passage: Passage, round_number: int, rounds_left: int) -> Usage:
        """Return the estimated usage of ``prompt`` and of ``rounds_left`` further requests for the same passage.

        ``prompt`` is request number ``round_number`` for the passage; 0 is the first.
        """
        reply_tokens = REPLY_RATIO[self._settings.style] * count_tokens(passage.text)
        usage = Usage()
        prompt_tokens = count_prompt_tokens(prompt)
        for number in range(round_number, round_number + rounds_left + 1):
            usage += Usage(
                1, prompt_tokens + usage.completion_tokens, int(reply_tokens if number == 0 else reply_tokens / 2)
            )
            if number == 0:
                prompt_tokens = count_prompt_tokens(self._style.build_gleaning_prompt(passage, ""))
        return usage


@dataclass(slots=True)
class _PassageState:
    """The state of fact extraction for one passage: replies of the language model, parsed facts, and last failure.

    Attributes:
        passage: The passage.
        texts: Replies that could be parsed.
        extraction: The facts of all these replies.
        failure: The reason why facts are missing; None if none are missing.
        is_cached: Whether an earlier run paid for the last reply.
        notes: Counts of problems with the requests.
    """

    passage: Passage
    texts: list[str] = field(default_factory=list)
    extraction: Extraction = field(default_factory=Extraction)
    failure: LanguageModelError | None = None
    is_cached: bool = False
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, reply: Reply, style: ExtractionStyle, max_records: int) -> None:
        """Parse the facts in a language model reply of the format ``style``, and add the facts to the passage's facts.

        A parse error becomes the passage's failure.

        Raises:
            UnreadableReplyError: the reply cannot be parsed, or has too many records; so it is not cached.
        """
        self.notes["replies cut at the model's limit"] += reply.truncated
        try:
            addition = style.parse_about(reply.text, self.passage, max_records)
        except UnreadableReplyError as error:
            cut = ", and an end before the model's limit of tokens" if reply.truncated else ""
            self.failure = UnreadableReplyError(reply.text, error.expected + cut)
            raise self.failure from error
        before = len(self.extraction.facts)
        self.extraction = merge_extractions(self.extraction, addition) if self.texts else addition
        self.texts.append(reply.text)
        self.failure = _build_cut_error(len(self.extraction.facts)) if reply.truncated else None
        if reply.truncated and len(self.texts) > 1 and len(self.extraction.facts) == before:
            self.failure = None
            self.notes["replies that repeat what was said until they are cut"] += 1

    def ignore_unreadable_continuation(self) -> None:
        """Replace the failure of an unreadable continuation by the failure that the reply before was truncated.

        The earlier replies remain, and are all there is in this run.
        """
        if isinstance(self.failure, UnreadableReplyError):
            self.failure = _build_cut_error(len(self.extraction.facts))
            self.is_cached = False


def _build_cut_error(facts: int) -> CutReplyError:
    return CutReplyError(f"the reply was cut at the model's limit of tokens, after {format_count(facts, 'fact')}")


class _ImportanceScores:
    """The importance scores that the language model stated for a passage's entities, with a default score."""

    def __init__(self, facts: Sequence[ExtractedFact]) -> None:
        entities = [entity for fact in facts for entity in fact.entities]
        self._default = ENTITY_SCORES.compute_default(entity.score for entity in entities)
        self._highest: dict[str, float] = {}
        for entity in entities:
            key = build_name_key(entity.name)
            self._highest[key] = max(self._highest.get(key, 0.0), self.get(entity))

    def get(self, entity: ExtractedEntity) -> float:
        """Return the importance score that the language model stated for an entity, or a default score."""
        return self._default if entity.score is None else entity.score

    def get_for_subject(self, key: str) -> float:
        """Return the highest importance score of the entity ``key``; of all entities if the model did not list it.

        The language model may not have listed the subject (the entity that the passage is about).
        """
        return self._highest.get(key) or max(self._highest.values(), default=self._default)


class _IncidenceBuilder:
    """Builds the incidences (members of hyperedges) for the facts of one passage.

    Args:
        grounder: Locates names in the passage.
        subjects: The entities that the passage is about.
        scores: The importance scores of the passage's entities.
        drop_ungrounded: Whether entities that do not occur in the passage are dropped.

    Attributes:
        notes: Counts of entities, and of dropped and doubtful entities by reason.
    """

    def __init__(
        self, grounder: Grounder, subjects: Subjects, scores: _ImportanceScores, *, drop_ungrounded: bool
    ) -> None:
        self._grounder = grounder
        self._scores = scores
        self.notes: Counter[str] = Counter()
        self._drop_ungrounded = drop_ungrounded
        self._strengths = {key: section.strength for key, section in subjects.sections}
        self._strengths |= {key: strength for key, _, strength in subjects.definitions}

    def build(self, hyperedge_id: str, fact: ExtractedFact) -> dict[str, Incidence]:
        """Return the incidences of a fact's entities in a hyperedge, keyed by entity key."""
        members: dict[str, Incidence] = {}
        for entity in fact.entities:
            member = self._build_incidence(hyperedge_id, entity)
            if member is not None:
                members.setdefault(member.entity_key, member)
        self.notes[TOO_FEW_ENTITIES] += len(members) < 2
        self.notes["entities"] += len(members)
        return members

    def _build_incidence(self, hyperedge_id: str, entity: ExtractedEntity) -> Incidence | None:
        """Return the incidence of an entity in a hyperedge; None for an entity that is dropped."""
        grounder = self._grounder
        spans = grounder.find_spans(entity.name)
        key = find_named_key(entity.name, entity.type, grounder.title, grounder.text, spans)
        if not key:
            self.notes["dropped: names that name nothing by themselves, such as small numbers"] += 1
            return None
        is_grounded = grounder.is_grounded(entity.name)
        self.notes[UNGROUNDED] += not is_grounded
        if not is_grounded and self._drop_ungrounded:
            return None
        spans = spans or grounder.find_spans(entity.name.strip(_QUOTATION_MARKS))
        return Incidence(
            key,
            hyperedge_id,
            name=collapse_whitespace(grounder.text[slice(*spans[0])] if spans else entity.name),
            role=SUBJECT if key in self._strengths else "",
            type=entity.type,
            description=entity.description,
            score=self._scores.get(entity),
            grounded=is_grounded,
            strength=self._strengths.get(key, 1.0),
        )


def _find_mentions(facts: Sequence[ExtractedFact], grounder: Grounder) -> list[tuple[str, Mention]]:
    """Return (entity key, mention) of each occurrence of the facts' entities in the passage of ``grounder``.

    The pairs are ordered by ``start``.
    """
    names = dict.fromkeys(entity.name for fact in facts for entity in fact.entities)
    mentions = [
        (key, Mention(name, start, end))
        for name in names
        if (key := build_entity_key(name))
        for start, end in grounder.find_spans(name)
    ]
    return sorted(mentions, key=lambda item: (item[1].start, -item[1].end, item[0]))
