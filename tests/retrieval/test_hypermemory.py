from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from polyad.config import LanguageModelSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import ConfigurationError, LanguageModelError, NoMoreRepliesError
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.reply_cache import CachedLanguageModel
from polyad.language_models.scripted import Request, ScriptedLanguageModel, ScriptedOutcome
from polyad.model import Document, Evidence, Mention, Usage
from polyad.protocols.components import BudgetCheck, LanguageModel, OnOutcome, Prompt, Reply
from polyad.protocols.snapshot import Snapshot
from polyad.retrieval.hypermemory.retriever import HyperMemoryRetriever
from polyad.retrieval.hypermemory.settings import HyperMemorySettings
from polyad.retrieval.prompting import QuestionNameExtractor
from polyad.retrieval.question import QuestionLinker
from polyad.snapshot.provider import SnapshotProvider
from polyad.stores.sqlite import SqliteStore, SqliteValueFile
from polyad.text.words import count_tokens
from tests.examples import count_examples
from tests.faults import HangFault
from tests.retrieval.over import Over
from tests.rows import get_document_ids
from tests.scripted_server import ScriptedServer

EMBEDDER = HashingEmbedder(256)

DOCUMENTS = (
    Document("bell", "Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau in 1702.\nIt hangs in Corven Tower."),
    Document("moreau", "Ines Moreau", "Ines Moreau was a founder of bronze. She was born in the village of Aldby."),
    Document("tower", "Corven Tower", "Corven Tower is built of red granite. Its stairs have 214 steps."),
    Document("aldby", "Aldby", "Aldby is a village on the river Isk. It is known for its walnut orchards."),
    Document("isk", "Isk", "The Isk is a river that rises at Mount Hale. Otters live on its banks."),
    Document("organ", "Organ of Hale", "The Organ of Hale was repaired by Ines Moreau. It has forty pipes."),
    Document("lamp", "Lamp of Oder", "The Lamp of Oder was cast by Ines Moreau as a gift for Aldby."),
    Document("otter", "otter", "An otter eats fish and crabs. It closes its ears when it dives."),
)
"""One hyperedge each. The bell leads to its maker (and tower), she to her village, the village to its river."""

CHAIN = "On which river lies the village of the maker of the Bell of Tarn?"
"""Names the bell, and Tarn."""

LINE = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


def snapshot_of(store: SqliteStore) -> Snapshot:
    return SnapshotProvider(store, EMBEDDER.dimension).get_current()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    directory = tmp_path_factory.mktemp("hypermemory") / "kb"
    with Engine.open(directory, embedder=EMBEDDER) as engine:
        counts = engine.index_documents(DOCUMENTS).counts
    assert (counts.hyperedges, counts.failures) == (8, ())
    store = SqliteStore.open(directory)
    yield snapshot_of(store)
    store.close()


def kind(prompt: str) -> str:
    if "\n\nEntity: " in prompt:
        return "edges"
    return "entities" if "\n\nText: " in prompt else "verdict"


class Oracle(ScriptedLanguageModel):
    """Scores each candidate by the first of its words that is in it; remembers which prompts came together."""

    def __init__(
        self,
        edges: Mapping[str, float] = MappingProxyType({}),
        entities: Mapping[str, float] = MappingProxyType({}),
        verdicts: Sequence[ScriptedOutcome] = (),
    ) -> None:
        super().__init__(lambda prompt: self.say(prompt.user))
        self.worth = {"edges": edges, "entities": entities}
        self.verdicts = list(verdicts)
        self.batches: list[list[str]] = []

    def complete(
        self, prompts: Sequence[Prompt], on_outcome: OnOutcome | None = None, check_budget: BudgetCheck | None = None
    ) -> list[Reply | LanguageModelError]:
        self.batches.append([kind(prompt.user) for prompt in prompts])
        return super().complete(prompts, on_outcome, check_budget)

    def say(self, prompt: str) -> ScriptedOutcome:
        if kind(prompt) == "verdict":
            return self.verdicts.pop(0) if self.verdicts else '{"reason": "A step is missing.", "sufficient": false}'
        return self.scores(kind(prompt), LINE.findall(prompt))

    def scores(self, question: str, items: Sequence[tuple[str, str]]) -> str:
        listed = [{"number": int(number), "score": self.score(question, text)} for number, text in items]
        return json.dumps({"scores": listed})

    def score(self, question: str, text: str) -> float:
        return next((score for word, score in self.worth[question].items() if word in text), 0.0)


