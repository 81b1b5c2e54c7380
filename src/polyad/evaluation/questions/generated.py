"""Questions with known evidence from any index, made without a model: to measure retrievers on one's own documents.

Known items: somebody remembers half of a sentence and looks for the passage that says it, as in the simulated queries
of Azzopardi, de Rijke and Balog (2007). Two hops: a sentence with a name taken out of it, and what the documents say
elsewhere of whoever is named there; found by who knows that names lead to the passages about them. Both share more
words with their evidence than what people ask: they rank retrievers on these documents, and their numbers say nothing
beside those of other data sets.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from polyad.engine import Engine
from polyad.errors import ConfigurationError
from polyad.indexing.split import SentenceSplitter
from polyad.indexing.subjects import STRONG
from polyad.model import SUBJECT, Passage
from polyad.protocols.components import Progress, Splitter, silent
from polyad.text.counting import count_words, terms
from polyad.text.files import write_atomically
from polyad.text.keys import entity_key

KNOWN_ITEM, TWO_HOP = "known-item", "two-hop"

_SHORTEST, _LONGEST = 8, 40
"""Words of a sentence that is made into a question."""

_TELLING = 5
"""Words that name something, which must be left when others are taken out."""

_LEFT_OUT = 1 / 2
"""Of the telling words of a known item."""

_GAP = "___"
_WORD = re.compile(r"\w[\w'\u2019-]*")
_CELL = "|"
"""Between the cells of a table, whose rows are no sentences."""


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question, and the passages that hold its evidence.

    Attributes:
        kind: :data:`KNOWN_ITEM` or :data:`TWO_HOP`.
        text: As it is asked.
        gold: Ids of passages: one for a known item; for two hops where the name stands, and what is about it.
        answers: The name that was taken out; none for a known item.
        evidence: Statements that the answer rests on, where they are known.
    """

    kind: str
    text: str
    gold: tuple[str, ...]
    answers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Passages, and questions on them."""

    passages: Sequence[Passage]
    questions: Sequence[GeneratedQuestion]


def generate_questions(
    engine: Engine, count: int, seed: int = 0, splitter: Splitter | None = None, progress: Progress = silent
) -> QuestionSet:
    """Make questions from an index.

    Args:
        engine: On the index.
        count: How many of each kind; fewer where it does not hold as many.
        seed: Others for each.
        splitter: Finds sentences; by default those of English.
        progress: Told of the hyperedges looked at.

    Raises:
        ConfigurationError: no question can be made of what is in it.
    """
    passages, names = _read(engine, progress)
    sentences = _unique_sentences(passages, splitter or SentenceSplitter())
    known = _chosen(_known_items(sentences, random.Random(f"{seed}:{KNOWN_ITEM}")), count)
    two_hop = _chosen(_two_hops(sentences, names, random.Random(f"{seed}:{TWO_HOP}")), count)
    if not known and not two_hop:
        raise ConfigurationError(
            f"no question can be made of {len(passages):,} passages: expected sentences of {_SHORTEST} words or more "
            "that stand in one of them alone"
        )
    return QuestionSet(passages, [*known, *two_hop])


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: Passage
    text: str


@dataclass(frozen=True, slots=True)
class _Names:
    """Names by passage, as they are written there; and by key the passages about each, with how surely they are."""

    named: dict[str, dict[str, str]]
    about: dict[str, dict[str, float]]


def _read(engine: Engine, progress: Progress) -> tuple[list[Passage], _Names]:
    """The passages of an index, sorted by id, and the names in them."""
    named: dict[str, dict[str, str]] = defaultdict(dict)
    about: dict[str, dict[str, float]] = defaultdict(dict)
    edges = engine.catalogue.hyperedges()
    for done, edge in enumerate(edges, 1):
        for incidence in engine.catalogue.hyperedge(edge.id)[1]:
            named[edge.passage_id].setdefault(incidence.entity_key, incidence.name)
            if incidence.role == SUBJECT:
                surely = about[incidence.entity_key]
                surely[edge.passage_id] = max(incidence.strength, surely.get(edge.passage_id, 0.0))
        progress(done, len(edges), "hyperedges")
    ids = sorted({edge.passage_id for edge in edges})
    return [engine.catalogue.passage(id) for id in ids], _Names(dict(named), dict(about))


def _unique_sentences(passages: Sequence[Passage], splitter: Splitter) -> list[_Sentence]:
    """Sentences of a length that can be asked for, each of which stands in one passage alone."""
    found = [
        _Sentence(passage, " ".join(span.of(passage.text).split()))
        for passage in passages
        for span in splitter.sentences(passage.text)
    ]
    places: dict[str, set[str]] = defaultdict(set)
    for sentence in found:
        places[_essence(sentence.text)].add(sentence.passage.id)
    return [
        sentence
        for sentence in found
        if _SHORTEST <= count_words(sentence.text) <= _LONGEST
        and _CELL not in sentence.text
        and len(places[_essence(sentence.text)]) == 1
    ]


def _essence(text: str) -> str:
    return " ".join(terms(text))


def _known_items(sentences: Sequence[_Sentence], chooser: random.Random) -> Iterator[GeneratedQuestion]:
    for sentence in chooser.sample(sentences, len(sentences)):
        telling = _telling(sentence.text)
        if len(telling) < _TELLING + 1:
            continue
        out = set(chooser.sample(range(len(telling)), min(len(telling) - _TELLING, round(_LEFT_OUT * len(telling)))))
        gaps = [match.span() for place, match in enumerate(telling) if place in out]
        yield GeneratedQuestion(
            KNOWN_ITEM, f'Where is this said: "{_without(sentence.text, gaps)}"', (sentence.passage.id,)
        )


def _two_hops(sentences: Sequence[_Sentence], names: _Names, chooser: random.Random) -> Iterator[GeneratedQuestion]:
    for sentence in chooser.sample(sentences, len(sentences)):
        named = sorted(names.named[sentence.passage.id].items())
        bridges = [(key, name) for key, name in named if _is_bridge(key, sentence, names)]
        for key, name in chooser.sample(bridges, len(bridges)):
            places = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", sentence.text, re.IGNORECASE)
            text = _without(sentence.text, [place.span() for place in places])
            if _GAP in text and len(_telling(text)) >= _TELLING and key not in _essence(text):
                other = _surely_about(key, names)[0]
                question = f'What else is said of the one left out here: "{text}"'
                yield GeneratedQuestion(TWO_HOP, question, (sentence.passage.id, other), (name,))
                break


def _is_bridge(key: str, sentence: _Sentence, names: _Names) -> bool:
    """Whether a name leads to exactly one passage that is surely about it, from a passage of another title."""
    is_other = sentence.passage.id not in names.about.get(key, {}) and key not in entity_key(sentence.passage.title)
    return is_other and len(_surely_about(key, names)) == 1


def _surely_about(key: str, names: _Names) -> list[str]:
    return [passage for passage, strength in names.about.get(key, {}).items() if strength == STRONG]


def _telling(text: str) -> list[re.Match[str]]:
    """The words that name something."""
    return [match for match in _WORD.finditer(text) if entity_key(match[0])]


def _without(text: str, gaps: Iterable[tuple[int, int]]) -> str:
    """The text with a gap for each of some spans; neighbours share one."""
    parts, end = [], 0
    for start, stop in gaps:
        parts += [text[end:start], _GAP]
        end = stop
    text = "".join([*parts, text[end:]])
    return re.sub(rf"{_GAP}(?:\s+{_GAP})+", _GAP, text)


def _chosen(questions: Iterator[GeneratedQuestion], count: int) -> list[GeneratedQuestion]:
    """The first questions of those that differ in words and in evidence; at most two end in the same passage."""
    chosen: dict[str, GeneratedQuestion] = {}
    evidence: set[tuple[str, ...]] = set()
    ends: Counter[str] = Counter()
    for question in questions:
        if len(chosen) == count:
            break
        essence = _essence(question.text)
        if essence in chosen or question.gold in evidence or ends[question.gold[-1]] == 2:
            continue
        chosen[essence] = question
        evidence.add(question.gold)
        ends[question.gold[-1]] += 1
    return list(chosen.values())


def write_question_set(made: QuestionSet, folder: Path) -> None:
    """Write passages, questions and judgements as a BEIR folder, in which each passage is a document.

    Raises:
        ConfigurationError: the folder cannot be written, or holds something already.
    """
    if (folder / "qrels" / "test.tsv").exists():
        raise ConfigurationError(f"{str(folder)!r} holds a data set already; give another folder")
    try:
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(folder)!r}: {error.strerror}") from error
    numbered = [(f"{one.kind}-{number:04}", one) for number, one in enumerate(made.questions, 1)]
    _write_lines(
        folder / "corpus.jsonl",
        ({"_id": passage.id, "title": passage.title, "text": passage.text} for passage in made.passages),
    )
    _write_lines(
        folder / "queries.jsonl",
        (
            {"_id": id, "text": one.text, "metadata": {"type": one.kind, "answers": list(one.answers), **_stated(one)}}
            for id, one in numbered
        ),
    )
    judged = "".join(f"{id}\t{passage}\t1\n" for id, one in numbered for passage in one.gold)
    write_atomically(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{judged}")


def _stated(one: GeneratedQuestion) -> dict[str, object]:
    return {"evidence": list(one.evidence)} if one.evidence else {}


def _write_lines(path: Path, records: Iterable[dict[str, object]]) -> None:
    write_atomically(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
