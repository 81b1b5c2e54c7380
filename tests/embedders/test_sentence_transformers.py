# ruff: noqa: RUF001  (text in the punctuation of other languages)
from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyad.embedders import sentence_transformers
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.errors import ConfigurationError
from polyad.model import FloatArray
from polyad.model_hub import choose_device
from polyad.protocols.components import Embedder

WORDS = "the river bank of Oslo was flooded in 1961 when Anna Keller’s boat sank 东京 café ½ x".split()  # noqa: SIM905
TEXTS = st.lists(st.sampled_from(WORDS), max_size=150).map(" ".join)


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder()


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, others=st.lists(TEXTS, max_size=12), place=st.integers(0, 12))
def test_a_texts_vector_is_bit_identical_whatever_is_embedded_beside_it(
    embedder: Embedder, text: str, others: list[str], place: int
) -> None:
    alone = embedder.encode([text], "passage")[0]
    among = [*others[:place], text, *others[place:]]
    beside = embedder.encode(among, "passage")[min(place, len(others))]
    assert beside.tobytes() == alone.tobytes()


@pytest.mark.parametrize("words", [2, 8, 30, 90])
def test_a_texts_vector_is_bit_identical_in_batches_of_any_size(embedder: Embedder, words: int) -> None:
    # These lengths and sizes are among those at which matrix kernels round differently if nothing is done about it.
    text = " ".join((WORDS * words)[:words])
    alone = embedder.encode([text], "passage")[0]
    for count in (2, 3, 4, 6, 9, 40):
        assert embedder.encode([text] * count, "passage")[-1].tobytes() == alone.tobytes()


def test_vectors_have_length_one_and_the_order_of_their_texts(embedder: Embedder) -> None:
    texts = ["", " ", "Oslo", "a " * 700, "东京塔", "\x00", "Oslo"]
    vectors = embedder.encode(texts, "passage")
    assert vectors.shape == (len(texts), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([1.0] * len(texts), abs=1e-5)
    assert vectors[2].tobytes() == vectors[6].tobytes()
    assert vectors[2].tobytes() != vectors[4].tobytes()


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.encode([], "passage").shape == (0, embedder.dimension)
    assert embedder.encode([], "query").shape == (0, embedder.dimension)


def test_the_end_of_a_text_that_is_longer_than_the_model_reads_counts(embedder: Embedder) -> None:
    body = "The committee met on every second Monday and discussed the budget. " * 60
    plain, changed, unlike = embedder.encode(
        [body + "It rained.", body + "Volcanoes erupt under the sea.", "Volcanoes erupt under the sea. " * 60],
        "passage",
    )
    assert plain.tobytes() != changed.tobytes()
    assert float(changed @ unlike) > float(plain @ unlike)


def test_a_long_text_is_near_to_what_stands_at_its_end(embedder: Embedder) -> None:
    body, end = "Budgets are discussed by the committee. " * 60, "Volcanoes erupt under the sea. " * 60
    vectors = embedder.encode([body + end, body, "Volcanoes erupt under the sea."], "passage")
    assert float(vectors[0] @ vectors[2]) > float(vectors[1] @ vectors[2]) + 0.2


def test_likeness_in_meaning_is_nearness(embedder: Embedder) -> None:
    vectors = embedder.encode(["A cat sat on the mat.", "A kitten rested on a rug.", "Interest rates rose."], "passage")
    assert float(vectors[0] @ vectors[1]) > float(vectors[0] @ vectors[2]) + 0.2


def test_a_question_is_comparable_with_passages(embedder: Embedder) -> None:
    question = embedder.encode(["Where was Anna born?"], "query")[0]
    passage = embedder.encode(["Where was Anna born?"], "passage")[0]
    assert float(question @ passage) == pytest.approx(1.0, abs=1e-2)


def test_half_a_character_does_no_harm(embedder: Embedder) -> None:
    vectors = embedder.encode(["Oslo \ud800 town", "Oslo \ufffd town"], "passage")
    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_prefixes_are_put_before_questions_and_passages(embedder: Embedder) -> None:
    prefixed = SentenceTransformerEmbedder(
        "sentence-transformers/all-MiniLM-L6-v2", query_prefix="query: ", passage_prefix="passage: "
    )
    assert prefixed.encode(["Oslo"], "query").tobytes() == embedder.encode(["query: Oslo"], "query").tobytes()
    assert prefixed.encode(["Oslo"], "passage").tobytes() == embedder.encode(["passage: Oslo"], "passage").tobytes()
    assert (prefixed.name, prefixed.dimension) == (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2", 384)


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "/no/such/folder"])
def test_an_unknown_model_is_a_configuration_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)  # else it tries the network for a minute
    with pytest.raises(ConfigurationError):
        SentenceTransformerEmbedder(name)


def test_an_unknown_model_is_an_error_at_once_where_the_hub_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[tuple[str, int]] = []

    def unreachable(address: tuple[str, int], timeout: float) -> None:
        questions.append(address)
        raise OSError("Network is unreachable")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    started = time.monotonic()
    with pytest.raises(ConfigurationError):
        SentenceTransformerEmbedder("nobody/no-such-model")
    assert time.monotonic() - started < 30, "the library of the hub tries for over a minute"
    assert questions == [("huggingface.co", 443)]