class PublishedForms(Oracle):
    """The same scores, as the paper's prompts ask for them."""

    def say(self, prompt: str) -> ScriptedOutcome:
        return "A: {{No}}. The river is missing." if kind(prompt) == "verdict" else super().say(prompt)

    def scores(self, question: str, items: Sequence[tuple[str, str]]) -> str:
        if question == "entities":
            return (
                "Score: " + ", ".join(str(self.score(question, text)) for _, text in items) + "\nThe rest is context."
            )
        best_first = sorted(items, key=lambda item: -self.score(question, item[1]))
        return "\n".join(
            f'{rank}. {{{{{number}. "{text}" (Score: {self.score(question, text):.2f})}}}}: it says so.'
            for rank, (number, text) in enumerate(best_first, start=1)
        )


EDGES = {"born in the village": 0.8, "gift for Aldby": 0.2}
ENTITIES = {"Ines Moreau": 0.75, "Corven Tower": 0.25, "Aldby": 1.0}

# The bell's one hyperedge has all of its entities' scores; its maker passes 0.75 on, her village all it gets.
EXPECTED_SCORES = {"bell": 1.0, "aldby": 0.75 * 0.8, "moreau": 0.75 * 0.8, "tower": 0.25, "lamp": 0.75 * 0.2}


def retriever_of(snapshot: Snapshot, model: LanguageModel, **changes: int) -> Over:
    settings = replace(HyperMemorySettings(calls="paper"), **changes)  # type: ignore[arg-type]
    made = HyperMemoryRetriever(EMBEDDER, QuestionLinker(RuleMentionExtractor()), model, settings)
    return Over(snapshot, made)


def edges_of(evidence: Evidence) -> dict[str, float]:
    return {edge.hyperedge.passage_id.partition("#")[0]: edge.score for edge in evidence.hyperedges}


def depths_of(evidence: Evidence) -> dict[str, str]:
    return {step.passage_id.partition("#")[0]: step.reached for step in evidence.trace}


def documents_of(evidence: Evidence) -> list[str]:
    return [hit.passage.document_id for hit in evidence.passages]


def test_a_path_is_followed_from_the_question_to_the_answer(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 5)
    assert evidence.retriever == "hypermemory"
    assert edges_of(evidence) == pytest.approx(EXPECTED_SCORES)
    assert documents_of(evidence) == list(EXPECTED_SCORES)
    assert {hit.passage.document_id: hit.score for hit in evidence.passages} == pytest.approx(EXPECTED_SCORES)
    assert {hit.entity.name: hit.score for hit in evidence.entities} == pytest.approx(
        {"Bell of Tarn": 1, "Tarn": 1, "Ines Moreau": 0.75, "Aldby": 0.75, "Isk": 0.6, "Corven Tower": 0.25}
    )
    assert evidence.notes == {"llm_calls": 5, "llm_requests": 5, "depth": 3}


def test_the_trace_tells_how_each_hyperedge_was_reached(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 5)
    assert [step.hyperedge_id for step in evidence.trace] == [edge.hyperedge.id for edge in evidence.hyperedges]
    assert [step.score for step in evidence.trace] == [edge.score for edge in evidence.hyperedges]
    assert {step.matched for step in evidence.trace} == {"Bell of Tarn"}
    assert [(step.passage_id, step.reached, step.via) for step in evidence.trace] == [
        ("bell#0000", "depth 1", ("Bell of Tarn", "Tarn")),
        ("aldby#0000", "depth 3", ("Aldby",)),
        ("moreau#0000", "depth 2", ("Ines Moreau",)),
        ("tower#0000", "depth 2", ("Corven Tower",)),
        ("lamp#0000", "depth 2", ("Ines Moreau",)),
    ]


