"""Cost and speed of the extraction of facts.

    python benchmarks/extraction.py BEIR_DIR OPENIE.jsonl [--runs 3] [--json FILE]

Cost: the corpus is joined into documents and cut into passages of 1,200 tokens; a scripted server over HTTP counts the
requests, and the prompt tokens with the schema, for each token of the source. Speed: 500 passages of the corpus and a
server in another process that takes 200 ms for each reply, 16 at a time; the ideal is calls x 0.2 s / 16 + encoding.
Its replies hold what a language model found in these passages, so their tokens are counted too.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polyad import Engine
from polyad.config import LanguageModelSettings
from polyad.engine.settings import Settings
from polyad.indexing.facts.settings import FactSettings
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.language_models.scripted import Request, ScriptedServer
from polyad.model import Document
from polyad.text.words import count_tokens

DELAY, CONCURRENCY, PASSAGES = 0.2, 16, 500

NOTHING = {"compact": '{"facts": [], "entities": []}', "paper": "<|COMPLETE|>"}


def documents(folder: Path) -> list[Document]:
    """Return the records of the corpus."""
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    return [Document(record["_id"], record["title"], record["text"]) for record in records]


def cost(folder: Path, style: str) -> dict[str, float]:
    """Return requests per passage and prompt tokens per source token, for passages of 1,200 tokens."""
    texts = [document.text for document in documents(folder)]
    joined = [
        Document(f"part {start}", "", "\n".join(texts[start : start + 100])) for start in range(0, len(texts), 100)
    ]
    settings = Settings(facts=FactSettings(style=style))  # type: ignore[arg-type]
    requests: list[Request] = []

    def reply(request: Request) -> str:
        requests.append(request)
        return NOTHING[style]

    with ScriptedServer(reply) as server, tempfile.TemporaryDirectory() as directory:
        model = OpenAILanguageModel(LanguageModelSettings(model="m", base_url=server.base_url, api_key="none"))
        with Engine.open(directory, embedder="hashing:64", language_model=model, settings=settings) as engine:
            report = engine.index_documents(joined, method="facts")
            source = engine.catalogue.statistics().tokens
        sent = sum(
            sum(count_tokens(message["content"]) for message in request["messages"])
            + count_tokens(json.dumps(request.get("response_format", "")))
            for request in requests
        )
    return {
        "passages": report.counts.passages,
        "calls per passage": len(requests) / report.counts.passages,
        "prompt tokens per source token": sent / source,
    }


@contextmanager
def slow_server(corpus: Path, triples: Path, *options: str) -> Iterator[str]:
    """Run a scripted extractor with these options in another process and yield its address."""
    command = [sys.executable, str(Path(__file__).with_name("scripted_extractor.py")), str(corpus), str(triples)]
    with subprocess.Popen(
        [*command, *options, "--port", "0", "--delay", str(DELAY)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            address = re.search(r"http://\S+", line)
            if address is None:
                raise RuntimeError(f"the server said {line!r}; expected its address")
            yield address[0]
        finally:
            process.terminate()


def speed(folder: Path, base_url: str) -> dict[str, float]:
    """Return the seconds of one run, the ratio to the ideal time, and the time of the replies."""
    selection = documents(folder)[:PASSAGES]
    endpoint = LanguageModelSettings(model="m", base_url=base_url, api_key="none", concurrency=CONCURRENCY)
    with (
        tempfile.TemporaryDirectory() as directory,
        Engine.open(directory, language_model=OpenAILanguageModel(endpoint)) as engine,
    ):
        engine.index_documents([Document("warm", "", "What is loaded once is loaded now.")])
        report = engine.index_documents(selection, method="facts")
        source = engine.catalogue.statistics().tokens
    ideal = report.usage.calls * DELAY / CONCURRENCY + report.encode_seconds
    return {
        "calls": report.usage.calls,
        "seconds": report.seconds,
        "encode seconds": report.encode_seconds,
        "ideal seconds": ideal,
        "ratio": report.seconds / ideal,
        "completion tokens per source token": report.usage.completion_tokens / source,
    }


def show(name: str, row: dict[str, float]) -> None:
    """Print one row."""
    print(f"{name:10}", ", ".join(f"{key} {value:.3g}" for key, value in row.items()), flush=True)


def main() -> None:
    """Measure cost and speed and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="BEIR_DIR")
    parser.add_argument("triples", type=Path, metavar="OPENIE.jsonl")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    costs = {style: cost(arguments.folder, style) for style in NOTHING}
    for style, row in costs.items():
        show(style, row)
    runs = []
    with slow_server(arguments.folder / "corpus.jsonl", arguments.triples) as base_url:
        for _ in range(arguments.runs):
            runs.append(speed(arguments.folder, base_url))
            show("speed", runs[-1])
    print(f"median ratio to the ideal: {statistics.median(run['ratio'] for run in runs):.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"cost": costs, "speed": runs}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
