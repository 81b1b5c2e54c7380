"""Share of indexing time outside the embedder, and cost per megabyte of each kind of file.

    python benchmarks/indexing.py BEIR_DIR [--runs 3] [--json FILE]
    python benchmarks/indexing.py --kinds FOLDER... [--megabytes 0.3] [--embedder NAME] [--json FILE]

Everything beside the encoder (reading, splitting, mentions, segmentation, the store) should add at most 15 %.

With ``--kinds``, files of each kind are taken from the folders, and of a kind that they lack made from their pages
(by pandoc, where it is not Python's own or a package that polyad reads with). Each kind is indexed in a process of its
own. Seconds are the processor's, of all threads; those of reading are for a megabyte of file, the others for one of
the text in it. Memory is the most that the process held, and what of it was there before the first file was read:
Python, the libraries and the model.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from email.message import EmailMessage
from functools import wraps
from pathlib import Path
from typing import Any

import openpyxl

from polyad import Engine
from polyad.engine.loaders import DEFAULT_EMBEDDER, load_embedder
from polyad.indexing.indexer import Indexer
from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.indexing.segmentation import SegmentationSettings
from polyad.indexing.semantic_units import SemanticUnitBuilder
from polyad.indexing.split import SentenceSplitter
from polyad.model import Document, Failure, FloatArray
from polyad.protocols.components import Embedder, TextKind, silent
from polyad.protocols.store import Manifest
from polyad.readers.folder.files import FileReader
from polyad.stores.sqlite import SqliteStore
from polyad_bench.datasets.beir import load_beir

KINDS = ("txt", "md", "html", "pdf", "docx", "xlsx", "pptx", "epub", "odt", "rst", "eml", "csv", "jsonl", "py")
RECORDS = ("csv", "jsonl")
"""Always made: what the folders have of them may be of any fields."""

BY_PANDOC = ("md", "docx", "pptx", "epub", "odt", "rst")
"""What it makes of a web page, or of plain text, which it takes for Markdown."""

PAGES = ("html", "txt")
"""What other kinds are made from, the first that there is."""

STAGES = ("reading", "splitting", "segmenting", "encoding", "writing")
MEGABYTE = 1_000_000


def main() -> None:
    """Run one of the three modes; ``--kind`` is the mode of the processes that ``--kinds`` starts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", action="store_true", help="what a megabyte of each kind of file takes")
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--megabytes", type=float, default=0.3, help="of text, about, of each kind")
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    results: object
    if arguments.kind:
        print(json.dumps(measured(arguments.folders, arguments.embedder)))
        return
    if arguments.kinds:
        results = kinds(arguments.folders, arguments.megabytes, arguments.embedder)
    else:
        results = runs(arguments.folders[0], arguments.runs)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def runs(folder: Path, count: int) -> list[dict[str, float]]:
    """Index the corpus several times and print the median share."""
    results = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as directory, Engine.open(directory) as engine:
            report = engine.index([load_beir(folder).corpus])
            again = engine.index([load_beir(folder).corpus])
        results.append(
            {
                "seconds": report.seconds,
                "encode_seconds": report.encode_seconds,
                "overhead": report.seconds / report.encode_seconds - 1,
                "embedded_texts": report.embedded_texts,
                "embedded_again": again.embedded_texts,
                "seconds_again": again.seconds,
            }
        )
        print(", ".join(f"{name} {value:.3g}" for name, value in results[-1].items()), flush=True)
    overhead = statistics.median(run["overhead"] for run in results)
    print(f"median overhead beyond the encoder: {100 * overhead:.1f} %")
    return results