def test_passages_the_search_did_not_reach_follow_by_similarity(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 7)
    dense = snapshot.cosines("passage", np.arange(8), EMBEDDER.encode([CHAIN], "query")[0])
    rows = {name: row for row in range(8) if (name := get_document_ids(snapshot, [row])[0]) not in EXPECTED_SCORES}
    assert documents_of(evidence) == [*EXPECTED_SCORES, *sorted(rows, key=lambda name: -dense[rows[name]])[:2]]
    scores = [hit.score for hit in evidence.passages]
    assert scores == sorted(scores, reverse=True)
    assert scores[5] < 0 < scores[4]
    assert evidence.passages[6].reason == "similar to the question, not reached"
    assert retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 2).passages == evidence.passages[:2]
    assert len(retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 99).passages) == 8


def test_the_forms_of_the_paper_give_the_same_evidence(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle(EDGES, ENTITIES)).retrieve(CHAIN, 5)
    assert retriever_of(snapshot, PublishedForms(EDGES, ENTITIES)).retrieve(CHAIN, 5) == evidence


def test_the_prompts_of_a_depth_go_out_together(snapshot: Snapshot) -> None:
    model = Oracle(dict.fromkeys(["born", "repaired", "gift", "village"], 0.3), dict.fromkeys(["Hale", "Oder"], 0.5))
    retriever_of(snapshot, model, depth=2).retrieve("Did Ines Moreau know Aldby?", 3)
    assert model.batches == [["edges", "edges"], ["entities", "entities"], ["verdict"]]


def test_visited_entities_are_not_offered_again(snapshot: Snapshot) -> None:
    model = Oracle(dict.fromkeys(["born", "repaired", "gift"], 0.3), dict.fromkeys(["Hale", "Oder"], 0.5))
    retriever_of(snapshot, model).retrieve("Did Ines Moreau know Aldby?", 3)
    offered = [LINE.findall(prompt.user) for prompt in model.prompts if kind(prompt.user) == "entities"]
    names = {name for items in offered for _, name in items}
    assert names == {"Hale", "Organ of Hale", "Lamp of Oder", "Oder"}  # not the two topic entities


def test_a_yes_ends_the_search(snapshot: Snapshot) -> None:
    model = Oracle(EDGES, ENTITIES, ["{{Yes}}: all is there."])
    evidence = retriever_of(snapshot, model).retrieve(CHAIN, 5)
    assert depths_of(evidence) == {"bell": "depth 1"}
    assert evidence.notes == {"llm_calls": 2, "llm_requests": 2, "depth": 1, "sufficient": 1}
    assert len(evidence.passages) == 5


def test_a_verdict_is_on_all_evidence_so_far(snapshot: Snapshot) -> None:
    model = Oracle(EDGES, ENTITIES, ["No", "Yes"])
    evidence = retriever_of(snapshot, model).retrieve(CHAIN, 5)
    first, second = [prompt.user for prompt in model.prompts if kind(prompt.user) == "verdict"]
    assert first == (
        f"Question: {CHAIN}\n\nTexts:\n"
        "1. The Bell of Tarn was cast by Ines Moreau in 1702. It hangs in Corven Tower.\n"
        "   Entities: 1702, Bell of Tarn, Corven Tower, Ines Moreau, Tarn"
    )
    assert second.startswith(first)
    assert [text.split(" was ")[0] for _, text in LINE.findall(second)][:2] == ["The Bell of Tarn", "Ines Moreau"]
    assert evidence.notes == {"llm_calls": 5, "llm_requests": 5, "depth": 2, "sufficient": 1}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_endless_no_ends_at_the_greatest_depth(snapshot: Snapshot, depth: int) -> None:
    model = Oracle(EDGES, ENTITIES)
    evidence = retriever_of(snapshot, model, depth=depth).retrieve(CHAIN, 5)
    assert evidence.notes["depth"] == depth
    assert max(depths_of(evidence).values()) == f"depth {depth}"
    assert model.batches.count(["verdict"]) == depth - 1  # after the last the verdict would change nothing


def test_an_unreadable_verdict_counts_as_no(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle(EDGES, ENTITIES, ["Hmm.", "Perhaps."])).retrieve(CHAIN, 5)
    assert edges_of(evidence) == pytest.approx(EXPECTED_SCORES)
    assert evidence.notes == {"llm_calls": 5, "llm_requests": 5, "unreadable_verdicts": 2, "depth": 3}


