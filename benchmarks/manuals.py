"""Rank of the evidence in real manuals: PDF, HTML, Word, Markdown and text.

    python benchmarks/manuals/fetch.py FOLDER
    python benchmarks/manuals.py FOLDER [--weights WEIGHTS] [--retrievers NAMES] [--limit N] [--store DIR] [--json FILE]
    python benchmarks/manuals.py FOLDER --check

The questions of ``manuals/questions.jsonl`` were written from the manuals, before any retriever was asked. Each names
the sentences that answer it. A sentence is found where it stands whole in a hit, whichever file that is from; all of
them must stand in the first so many words of the text returned. Questions about files that are not in the folder are
left out. The weights that come with polyad were trained on these questions too: with ``--weights``, those that
``default_training.py --unseen`` kept, each question is asked with weights that saw none about its manual. The baseline
beside the retrievers joins BM25 and dense vectors by reciprocal ranks, on the same passages and on plain pieces of 200
words. ``unanswerable.jsonl`` holds questions that the manuals do not answer: how well the best
hit's relevance (or else score) tells them apart is the area under the curve, 0.5 for not at all, and the share of them
that are refused where one in twenty of the others is. ``--check`` only reads the folder, and says which evidence it
does not hold and which absent words it does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from measured_rows import write_rows
from sentence_evidence import (
    contains_all_evidence,
    contains_sentence,
    evidence_reciprocal_rank,
    normalize_texts,
)

from polyad import Engine
from polyad.config import ReadSettings, SplitSettings
from polyad.engine.settings import Settings
from polyad.indexing.segmentation import SegmentationSettings
from polyad.model import Document, ScoredPassage
from polyad.readers.folder.files import FileReader
from polyad.retrieval.default.retriever import DefaultSettings

QUESTIONS = Path(__file__).parent / "manuals"
K = 20
BUDGETS = (300, 600, 1200)
CHUNK = 200
SHARED = 20
FUSED = "bm25+dense"
DEPTH = 50
DAMPING = 60
FALSE_REFUSALS = 0.05
PARTS = 6
"""That the manuals are divided into: there are too few questions about one to be a set of its own."""
WHOLE = Settings(
    split=SplitSettings(passage_tokens=2000), segmentation=SegmentationSettings(method="window", window=10_000)
)
"""For plain pieces: each one passage and one hyperedge, which are embedded once."""


class Place(NamedTuple):
    """The location of a sentence: file, and page if the file has pages."""

    file: str
    text: str
    page: int | None


class Question(NamedTuple):
    """A question with the sentences that together answer it, or with words that its documents lack."""

    id: str
    text: str
    type: str
    evidence: Sequence[Place] = ()
    absent: Sequence[str] = ()
    absent_in: Sequence[str] = ()

    @property
    def manual(self) -> str:
        """Return the manual: the folder of the evidence, or of the documents without the words."""
        return self.evidence[0].file.split("/")[0] if self.evidence else next(iter(self.absent_in), "")

    @property
    def sentences(self) -> list[str]:
        """Return the evidence sentences."""
        return [place.text for place in self.evidence]


Search = Callable[[str], Sequence[ScoredPassage]]


def main() -> None:
    """Index the folder, ask every question and print a row for each retriever."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--weights", type=Path, help="where default_training.py put the unseen ones")
    parser.add_argument("--retrievers", default=f"default,bm25,dense,hypersu,{FUSED}")
    parser.add_argument("--limit", type=int, help="only the first so many questions of each kind")
    parser.add_argument("--store", type=Path, help="keep the indexes here for the next run")
    parser.add_argument("--json", type=Path, help="save the results here")
    parser.add_argument("--check", action="store_true", help="only check the questions against the folder")
    arguments = parser.parse_args()
    documents = load_documents(arguments.folder)
    questions = select_questions(documents)
    unanswerable = list(read("unanswerable.jsonl"))
    if arguments.check:
        check(documents, [*questions, *unanswerable])
        return
    questions, unanswerable = questions[: arguments.limit], unanswerable[: arguments.limit]
    print(f"{len(documents)} files, {len(questions)} questions, {len(unanswerable)} unanswerable", flush=True)
    rows = []
    question = [*questions, *unanswerable] if arguments.weights else []
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        stores = arguments.store or Path(temporary)
        for corpus, searches in build_searches(stores, documents, arguments.retrievers.split(",")):
            if corpus == "files" and question:
                searches = {**searches, "default": unseen(stack, stores, arguments.weights, question)}
            for name, search in searches.items():
                row = {"corpus": corpus, "retriever": name, **measured(search, questions, unanswerable)}
                rows.append(row)
                print(f"{corpus:6} {name:14} " + " ".join(f"{key} {format_share(row[key])}" for key in list(row)[2:-1]))
    if arguments.json:
        write_rows(arguments.json, rows)


