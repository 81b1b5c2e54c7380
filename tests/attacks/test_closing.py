"""Many threads search while the engine is closed and opened again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.attacks

SECONDS = 40

SEARCH = """
import sys, threading, time
from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.errors import StoreError
from polyad.model import Document

QUESTION = "Who met Bob Stone in Town 7?"
embedder, retrievers = HashingEmbedder(32), ("bm25", "dense")
stop, wrong, answered = threading.Event(), [], []

def documents():
    for number in range(60):
        text = f"Anna Keller {number} met Bob Stone in Town {number}, in the year {1900 + number}."
        yield Document(f"d{number}", f"Town {number}", text)

def opened():
    return Engine.open(sys.argv[1], embedder=embedder)

def found(retriever):
    return [hit.passage.id for hit in engine.search(QUESTION, retriever=retriever).passages]

def search(retriever):
    while not stop.is_set():
        try:
            if found(retriever) != right[retriever]:
                wrong.append("another answer")
            answered.append(retriever)
        except StoreError as error:
            if "was closed; open it again" not in str(error):
                wrong.append(repr(error))
        except BaseException as error:
            wrong.append(repr(error))

engine = opened()
engine.index_documents(documents())
right = {retriever: found(retriever) for retriever in retrievers}
threads = [threading.Thread(target=search, args=[retrievers[number % 2]]) for number in range(64)]
for thread in threads:
    thread.start()
rounds, end = 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end and rounds < 1000:
    time.sleep(0.02)
    last, engine = engine, opened()
    last.close()
    rounds += 1
stop.set()
for thread in threads:
    thread.join()
print(rounds, "rounds,", len(answered), "answers")
sys.exit(bool(wrong) or rounds < 10 or len(answered) < 100)
"""


def test_searches_beside_an_engine_that_is_closed_end_with_an_answer_or_its_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SEARCH, str(tmp_path), str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS + 60)
    assert done.returncode == 0, done.stdout + done.stderr