@pytest.mark.parametrize("max_calls", [1, 2, 3, 4, 5])
def test_no_more_calls_are_made_than_allowed(snapshot: Snapshot, max_calls: int) -> None:
    model = Oracle(EDGES, ENTITIES)
    evidence = retriever_of(snapshot, model, max_calls=max_calls).retrieve(CHAIN, 3)
    assert len(model.prompts) == evidence.notes["llm_calls"] == max_calls
    assert set(edges_of(evidence)) <= set(EXPECTED_SCORES)
    assert "bell" in edges_of(evidence)
    assert len(evidence.passages) == 3


@pytest.mark.parametrize("max_calls", [1, 2, 5, 40])
def test_the_call_that_finds_the_questions_names_counts_too(snapshot: Snapshot, max_calls: int) -> None:
    def say(prompt: Prompt) -> ScriptedOutcome:
        return oracle.say(prompt.user) if "Question: " in prompt.user else '{"entities": ["Bell of Tarn", "Tarn"]}'

    oracle = Oracle(EDGES, ENTITIES)
    model = ScriptedLanguageModel(say)
    names = QuestionNameExtractor(model, RuleMentionExtractor())
    settings = HyperMemorySettings(calls="paper", max_calls=max_calls)
    evidence = Over(snapshot, HyperMemoryRetriever(EMBEDDER, QuestionLinker(names), model, settings)).retrieve(CHAIN, 3)
    assert len(model.prompts) == evidence.notes["llm_calls"] == min(max_calls, 6)
    assert len(evidence.passages) == 3


def test_requests_are_counted_as_they_were_sent(snapshot: Snapshot) -> None:
    def say(prompt: Prompt) -> ScriptedOutcome:
        if kind(prompt.user) == "edges":
            return LanguageModelError("the endpoint is busy", Usage(calls=4))
        reply = oracle.say(prompt.user)
        return Reply(str(reply), Usage(calls=2), cached=True) if kind(prompt.user) == "entities" else reply

    oracle = Oracle(EDGES, ENTITIES)
    model = ScriptedLanguageModel(say)
    notes = retriever_of(snapshot, model).retrieve(CHAIN, 3).notes
    questions = Counter(kind(prompt.user) for prompt in model.prompts)
    assert min(questions.values()) > 0
    assert notes["llm_calls"] == questions.total()
    assert notes["llm_requests"] == 4 * questions["edges"] + 2 * questions["entities"] + questions["verdict"]


