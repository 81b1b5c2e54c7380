"""Fact hyperedges (HyperGraphRAG, section 4.1): n-ary facts that a language model finds in a passage.

Many passages are asked about at a time. Every reply is read as it comes, so that one that cannot be read is never kept
as if it were good; such a passage is asked about again, and in the end reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from polyad.config import FactSettings
from polyad.errors import LanguageModelError
from polyad.indexing.builder import DraftHyperedge, Tell, hyperedge_id, untold
from polyad.indexing.facts.budget import Budget, count_prompt_tokens
from polyad.indexing.facts.extraction import (
    ExtractedEntity,
    ExtractedFact,
    Extraction,
    ExtractionStyle,
    UnreadableReplyError,
    merged,
)
from polyad.indexing.facts.grounding import Grounder
from polyad.indexing.subjects import Subjects, subjects
from polyad.model import SUBJECT, Hyperedge, HyperedgeKind, Incidence, Mention, Passage, Usage
from polyad.protocols import LanguageModel, Prompt, Reply, Splitter
from polyad.text.keys import entity_key
from polyad.text.tokens import count_tokens

UNGROUNDED = "ungrounded entities"
FEW = "facts with fewer than 2 entities"


class FactBuilder:
    """Builds one hyperedge for each fact that the language model finds in a passage.

    Its members are the entities the model names, and with ``join_subject`` the passage's subject: a fact that says "the
    film" is about the film its passage is titled by. The contributions of each passage stay on its own incidences; the
    published code merges them into one record an entity and adds up the scores, which cannot be undone.

    Args:
        splitter: Finds sentences.
        llm: Is asked.
        style: Words the prompt and reads the reply.
        settings: See :class:`polyad.config.FactSettings`.
        budget: Of the run.

    Attributes:
        notes: What was found, dropped and repaired so far, counted by reason.
        usage: What it cost so far.
    """

    def __init__(
        self,
        splitter: Splitter,
        llm: LanguageModel,
        style: ExtractionStyle,
        settings: FactSettings,
        budget: Budget,
    ) -> None:
        self.notes: Counter[str] = Counter()
        self.usage = Usage()
        self._splitter = splitter
        self._llm = llm
        self._style = style
        self._settings = settings
        self._budget = budget

    @property
    def name(self) -> str:
        """The method and what changes its result, but not the model: another one may go on with an index."""
        settings = self._settings
        return (
            f"facts {self._style.name} gleaning={settings.gleaning} drop_ungrounded={settings.drop_ungrounded} "
            f"join_subject={settings.join_subject}"
        )

    def build(
        self, passages: Sequence[Passage], tell: Tell = untold
    ) -> list[list[DraftHyperedge] | LanguageModelError]:
        """The facts of each passage; see :class:`polyad.indexing.builder.HyperedgeBuilder`."""
        found = self._extracted(passages, tell)
        drafts: list[list[DraftHyperedge] | LanguageModelError] = []
        for passage, extraction in zip(passages, found, strict=True):
            if isinstance(extraction, LanguageModelError):
                drafts.append(extraction)
            else:
                self.notes.update(extraction.notes)
                drafts.append(self._drafts(passage, extraction))
        return drafts

    # Asking

    def _extracted(self, passages: Sequence[Passage], tell: Tell) -> list[Extraction | LanguageModelError]:
        found: dict[int, Extraction | LanguageModelError] = {}
        asked = {place: self._style.prompt(passage) for place, passage in enumerate(passages)}
        said: dict[int, str] = {}
        for _ in range(self._settings.attempts):
            said |= self._ask(asked, found, tell)
            asked = {place: prompt for place, prompt in asked.items() if isinstance(found[place], UnreadableReplyError)}
        for _ in range(self._settings.gleaning):
            more = {place: self._style.more(passages[place], text) for place, text in said.items()}
            further: dict[int, Extraction | LanguageModelError] = {}
            for place, text in self._ask(more, further, tell).items():
                said[place] += f"\n{text}"
            for place, addition in further.items():
                first = found[place]
                if isinstance(addition, UnreadableReplyError):
                    self.notes["gleaning rounds without a usable reply"] += 1
                elif isinstance(addition, LanguageModelError):
                    found[place] = addition  # what was said so far is kept, so that the next run gleans the rest
                    said.pop(place)
                elif isinstance(first, Extraction):
                    found[place] = merged(first, addition)
        return [found[place] for place in range(len(passages))]

    def _ask(
        self, prompts: dict[int, Prompt], found: dict[int, Extraction | LanguageModelError], tell: Tell
    ) -> dict[int, str]:
        """Ask, and put what each reply says, or why there is none, into ``found``; the replies that could be read."""
        places = list(prompts)
        said: dict[int, str] = {}

        def read(position: int, reply: Reply) -> None:
            place = places[position]
            self._pay(prompts[place], reply)
            self.notes["replies cut at the model's limit"] += reply.truncated
            found[place] = self._style.parse(reply.text)
            said[place] = reply.text
            tell(f"extracted {len(said):,} of {len(places):,} passages, {self._account()}")

        outcomes = self._llm.complete([prompts[place] for place in places], read, self._budget) if places else []
        for place, outcome in zip(places, outcomes, strict=True):
            if isinstance(outcome, LanguageModelError):
                found[place] = outcome
                if not isinstance(outcome, UnreadableReplyError):
                    self._budget.settle(prompts[place], Usage())
        return said

    def _pay(self, prompt: Prompt, reply: Reply) -> None:
        self.usage += reply.usage
        if not reply.cached:
            self._budget.settle(prompt, reply.usage)

    def _account(self) -> str:
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        return f"{tokens:,} tokens" + (f", ${self.usage.cost:,.2f}" if self.usage.cost else "")

    # Reading

    def _drafts(self, passage: Passage, extraction: Extraction) -> list[DraftHyperedge]:
        sentences = self._splitter.sentences(passage.text)
        grounder = Grounder(passage.title, passage.text, sentences)
        mentions = _mentions(extraction.facts, grounder)
        about = subjects(passage.title, passage.text, sentences, mentions)
        drafts = []
        for position, fact in enumerate(extraction.facts):
            span = grounder.span_of(fact.text)
            id = hyperedge_id(passage.id, position)
            edge = Hyperedge(id, HyperedgeKind.FACT, fact.text, passage.id, span.start, span.end, fact.score)
            drafts.append(DraftHyperedge(edge, self._incidences(id, fact, about, grounder)))
        self.notes["facts"] += len(drafts)
        return drafts

    def _incidences(
        self, hyperedge_id: str, fact: ExtractedFact, about: Subjects, grounder: Grounder
    ) -> tuple[Incidence, ...]:
        defined = {key for key, _ in about.defined} | {about.passage[0]}
        members: dict[str, Incidence] = {}
        for entity in fact.entities:
            key = entity_key(entity.name)
            if not key:
                self.notes["dropped: names that name nothing by themselves, such as small numbers"] += 1
                continue
            is_grounded = grounder.is_grounded(entity.name)
            self.notes[UNGROUNDED] += not is_grounded
            if is_grounded or not self._settings.drop_ungrounded:
                role = SUBJECT if key in defined else ""
                members.setdefault(key, _incidence(key, hyperedge_id, entity, role, grounder, is_grounded))
        self.notes[FEW] += len(members) < 2
        self.notes["entities"] += len(members)
        key, name = about.passage
        if key and self._settings.join_subject:
            members.setdefault(key, Incidence(key, hyperedge_id, name, SUBJECT))
        return tuple(members[key] for key in sorted(members))

    def estimate(self, passages: Sequence[Passage], known: Callable[[Sequence[Prompt]], list[bool]]) -> Usage:
        """What extracting from ``passages`` is likely to cost: prompts are counted, replies guessed.

        Args:
            passages: That are not in the index yet.
            known: Of each prompt, whether its reply was paid for earlier.
        """
        prompts = [self._style.prompt(passage) for passage in passages]
        new = [place for place, is_known in enumerate(known(prompts)) if not is_known]
        rounds = self._settings.gleaning
        asked = sum(count_prompt_tokens(prompts[place]) for place in new)
        more = sum(count_prompt_tokens(self._style.more(passages[place], "")) for place in new) if rounds else 0
        said = REPLY_RATIO[self._settings.style] * sum(count_tokens(passages[place].text) for place in new)
        # A gleaning round sends all replies so far along, and brings about half as much as the first reply anew.
        prompt_tokens = round(asked + rounds * more + said * rounds * (rounds + 3) / 4)
        completion_tokens = round(said * (1 + rounds / 2))
        cost = self._llm.cost(prompt_tokens, completion_tokens)
        return Usage(len(new) * (1 + rounds), prompt_tokens, completion_tokens, cost)


REPLY_RATIO = {"compact": 1.2, "paper": 2.5}
"""Completion tokens for each token of a passage, by style; a rough guess from extractions of encyclopaedic text."""


def _incidence(
    key: str, hyperedge_id: str, entity: ExtractedEntity, role: str, grounder: Grounder, is_grounded: bool
) -> Incidence:
    spans = grounder.spans(entity.name)
    name = " ".join((grounder.slice(spans[0]) if spans else entity.name).split())
    return Incidence(key, hyperedge_id, name, role, entity.type, entity.description, entity.score, is_grounded)


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