def kinds(folders: Sequence[Path], megabytes: float, embedder: str) -> dict[str, dict[str, float]]:
    """Measure each kind of file and print a row for it."""
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        for kind in KINDS:
            files = select_files(folders, kind, megabytes) or write_copies(
                folders, kind, megabytes, Path(temporary) / kind
            )
            if not files:
                print(f"{kind:6} left out: there is none, and no pandoc to make it or nothing to make it from")
                continue
            command = [sys.executable, __file__, "--kind", kind, "--embedder", embedder, *map(str, files)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            results[kind] = json.loads(output.splitlines()[-1])
            print(f"{kind:6} " + ", ".join(f"{name} {value:.3g}" for name, value in results[kind].items()), flush=True)
    return results


def select_files(folders: Sequence[Path], kind: str, megabytes: float) -> list[Path]:
    """Return files of a kind with about this amount of text, sorted by name.

    If all files are larger, return the smallest.

    How much text is in a file is known when it is read, so each that is looked at is.
    """
    files = [] if kind in RECORDS else sorted(file for folder in folders for file in folder.rglob(f"*.{kind}"))
    if kind == "py" and not files:
        files = sorted(Path(sys.modules["polyad"].__path__[0]).rglob("*.py"))
    texts: list[tuple[int, Path]] = []
    for file in files:
        if file.stat().st_size <= 30 * megabytes * MEGABYTE:
            texts.append((sum(len(each.text) for each in documents([file])), file))
        if sum(length for length, _ in texts if length <= megabytes * MEGABYTE) >= megabytes * MEGABYTE:
            break
    fitting = [file for length, file in texts if 0 < length <= megabytes * MEGABYTE]
    return fitting or [min(texts)[1]] if texts else []


def write_copies(folders: Sequence[Path], kind: str, megabytes: float, target: Path) -> list[Path]:
    """Write files of a kind, each from a page or a text of the folders."""
    sources = next((result for page in PAGES if (result := select_files(folders, page, megabytes))), [])
    if kind in BY_PANDOC and not shutil.which("pandoc"):
        return []
    target.mkdir()
    files = []
    for number, source in enumerate(sources):
        files.append(target / f"{number:03}.{kind}")
        if kind in BY_PANDOC:
            form = "html" if source.suffix == ".html" else "markdown"
            subprocess.run(["pandoc", "--quiet", "-f", form, str(source), "-o", str(files[-1])], check=True)
        else:
            write(list(documents([source])), files[-1])
    return files


def write(results: Sequence[Document], file: Path) -> None:
    """Write a file in the format of its name, with a row or record per paragraph, or one message."""
    rows = [
        [document.title, paragraph.strip()]
        for document in results
        for paragraph in document.text.split("\n\n")
        if paragraph.strip()
    ]
    if file.suffix == ".xlsx":
        book = openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("Text")
        for row in [["title", "text"], *rows]:
            sheet.append([openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub(" ", cell) for cell in row])
        book.save(file)
    elif file.suffix == ".csv":
        with file.open("w", encoding="utf-8", newline="") as lines:
            csv.writer(lines).writerows([["title", "text"], *rows])
    elif file.suffix == ".jsonl":
        records = [{"_id": f"{file.stem}-{n}", "title": title, "text": text} for n, (title, text) in enumerate(rows)]
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    else:
        message = EmailMessage()
        message["Subject"] = " ".join(results[0].title.split())
        message.set_content("\n\n".join(document.text for document in results))
        file.write_bytes(message.as_bytes())


def documents(files: Iterable[Path]) -> list[Document]:
    """Return the documents of files. Raise RuntimeError if a file cannot be read."""
    results = []
    for item in FileReader().read(files):
        if isinstance(item, Failure):
            raise RuntimeError(f"{item.id}: {item.reason}")
        results.append(item)
    return results


class Timed:
    """Forwards calls to a stage and adds the processor time of its methods to an account."""

    def __init__(self, stage: object, name: str, account: dict[str, float]) -> None:
        self._stage = stage
        self._name = name
        self._account = account

    def __getattr__(self, name: str) -> Any:  # whatever the stage has
        value = getattr(self._stage, name)
        if not callable(value):
            return value

        @wraps(value)
        def timed(*arguments: object, **options: object) -> object:
            started = time.process_time()
            try:
                return value(*arguments, **options)
            finally:
                self._account[self._name] += time.process_time() - started

        return timed


class Recorded:
    """An embedder that counts the embedded tokens."""

    def __init__(self, embedder: Embedder, splitter: SentenceSplitter) -> None:
        self._embedder = embedder
        self._splitter = splitter
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.tokens = 0

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Embed texts."""
        self.tokens += sum(map(self._splitter.count_tokens, texts))
        return self._embedder.encode(texts, kind)


def measured(files: Sequence[Path], embedder: str) -> Mapping[str, float]:
    """Index files in this process and return time per stage and megabyte, memory, and embedded tokens."""
    splitter = SentenceSplitter()
    model = Recorded(load_embedder(embedder), splitter)
    model.encode(["Loads what is loaded at the first call."], "query")
    model.tokens = 0
    loaded = peak_memory()
    seconds = dict.fromkeys(STAGES, 0.0)
    started = time.process_time()
    results = documents(files)
    seconds["reading"] = time.process_time() - started
    builder = SemanticUnitBuilder(splitter, RuleMentionExtractor(), model, SegmentationSettings())
    with tempfile.TemporaryDirectory() as folder:
        with closing(SqliteStore.open(Path(folder), Manifest(model.name, model.dimension, "rules"))) as store:
            stages: list[Any] = [
                Timed(stage, name, seconds)
                for stage, name in (
                    (store, "writing"),
                    (model, "encoding"),
                    (splitter, "splitting"),
                    (builder, "segmenting"),
                )
            ]
            counts = Indexer(*stages).index(results, silent)
            with store.read_transaction() as transaction:
                passages = [text for rows in transaction.rows(transaction.changes().documents) for text in rows.texts]
        if counts.failures:
            raise RuntimeError(f"not indexed: {counts.failures}")
    in_files = sum(file.stat().st_size for file in files) / MEGABYTE
    in_text = sum(len(document.text.encode()) for document in results) / MEGABYTE
    return {
        "files": len(files),
        "MB": in_files,
        "text/MB": in_text / in_files,
        **{f"{stage} s": seconds[stage] / (in_files if stage == "reading" else in_text) for stage in STAGES},
        "peak MB": peak_memory(),
        "loaded MB": loaded,
        "embedded/passage tokens": model.tokens / sum(map(splitter.count_tokens, passages)),
    }


def peak_memory() -> float:
    """Return the peak memory of this process in megabytes. Without /proc, a larger peak of the parent is returned."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / MEGABYTE
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / MEGABYTE if sys.platform == "darwin" else used * 1024 / MEGABYTE


if __name__ == "__main__":
    main()