def test_a_reply_that_cannot_be_used_is_asked_for_again_the_next_time(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(DOCUMENTS)
    store = SqliteStore.open(tmp_path / "kb")
    unusable, usable = ScriptedLanguageModel(lambda _: "Perhaps."), Oracle(EDGES, ENTITIES)
    replies = SqliteValueFile(tmp_path / "replies.sqlite")
    first, second, third = (
        retriever_of(snapshot_of(store), CachedLanguageModel(model, replies, store.charge)).retrieve(CHAIN, 5)
        for model in (unusable, usable, ScriptedLanguageModel([]))
    )
    store.close()
    assert first.notes["unreadable_scores"] > 0
    assert first.notes["unreadable_verdicts"] > 0
    assert first.notes["llm_calls"] == first.notes["llm_requests"] == len(unusable.prompts)
    assert edges_of(second) == pytest.approx(EXPECTED_SCORES)
    assert second.notes == {"llm_calls": 5, "llm_requests": 5, "depth": 3}
    assert replace(third, notes=second.notes) == second
    assert third.notes == {"llm_calls": 5, "llm_requests": 0, "depth": 3}


def test_a_hyperedge_whose_entities_could_not_be_asked_about_is_kept_as_evidence(snapshot: Snapshot) -> None:
    model = Oracle({"repaired": 0.6, "gift": 0.4})
    evidence = retriever_of(snapshot, model, max_calls=2).retrieve("Who was Ines Moreau?", 2)
    assert model.batches == [["edges"], ["entities"]]  # of the organ's; none is left for the lamp's
    assert edges_of(evidence) == pytest.approx({"organ": 0.6, "lamp": 0.4})


def test_a_hyperedge_that_leads_nowhere_is_evidence_too(snapshot: Snapshot) -> None:
    model = Oracle()
    evidence = retriever_of(snapshot, model, depth=1).retrieve("Of what is Corven Tower built, and who is Aldby?", 3)
    assert edges_of(evidence)["tower"] > 0


def test_bad_scores_are_repaired_and_counted(snapshot: Snapshot) -> None:
    replies = {
        "edges": "1: 50%\n2: -20%\n3: 40%\n7: 10%",
        "entities": '{"scores": [{"number": 3, "score": 30}, {"number": 2, "score": 10}]}',
        "verdict": "no",
    }
    model = ScriptedLanguageModel(lambda prompt: replies[kind(prompt.user)])
    evidence = retriever_of(snapshot, model, depth=2).retrieve(CHAIN, 5)
    assert edges_of(evidence)["bell"] == pytest.approx(1.0)
    assert {hit.entity.name: hit.score for hit in evidence.entities}["Ines Moreau"] == pytest.approx(0.75)
    assert evidence.notes["percentages"] == 1
    assert evidence.notes["negative_scores"] == 1
    assert evidence.notes["numbers_not_offered"] >= 1
    assert evidence.notes["scores_above_one"] >= 1
    assert evidence.notes["missing_scores"] >= 1


def test_without_a_reply_similarity_decides(snapshot: Snapshot) -> None:
    question = "Who had Ines Moreau make a gift for Aldby?"
    model = ScriptedLanguageModel(lambda prompt: LanguageModelError("the prompt was refused"))
    evidence = retriever_of(snapshot, model, depth=1).retrieve(question, 3)
    cosines = snapshot.cosines("hyperedge", np.arange(8), EMBEDDER.encode([question], "query")[0])
    rows = {id.partition("#")[0]: row for row, id in enumerate(snapshot.ids("hyperedge", range(8)))}
    assert max(rows, key=lambda name: float(cosines[rows[name]])) == "lamp" == documents_of(evidence)[0]
    assert evidence.notes["failed_replies"] == evidence.notes["llm_calls"] == len(model.prompts) > 2


def test_when_asking_is_of_no_use_that_is_raised(snapshot: Snapshot) -> None:
    model = ScriptedLanguageModel([NoMoreRepliesError("the budget is spent")])
    with pytest.raises(NoMoreRepliesError):
        retriever_of(snapshot, model).retrieve(CHAIN, 3)


def test_a_question_without_an_entity_starts_at_the_nearest_hyperedges(snapshot: Snapshot) -> None:
    question = "Which animal closes its ears when it dives?"
    evidence = retriever_of(snapshot, Oracle()).retrieve(question, 3)
    assert (edges_of(evidence)["otter"], depths_of(evidence)["otter"]) == (1.0, "depth 1")
    assert "otter" in documents_of(evidence)
    assert {step.matched for step in evidence.trace} == {question}
    starts = [hit.entity.name for hit in evidence.entities if hit.score == 1.0]
    assert 1 < len(starts) <= 3 * 3
    assert {"otter", "otter eats fish"} <= set(starts)


def test_only_the_nearest_hyperedges_are_offered_when_there_are_too_many_tokens(snapshot: Snapshot) -> None:
    question = "What did Ines Moreau repair?"
    whole, bounded = Oracle({"Moreau": 0.5}), Oracle({"Moreau": 0.5})
    retriever_of(snapshot, whole, depth=1).retrieve(question, 3)
    budget = sum(count_tokens(line[0]) for line in re.findall(r"^(([12])\. .*)$", whole.prompts[0].user, re.MULTILINE))
    retriever_of(snapshot, bounded, depth=1, edge_tokens=budget).retrieve(question, 3)
    assert len(LINE.findall(whole.prompts[0].user)) == 4
    assert LINE.findall(bounded.prompts[0].user) == LINE.findall(whole.prompts[0].user)[:2]
    edges, _ = snapshot.graph.memberships(np.array([snapshot.find_rows("entity", ["ines moreau"])["ines moreau"]]))
    nearness = snapshot.cosines("hyperedge", edges, EMBEDDER.encode([question], "query")[0])
    (nearest,) = get_document_ids(snapshot, snapshot.graph.passages(edges[[nearness.argmax()]]))
    document = next(document for document in DOCUMENTS if document.id == nearest)
    assert LINE.findall(bounded.prompts[0].user)[0] == ("1", " ".join(document.text.split()))


def test_a_hyperedge_longer_than_the_budget_is_offered_alone(snapshot: Snapshot) -> None:
    evidence = retriever_of(snapshot, Oracle({}, {"Hale": 1.0}), edge_tokens=1).retrieve("What did Ines Moreau do?", 3)
    assert len([step for step in evidence.trace if step.reached == "depth 1"]) == 1


def test_only_the_entities_with_the_nearest_names_are_offered(snapshot: Snapshot) -> None:
    model = Oracle()
    question = "In which tower hangs the Bell of Tarn?"
    evidence = retriever_of(snapshot, model, entity_limit=1, depth=1).retrieve(question, 3)
    assert {hit.entity.name for hit in evidence.entities} == {"Bell of Tarn", "Tarn", "Corven Tower"}
    assert model.prompts == []  # what is alone needs no scoring


@pytest.mark.parametrize("width", [1, 2])
def test_no_more_paths_are_kept_than_the_width(snapshot: Snapshot, width: int) -> None:
    model = Oracle(dict.fromkeys(["born", "repaired", "gift"], 0.3), dict.fromkeys(["Hale", "Oder", "Aldby"], 0.3))
    evidence = retriever_of(snapshot, model, width=width, depth=1).retrieve("Who was Ines Moreau?", 3)
    assert len(evidence.entities) == 1 + width
    assert len(evidence.hyperedges) <= width


def test_the_title_stands_before_a_text_that_does_not_name_it(tmp_path: Path) -> None:
    documents = [Document("a", "Lena Vogt", "She was born in Aldby.\n\n2. Ignore Aldby."), *DOCUMENTS]
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(documents)
    store = SqliteStore.open(tmp_path / "kb")
    model = Oracle()
    retriever_of(snapshot_of(store), model, depth=1).retrieve("Who was born in Aldby?", 1)
    store.close()
    texts = [text for _, text in LINE.findall(model.prompts[0].user)]
    assert "Lena Vogt: She was born in Aldby. 2. Ignore Aldby." in texts
    assert sum("Ignore" in text for text in texts) == 1
    assert not any(text.startswith("Aldby: ") for text in texts)


PAPER = {"titles": False, "dead_ends": False, "own_knowledge": True}


@pytest.mark.parametrize("changes", [{}, PAPER])
def test_titles_dead_ends_and_own_knowledge_are_as_the_settings_say(tmp_path: Path, changes: dict[str, int]) -> None:
    documents = [
        Document("cast", "Bronze", "The Bell of Tarn was cast by Ines Moreau."),
        Document("rings", "", "The Bell of Tarn rings at noon."),
        Document("born", "Births", "Ines Moreau was born in Aldby."),
    ]
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER) as engine:
        engine.index_documents(documents)
    store = SqliteStore.open(tmp_path / "kb")
    model = Oracle({"cast": 0.6, "rings": 0.4, "born": 1.0}, {"Ines Moreau": 1.0, "Aldby": 1.0})
    evidence = retriever_of(snapshot_of(store), model, depth=2, **changes).retrieve("Who cast the Bell of Tarn?", 3)
    store.close()
    edges, verdict = model.prompts[0].user, next(prompt for prompt in model.prompts if kind(prompt.user) == "verdict")
    assert ("Bronze: The Bell" in edges, "with what you know yourself" in verdict.system) == (
        not changes,
        bool(changes),
    )
    assert {"cast", "born"} <= edges_of(evidence).keys()
    assert ("rings" in edges_of(evidence)) == (not changes), "its only entity is the one that the search begins at"


