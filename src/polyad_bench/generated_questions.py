"""Questions with known evidence from any index, generated without a model, to measure retrievers on own documents.

Known items simulate a user who remembers half of a sentence and searches for its passage (Azzopardi, de Rijke and
Balog, 2007). Two-hop questions omit a name from a sentence and ask for the passage about the named entity. Both share
more words with their evidence than real questions: they rank retrievers on these documents, but their measures cannot
be compared with other data sets.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.subjects import STRONG
from polyad.model import SUBJECT, Passage
from polyad.protocols.components import Progress, Splitter, silent
from polyad.text.files import write_atomically
from polyad.text.keys import build_entity_key
from polyad.text.words import count_words, normalize_words
from polyad_bench.files import make_folder

KNOWN_ITEM, TWO_HOP = "known-item", "two-hop"

_MIN_WORDS, _MAX_WORDS = 8, 40
"""Length of sentences that become questions."""

_MIN_CONTENT_WORDS = 5
"""Content words that a question must contain."""

_OMITTED_SHARE = 1 / 2
"""Share of the content words that a known item omits."""

_GAP = "___"
_WORD = re.compile(r"\w[\w'\u2019-]*")
_TABLE_SEPARATOR = "|"
"""Separates the cells of tables, whose rows are no sentences."""


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question generated from an index, with the ids of the passages that are relevant to the question.

    Attributes:
        kind: :data:`KNOWN_ITEM`, :data:`TWO_HOP`, or the kind of a written question.
        text: Text of the question.
        gold: Ids of the passages; for two hops the passage of the sentence and the passage about the omitted name.
        answers: The omitted name; empty for a known item.
        evidence: Statements that support the answer, if they are known.
    """

    kind: str
    text: str
    gold: tuple[str, ...]
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions generated from an index, with all passages of this index."""

    passages: Sequence[Passage]
    questions: Sequence[GeneratedQuestion]


def generate_questions(
    engine: Engine, count: int, seed: int = 0, splitter: Splitter | None = None, progress: Progress = silent
) -> QuestionSet:
    """Return questions for evaluation that are generated from the passages of an index, without a language model.

    The kinds are known-item questions (find this sentence) and two-hop questions (find the passage about a name that is
    left out of a sentence).

    Args:
        engine: Engine of the index.
        count: Number of questions of each kind; fewer if the index has too few suitable sentences.
        seed: Seed of the sample.
        splitter: Splits passages into sentences; by default the splitter for English.
        progress: Called after each hyperedge that is read.

    Raises:
        ConfigurationError: the index has no suitable sentence.
    """
    passages, names = _read_index(engine, progress)
    sentences = _find_unique_sentences(passages, splitter or SentenceSplitter())
    known_items = _select_distinct(_generate_known_items(sentences, random.Random(f"{seed}:{KNOWN_ITEM}")), count)
    two_hop = _select_distinct(_generate_two_hop(sentences, names, random.Random(f"{seed}:{TWO_HOP}")), count)
    if not known_items and not two_hop:
        raise ConfigurationError(
            f"no question can be made of {len(passages):,} passages: expected sentences of {_MIN_WORDS} words or more "
            "that stand in one of them alone"
        )
    return QuestionSet(passages, [*known_items, *two_hop])


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: Passage
    text: str


@dataclass(frozen=True, slots=True)
class _EntityNames:
    """The entity names in each passage of an index, and the passages that are about each entity.

    Attributes:
        by_passage: Entity name by passage id and entity key.
        passages_about: Strength (certainty) by entity key and id of a passage whose subject is the entity.
    """

    by_passage: dict[str, dict[str, str]]
    passages_about: dict[str, dict[str, float]]

    def get_main_passages(self, entity_key: str) -> list[str]:
        """Return the ids of passages that are about an entity according to their title or a definition."""
        return [passage for passage, strength in self.passages_about.get(entity_key, {}).items() if strength == STRONG]


def _read_index(engine: Engine, progress: Progress) -> tuple[list[Passage], _EntityNames]:
    """Return all passages of an index, sorted by id, and which entities each passage names and is about."""
    by_passage: dict[str, dict[str, str]] = defaultdict(dict)
    passages_about: dict[str, dict[str, float]] = defaultdict(dict)
    hyperedges = engine.catalogue.hyperedges()
    for number, hyperedge in enumerate(hyperedges, 1):
        id = hyperedge.passage_id
        for incidence in engine.catalogue.hyperedge(hyperedge.id)[1]:
            by_passage[id].setdefault(incidence.entity_key, incidence.name)
            if incidence.role == SUBJECT:
                strengths = passages_about[incidence.entity_key]
                strengths[id] = max(incidence.strength, strengths.get(id, 0.0))
        progress(number, len(hyperedges), "hyperedges")
    ids = sorted({hyperedge.passage_id for hyperedge in hyperedges})
    return [engine.catalogue.passage(id) for id in ids], _EntityNames(dict(by_passage), dict(passages_about))


def _find_unique_sentences(passages: Sequence[Passage], splitter: Splitter) -> list[_Sentence]:
    """Return the sentences of 8 to 40 words that occur in only one of the passages."""
    sentences = [
        _Sentence(passage, " ".join(span.of(passage.text).split()))
        for passage in passages
        for span in splitter.sentences(passage.text)
    ]
    passage_ids: dict[str, set[str]] = defaultdict(set)
    for sentence in sentences:
        passage_ids[_normalize(sentence.text)].add(sentence.passage.id)
    return [
        sentence
        for sentence in sentences
        if _MIN_WORDS <= count_words(sentence.text) <= _MAX_WORDS
        and _TABLE_SEPARATOR not in sentence.text
        and len(passage_ids[_normalize(sentence.text)]) == 1
    ]


def _normalize(text: str) -> str:
    return " ".join(normalize_words(text))


def _generate_known_items(sentences: Sequence[_Sentence], generator: random.Random) -> Iterator[GeneratedQuestion]:
    for sentence in generator.sample(sentences, len(sentences)):
        words = _find_content_words(sentence.text)
        if len(words) < _MIN_CONTENT_WORDS + 1:
            continue
        count = min(len(words) - _MIN_CONTENT_WORDS, round(_OMITTED_SHARE * len(words)))
        omitted = set(generator.sample(range(len(words)), count))
        gaps = [match.span() for number, match in enumerate(words) if number in omitted]
        text = f'Where is this said: "{_insert_gaps(sentence.text, gaps)}"'
        yield GeneratedQuestion(KNOWN_ITEM, text, (sentence.passage.id,))


def _generate_two_hop(
    sentences: Sequence[_Sentence], names: _EntityNames, generator: random.Random
) -> Iterator[GeneratedQuestion]:
    for sentence in generator.sample(sentences, len(sentences)):
        candidates = sorted(names.by_passage[sentence.passage.id].items())
        bridges = [(key, name) for key, name in candidates if _is_bridge(key, sentence, names)]
        for key, name in generator.sample(bridges, len(bridges)):
            matches = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sentence.text, re.IGNORECASE)
            text = _insert_gaps(sentence.text, [match.span() for match in matches])
            if _GAP in text and len(_find_content_words(text)) >= _MIN_CONTENT_WORDS and key not in _normalize(text):
                gold = (sentence.passage.id, names.get_main_passages(key)[0])
                yield GeneratedQuestion(TWO_HOP, f'What else is said of the one left out here: "{text}"', gold, (name,))
                break


def _is_bridge(entity_key: str, sentence: _Sentence, names: _EntityNames) -> bool:
    """Return whether an entity in ``sentence`` leads to a second passage: exactly one other passage is about it.

    A two-hop question leaves out the name of such an entity. The sentence's own passage and its title must not be about
    the entity.
    """
    is_about_itself = sentence.passage.id in names.passages_about.get(entity_key, {})
    return (
        not is_about_itself
        and entity_key not in build_entity_key(sentence.passage.title)
        and len(names.get_main_passages(entity_key)) == 1
    )


def _find_content_words(text: str) -> list[re.Match[str]]:
    """Return a regular-expression match for each word in a text that is not a stop word."""
    return [match for match in _WORD.finditer(text) if build_entity_key(match[0])]


def _insert_gaps(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with ``___`` in place of each character span in ``spans``; adjacent gaps become one."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [text[end:start], _GAP]
        end = stop
    text = "".join([*parts, text[end:]])
    return re.sub(rf"{_GAP}(?:\s+{_GAP})+", _GAP, text)


def _select_distinct(questions: Iterator[GeneratedQuestion], count: int) -> list[GeneratedQuestion]:
    """Return the first ``count`` questions that differ in their words and in their gold (relevant) passages.

    At most two questions share the last gold passage.
    """
    selected: dict[str, GeneratedQuestion] = {}
    evidence: set[tuple[str, ...]] = set()
    last_passages: Counter[str] = Counter()
    for question in questions:
        if len(selected) == count:
            break
        normalized, last = _normalize(question.text), question.gold[-1]
        if normalized in selected or question.gold in evidence or last_passages[last] == 2:
            continue
        selected[normalized] = question
        evidence.add(question.gold)
        last_passages[last] += 1
    return list(selected.values())


def write_question_set(question_set: QuestionSet, folder: Path) -> None:
    """Write questions as a data set in BEIR format, in which each passage is a document, to a folder.

    Raises:
        ConfigurationError: the folder cannot be written, or holds a data set.
    """
    if (folder / "qrels" / "test.tsv").exists():
        raise ConfigurationError(f"{str(folder)!r} holds a data set already; give another folder")
    make_folder(folder / "qrels")
    _write_lines(
        folder / "corpus.jsonl",
        ({"_id": passage.id, "title": passage.title, "text": passage.text} for passage in question_set.passages),
    )
    queries, judgements = [], ["query-id\tcorpus-id\tscore\n"]
    for number, question in enumerate(question_set.questions, 1):
        id = f"{question.kind}-{number:04}"
        metadata: dict[str, object] = {"type": question.kind, "answers": list(question.answers)}
        if question.evidence:
            metadata["evidence"] = list(question.evidence)
        queries.append({"_id": id, "text": question.text, "metadata": metadata})
        judgements += [f"{id}\t{passage}\t1\n" for passage in question.gold]
    _write_lines(folder / "queries.jsonl", queries)
    write_atomically(folder / "qrels" / "test.tsv", "".join(judgements))


def _write_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    write_atomically(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