def load_documents(folder: Path) -> dict[str, Document]:
    """Return the documents of the folder by the names that the questions use."""
    read = FileReader(ReadSettings()).read([folder])
    return {Path(each.id).relative_to(folder).as_posix(): each for each in read if isinstance(each, Document)}


def select_questions(documents: Container[str]) -> list[Question]:
    """Return the questions that the available files answer."""
    return [q for q in read("questions.jsonl") if all(place.file in documents for place in q.evidence)]


def get_parts(questions: Sequence[Question]) -> list[str]:
    """Return the part of each question; questions about one manual share a part."""
    return [f"part {crc32(question.manual.encode()) % PARTS + 1}" for question in questions]


def read(name: str) -> Iterator[Question]:
    """Return the questions of a file beside this script."""
    for line in (QUESTIONS / name).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        metadata = record["metadata"]
        places = [Place(**place) for place in record.get("evidence", [])]
        absent, where = metadata.get("absent", []), metadata.get("in", [])
        yield Question(record["_id"], record["text"], metadata["type"], places, absent, where)


def check(documents: Mapping[str, Document], questions: Sequence[Question]) -> None:
    """Print evidence sentences that are missing in their file, and absent words that are present."""
    texts = {name: normalize_texts([document.text]) for name, document in documents.items()}
    for question in questions:
        for place in question.evidence:
            if not contains_sentence(place.text, texts[place.file]):
                print(f"{question.id}: not in {place.file}: {place.text}")
        for name, text in texts.items():
            if not question.absent_in or name.split("/")[0] in question.absent_in:
                for words in question.absent:
                    if contains_sentence(words, text):
                        print(f"{question.id}: {words!r} stands in {name}")
    print(f"{len(questions)} questions checked against {len(texts)} files")


def build_searches(
    stores: Path, documents: Mapping[str, Document], retrievers: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Search]]]:
    """Yield the retrievers over the files, then the baseline over fixed-size chunks, while their index is open."""
    with Engine.open(stores / "manuals-files", settings=Settings()) as engine:
        engine.index_documents(documents.values())
        yield "files", {name: build_search(engine, name) for name in retrievers}
    with Engine.open(stores / "manuals-chunks", settings=WHOLE) as engine:
        engine.index_documents([chunk for document in documents.values() for chunk in chunks(document)])
        yield "chunks", {FUSED: build_search(engine, FUSED)}


def unseen(stack: ExitStack, stores: Path, weights: Path, questions: Sequence[Question]) -> Search:
    """Return a search by ``default`` whose weights never saw the manual of the question."""
    engines = {
        path.stem: stack.enter_context(
            Engine.open(stores / "manuals-files", settings=Settings(default=DefaultSettings(weights=str(path))))
        )
        for path in sorted((weights / "manuals").glob("*.tsv"))
    }
    parts = {question.text: part for question, part in zip(questions, get_parts(questions), strict=True)}
    return lambda question: build_search(engines[parts[question]], "default")(question)


def chunks(document: Document) -> Iterator[Document]:
    """Split a document into untitled chunks of fixed size, as separate documents."""
    words = document.text.split()
    for first in range(0, max(len(words) - SHARED, 1), CHUNK - SHARED):
        yield Document(f"{document.id} {first}", "", " ".join(words[first : first + CHUNK]))