class DescribingExtractor:
    """Finds names of which the text is known to say something."""

    name = "describing"
    descriptions = MappingProxyType({"Aldby": "a village\nof " + "walnuts " * 99, "Isk": "a river", "Moreau": ""})

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        return [
            [
                Mention(name, text.index(name), text.index(name) + len(name), description=reply)
                for name, reply in self.descriptions.items()
                if name in text
            ]
            for text in texts
        ]


def test_a_verdict_is_told_what_is_known_of_the_entities_on_the_paths(tmp_path: Path) -> None:
    extractor = DescribingExtractor()
    documents = [Document("a", "", "Moreau was born in Aldby."), Document("b", "", "Aldby is a village on the Isk.")]
    with Engine.open(tmp_path / "kb", embedder=EMBEDDER, mention_extractor=extractor) as engine:
        engine.index_documents(documents)
    store = SqliteStore.open(tmp_path / "kb")
    model = Oracle()
    snapshot = snapshot_of(store)
    Over(
        snapshot, HyperMemoryRetriever(EMBEDDER, QuestionLinker(extractor), model, HyperMemorySettings(calls="paper"))
    ).retrieve("Where was Moreau born?", 2)
    store.close()
    name = "Aldby: a village; of " + "walnuts " * 99
    assert model.prompts[0].user == (
        f"Question: Where was Moreau born?\n\nKnown of the entities:\n{name[: len('Aldby: ') + 300]}\n\n"
        "Texts:\n1. Moreau was born in Aldby.\n   Entities: Aldby, Moreau"
    )
    assert [kind(prompt.user) for prompt in model.prompts] == ["verdict", "verdict"]
    assert "\nIsk: a river\n" in model.prompts[1].user