def test_a_folder_that_holds_no_model_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        SentenceTransformerEmbedder(str(tmp_path))


def test_texts_that_are_tokenized_apart_have_the_vectors_that_they_have_together(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Oslo", "The river bank of Oslo was flooded in 1961.", "x" * 90, "", "Oslo", "a " * 600]
    together = embedder.encode(texts, "passage")
    monkeypatch.setattr(sentence_transformers, "_SLICE_CHARACTERS", 50)
    assert embedder.encode(texts, "passage").tobytes() == together.tobytes()


@pytest.mark.parametrize(("gpus", "mps", "expected"), [(1, True, "cuda"), (0, True, "mps"), (0, False, "cpu")])
def test_the_device_is_the_first_there_is_of_cuda_mps_and_the_processor(
    gpus: int, mps: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: mps)
    assert choose_device("auto") == expected
    assert choose_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert choose_device("cuda:0") == "cuda:0"
    with pytest.raises(ConfigurationError, match=r"device is 'cuda:7'; expected auto, or .*: cuda, cuda:0, .*cpu"):
        choose_device("cuda:7")


@pytest.mark.parametrize(
    ("device", "has_bfloat16", "expected"),
    [("cuda:1", True, "bfloat16"), ("cuda", False, "float16"), ("mps", True, "float16")],
)
def test_a_gpu_computes_in_sixteen_bits(
    device: str, has_bfloat16: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: has_bfloat16)
    assert sentence_transformers._choose_precision("auto", device) == expected
    assert sentence_transformers._choose_precision("float32", device) == "float32"


@pytest.mark.parametrize(
    ("precision", "instructions", "floor"),
    [
        ("bfloat16", {"avx512_bf16": True, "amx_tile": False}, 64),
        ("bfloat16", {"avx512_bf16": True, "amx_tile": True}, 1024),
        ("bfloat16", {"avx512_bf16": True, "amx_tile": None}, 1024),
        ("bfloat16", {"avx512_bf16": False, "amx_tile": False}, 1024),
        ("float32", {"avx512_bf16": True, "amx_tile": False}, 1024),
    ],
)
def test_passes_are_filled_up_less_only_where_kernels_were_found_to_round_alike(
    precision: str, instructions: dict[str, bool | None], floor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    dtype = getattr(torch, precision)
    monkeypatch.setattr(sentence_transformers, "_processor_has", instructions.__getitem__)
    assert sentence_transformers._choose_batch_sizes("cpu", dtype) == (4096, floor)
    assert sentence_transformers._choose_batch_sizes("cuda", dtype) == (16_384, 16_384)


def test_on_a_gpu_all_forward_passes_for_texts_of_similar_length_have_one_shape(
    embedder: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: set[tuple[int, int]] = set()

    def forward(windows: Sequence[list[int]], length: int, rows: int) -> FloatArray:
        assert len(windows) < rows, "with a mask of ones a GPU would choose another kernel"
        shapes.add((rows, length))
        return np.ones((len(windows), embedder.dimension), dtype=np.float32)

    monkeypatch.setattr(embedder, "_device", "cuda")
    monkeypatch.setattr(embedder, "_batch_tokens", 16_384)
    monkeypatch.setattr(embedder, "_min_tokens", 16_384)
    monkeypatch.setattr(embedder, "_forward", forward)
    for texts in (["Oslo"], ["Oslo"] * 600, ["word " * 40], ["word " * 5000]):
        embedder.encode(texts, "passage")
    assert shapes == {(512, 32), (256, 64), (64, 256)}


def test_a_question_does_not_wait_for_all_the_texts_of_another_thread(
    embedder: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, submit = embedder._forward, embedder._workers.submit
    begun, event, order = threading.Event(), threading.Event(), []

    def forward_when_both_are_there(windows: Sequence[list[int]], length: int, rows: int) -> FloatArray:
        begun.set()
        assert event.wait(60)
        order.append(len(windows) == 1)
        return forward(windows, length, rows)

    def submit_and_tell(*arguments: Any) -> Future[FloatArray]:
        future = submit(*arguments)
        if threading.current_thread() is asking:
            event.set()
        return future

    monkeypatch.setattr(embedder, "_forward", forward_when_both_are_there)
    monkeypatch.setattr(embedder, "_batch_tokens", 64)
    monkeypatch.setattr(embedder, "_min_tokens", 0)
    monkeypatch.setattr(embedder._workers, "submit", submit_and_tell)
    indexing = threading.Thread(target=embedder.encode, args=(["An otter eats fish."] * 400, "passage"))
    asking = threading.Thread(target=embedder.encode, args=(["What does it eat?"], "query"))
    indexing.start()
    assert begun.wait(60)
    asking.start()
    for thread in (asking, indexing):
        thread.join(60)
    assert order.index(True) <= 2 * embedder._max_running
    assert len(order) > 50


SHAPES = """
from pathlib import Path
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1_000_000

embedder = SentenceTransformerEmbedder()
embedder.encode(["one two three"] * 120, "passage")
before = held()
for count in range(20, 120):
    embedder.encode(["one two three"] * count, "passage")
print(held() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_each_number_of_texts() -> None:
    output = subprocess.run([sys.executable, "-c", SHAPES], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert float(output) < 200  # megabytes; 400 where a kernel is kept for each shape