def build_search(engine: Engine, retriever: str) -> Search:
    """Return the search function of a retriever or of the baseline."""
    if retriever == FUSED:
        return lambda question: fuse(engine, question)
    return lambda question: engine.search(question, K, retriever=retriever, merge=False).passages


def fuse(engine: Engine, question: str, k: int = K) -> list[ScoredPassage]:
    """Fuse dense and BM25 rankings by reciprocal ranks."""
    scores: dict[str, float] = {}
    hits: dict[str, ScoredPassage] = {}
    for retriever in FUSED.split("+"):
        for rank, hit in enumerate(engine.search(question, DEPTH, retriever=retriever, merge=False).passages, 1):
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + 1 / (DAMPING + rank)
            hits[hit.passage.id] = ScoredPassage(hit.passage, scores[hit.passage.id])
    return sorted(hits.values(), key=lambda hit: (-hit.score, hit.passage.id))[:k]


def measured(search: Search, questions: Sequence[Question], unanswerable: Sequence[Question]) -> dict[str, object]:
    """Return the measures of a retriever over all questions, and by question type under ``types``."""
    answered = [search(question.text) for question in questions]
    each = [measures(question, hits) for question, hits in zip(questions, answered, strict=True)]
    others = [search(question.text) for question in unanswerable]
    types = {
        type: means([one for one, question in zip(each, questions, strict=True) if question.type == type])
        for type in sorted({question.type for question in questions})
    }
    sure, unsure = [best(hits) for hits in answered], [best(hits) for hits in others]
    apart = {"told apart": compute_roc_auc(sure, unsure), "refused": refused(sure, unsure)}
    return {**means(each), **apart, "types": types}


def measures(question: Question, hits: Sequence[ScoredPassage]) -> dict[str, float | None]:
    """Return the measures of one question; None for measures that do not apply."""
    texts = [hit.passage.text for hit in hits]
    rank = evidence_reciprocal_rank(question.sentences, texts)
    result: dict[str, float | None] = {"top 1": float(rank == 1), "top 3": float(rank >= 1 / 3), "MRR": rank}
    for budget in BUDGETS:
        result[f"{budget} words"] = contains_all_evidence(question.sentences, normalize_texts(texts, budget))
    result["pages"] = has_right_page(question, hits)
    return result


def has_right_page(question: Question, hits: Sequence[ScoredPassage]) -> float | None:
    """Return 1 if the first PDF hit with evidence names its page, or the page before, otherwise 0.

    None where no evidence of a PDF was found in its file.
    """
    for hit in hits:
        text = normalize_texts([hit.passage.text])
        for place in question.evidence:
            if place.page and hit.passage.document_id.endswith(place.file) and contains_sentence(place.text, text):
                return float(hit.passage.page in (place.page, place.page - 1))
    return None


def means(each: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each measure over the questions that the measure applies to."""
    result: dict[str, float | None] = {}
    for name in each[0]:
        values = [value for one in each if (value := one[name]) is not None]
        result[name] = statistics.fmean(values) if values else None
    return result


def best(hits: Sequence[ScoredPassage]) -> float:
    """Return the relevance, or the score, of the best hit."""
    if not hits:
        return 0.0
    return hits[0].score if hits[0].relevance is None else hits[0].relevance


def compute_roc_auc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Return the area under the ROC curve; None if one class is empty."""
    pairs = [(one > other) + (one == other) / 2 for one in higher for other in lower]
    return statistics.fmean(pairs) if pairs else None


def refused(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Return the share of unanswerable questions below a threshold that refuses at most :data:`FALSE_REFUSALS`.

    >>> refused([0.1, *[0.5] * 19], [0.05, 0.3, 0.5, 0.9])
    0.5
    """
    if not higher or not lower:
        return None
    limit = sorted(higher)[int(FALSE_REFUSALS * len(higher))]
    return statistics.fmean(one < limit for one in lower)


def format_share(value: object) -> str:
    """Format a share in per cent."""
    return f"{100 * value:5.1f}" if isinstance(value, float) else "    -"


if __name__ == "__main__":
    main()