def test_an_empty_index_gives_no_evidence(tmp_path: Path) -> None:
    Engine.open(tmp_path / "kb", embedder=EMBEDDER).close()
    store = SqliteStore.open(tmp_path / "kb")
    model = ScriptedLanguageModel([])
    evidence = retriever_of(snapshot_of(store), model).retrieve(CHAIN, 5)
    store.close()
    assert (evidence.passages, evidence.hyperedges, model.prompts) == ((), (), [])
    assert evidence.notes == {"llm_calls": 0, "llm_requests": 0, "depth": 0}


@hypothesis_settings(max_examples=count_examples(60), deadline=None)
@given(replies=st.lists(st.one_of(st.text(), st.sampled_from(["", "1, 2", "[]", "Yes", "No", "1: -1"])), max_size=40))
def test_no_reply_breaks_the_search_and_equal_replies_give_equal_evidence(
    snapshot: Snapshot, replies: list[str]
) -> None:
    def retrieve_evidence() -> Evidence:
        return retriever_of(snapshot, ScriptedLanguageModel(replies)).retrieve(CHAIN, 4)

    evidence = retrieve_evidence()
    assert evidence == retrieve_evidence()
    assert len(set(documents_of(evidence))) == 4
    scores = [hit.score for hit in evidence.passages]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < step.score <= 1.000001 for step in evidence.trace)
    assert evidence.notes["llm_calls"] <= 40


@pytest.mark.parametrize("name", ["width", "depth", "edge_tokens", "entity_limit", "max_calls"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is 0; expected 1 or more"):
        replace(HyperMemorySettings(), **{name: 0})  # type: ignore[arg-type]


def test_the_search_works_over_http(snapshot: Snapshot) -> None:
    oracle = Oracle(EDGES, ENTITIES)

    def reply(request: Request) -> str:
        assert request["response_format"]["type"] == "json_schema"
        return f"```json\n{oracle.say(request['messages'][-1]['content'])}\n```"

    with ScriptedServer(reply) as server:
        settings = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k")
        evidence = retriever_of(snapshot, OpenAILanguageModel(settings)).retrieve(CHAIN, 5)
        assert len(server.requests) == 5
    assert edges_of(evidence) == pytest.approx(EXPECTED_SCORES)
    assert evidence.notes == {"llm_calls": 5, "llm_requests": 5, "depth": 3}


# One prompt a depth


class TogetherOracle(Oracle):
    """Scores texts and entities of one prompt by themselves."""

    def say(self, prompt: str) -> ScriptedOutcome:
        if "The search stands at: " not in prompt:
            return super().say(prompt)
        texts, _, names = prompt.partition("\n\nEntities:\n")
        listed = [(number, "edges", text) for number, text in LINE.findall(texts)]
        listed += [(number, "entities", text) for number, text in LINE.findall(names)]
        scores = [(int(number), self.score(question, text)) for number, question, text in listed]
        return json.dumps({"scores": [{"number": number, "score": score} for number, score in scores if score]})


def batched(snapshot: Snapshot, model: LanguageModel, **changes: object) -> Over:
    settings = replace(HyperMemorySettings(), **changes)  # type: ignore[arg-type]
    return Over(snapshot, HyperMemoryRetriever(EMBEDDER, QuestionLinker(RuleMentionExtractor()), model, settings))


TEXTS = {"Bell of Tarn was cast": 0.9, "born in the village": 0.8, "gift for Aldby": 0.2, "village on the river": 0.5}
TEXTS |= {"red granite": 0.1}
NAMES = {"Ines Moreau": 0.75, "Corven Tower": 0.25, "Aldby": 0.6, "Isk": 0.4}


def test_one_prompt_a_depth_scores_texts_and_entities_each_by_itself(snapshot: Snapshot) -> None:
    model = TogetherOracle(TEXTS, NAMES)
    evidence = batched(snapshot, model).retrieve(CHAIN, 5)
    assert len(model.prompts) == evidence.notes["llm_calls"] == 5, "three depths and two verdicts"
    edges = edges_of(evidence)
    assert edges["bell"] == pytest.approx(0.9 * 0.75 + 0.9 * 0.25), "a lone candidate is not certain"
    assert edges["moreau"] == pytest.approx(0.9 * 0.75 * 0.8 * 0.6)
    assert "isk" not in edges, "what has no score is not followed"
    first = model.prompts[0].user
    assert first.startswith(f"Question: {CHAIN}\n\nThe search stands at: ")
    assert "\n\nTexts:\n1. The Bell of Tarn" in first
    assert "2. 1702" in first


def test_a_triple_may_be_scored_by_itself_as_in_equation_16(snapshot: Snapshot) -> None:
    product = edges_of(batched(snapshot, TogetherOracle(TEXTS, NAMES)).retrieve(CHAIN, 5))
    triple = edges_of(batched(snapshot, TogetherOracle(TEXTS, NAMES), composite="triple").retrieve(CHAIN, 5))
    assert triple["bell"] == pytest.approx(product["bell"])
    assert triple["moreau"] == pytest.approx(0.8 * 0.6)
    assert triple["moreau"] > product["moreau"]


def test_the_trace_gives_the_tails_and_the_parent_so_that_the_chain_can_be_shown(snapshot: Snapshot) -> None:
    steps = {
        step.passage_id.partition("#")[0]: step
        for step in batched(snapshot, TogetherOracle(TEXTS, NAMES)).retrieve(CHAIN, 5).trace
    }
    assert steps["bell"].parent == ""
    assert set(steps["bell"].tails) == {"Ines Moreau", "Corven Tower"}
    assert steps["moreau"].parent == steps["bell"].hyperedge_id
    assert (steps["moreau"].via[0], steps["moreau"].tails) == ("Ines Moreau", ("Aldby",))
    assert (steps["aldby"].via[0], steps["aldby"].parent) == ("Aldby", steps["moreau"].hyperedge_id)


def test_a_depth_without_a_reply_is_scored_by_similarity_and_said_once(
    snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedLanguageModel(lambda _: LanguageModelError("the endpoint is busy"))
    evidence = batched(snapshot, model).retrieve(CHAIN, 5)
    assert evidence.hyperedges
    (record,) = caplog.records
    assert "the endpoint is busy" in record.getMessage()
    assert "similarity decided" in record.getMessage()


def test_an_endpoint_that_never_replies_is_given_up_after_some_tries(
    snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    for calls in ("batched", "paper"):
        with ScriptedServer(lambda _: HangFault(30)) as server:
            settings = LanguageModelSettings(
                model="m", base_url=server.base_url, api_key="k", timeout=0.2, max_retries=5, retry_delay=0.0
            )
            model = OpenAILanguageModel(settings)
            evidence = batched(snapshot, model, calls=calls, max_failures=4).retrieve("Did Ines Moreau know Aldby?", 5)
            assert 2 <= len(server.requests) <= 8, calls
            assert evidence.notes["llm_requests"] == len(server.requests), "retries count"
        assert len(evidence.passages) == 5
    assert sum("hypermemory" in record.getMessage() for record in caplog.records) == 2


def test_a_question_has_its_time(snapshot: Snapshot) -> None:
    with ScriptedServer(lambda request: "no", delay=0.3) as server:
        settings = LanguageModelSettings(model="m", base_url=server.base_url, api_key="k", max_retries=0)
        evidence = batched(snapshot, OpenAILanguageModel(settings), max_seconds=0.2).retrieve(CHAIN, 5)
        assert len(server.requests) == 1
    assert len(evidence.passages) == 5


@pytest.mark.parametrize("name", ["calls", "composite"])
def test_an_unknown_way_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is 'other'"):
        replace(HyperMemorySettings(), **{name: "other"})  # type: ignore[arg-type]
