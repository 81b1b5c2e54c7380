"""Files of weights that are damaged or hostile: each is rejected with its name, what is wrong and what to do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from polyad.embedders.hashing import HashingEmbedder
from polyad.engine import Engine
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.retrieval.default.retriever import DefaultSettings
from polyad.retrieval.default.scorer import LinearScorer
from polyad.retrieval.hyperretriever.settings import HyperRetrieverSettings
from polyad.retrieval.hyperretriever.triple_scorer import Recipe, TripleScorer

pytestmark = pytest.mark.attacks

LINEAR = LinearScorer.from_settings("").to_text().encode()
FIRST_WEIGHT = LINEAR.index(b"\n", LINEAR.index(b"similar to the question\t"))
EMBEDDER = HashingEmbedder(8)


def replace_first_weight(value: bytes) -> bytes:
    start = LINEAR.index(b"similar to the question\t") + len(b"similar to the question\t")
    return LINEAR[:start] + value + LINEAR[FIRST_WEIGHT:]


def without_checksum(contents: bytes) -> bytes:
    """The file as an earlier version or a person wrote it."""
    return b"\n".join(line for line in contents.split(b"\n") if not line.startswith(b"# checksum of"))


LINEAR_FILES = {
    "NaN": without_checksum(replace_first_weight(b"nan")),
    "inf": without_checksum(replace_first_weight(b"-inf")),
    "1e308": without_checksum(replace_first_weight(b"1e308")),
    "NaN of the second stage": without_checksum(
        LINEAR.replace(b"second stage: terms of the question\t", b"second stage: terms of the question\tnan")
    ),
    "another feature of the second stage": without_checksum(
        LINEAR.replace(b"second stage: terms of the question\t", b"second stage: length\t")
    ),
    "a number less in the second stage": without_checksum(
        re.sub(rb"(second stage: terms of the question\t)\S+\t", rb"\1", LINEAR)
    ),
    "cut in the second stage": without_checksum(LINEAR[: LINEAR.index(b"second stage: terms")]),
    "another number": replace_first_weight(b"7"),
    "doubled": LINEAR * 2,
    "doubled without checksum": without_checksum(LINEAR) * 2,
    "cut in a number": LINEAR[: FIRST_WEIGHT + 200],
    "cut before the second stage": LINEAR[: LINEAR.index(b"second stage: ")],
    "cut in the questions": LINEAR[: -40 * 17],
    "cut in the last question": LINEAR[:-10],
    "empty": b"",
    "zeros": bytes(1000),
    "not UTF-8": LINEAR.replace(b"similar", b"simil\xff"),
    "long": b"# " + b"a" * (70 * 2**20) + b"\n" + LINEAR,
}


@contextmanager
def open_engine(folder: Path, settings: Settings) -> Iterator[Engine]:
    with Engine.open(folder, embedder=EMBEDDER) as engine:
        engine.index(["README.md"])
    with Engine.open(folder, embedder=EMBEDDER, settings=settings) as engine:
        yield engine


def require_rejection(search: Callable[[], object], path: Path) -> None:
    with pytest.raises(ConfigurationError, match="polyad bench train") as caught:
        search()
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", LINEAR_FILES)
def test_damaged_linear_weights_are_rejected(name: str, tmp_path: Path) -> None:
    path = tmp_path / "w.tsv"
    path.write_bytes(LINEAR_FILES[name])
    with open_engine(tmp_path / "kb", Settings(default=DefaultSettings(weights=str(path)))) as engine:
        require_rejection(lambda: engine.search("What is it?"), path)


@pytest.mark.parametrize("retriever", ["default", "hyperretriever"])
@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "folder", "nowhere", "nul"])
def test_weights_that_are_no_file_are_rejected(retriever: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "w"
    if target == "pipe":
        os.mkfifo(path)
    elif target == "folder":
        path.mkdir()
    elif target == "nul":
        path = tmp_path / "w\0"
    else:
        path.symlink_to(target)
    settings = Settings(
        default=DefaultSettings(weights=str(path)), hyperretriever=HyperRetrieverSettings(weights=str(path))
    )
    with (
        open_engine(tmp_path / "kb", settings) as engine,
        pytest.raises(ConfigurationError, match="polyad bench train") as caught,
    ):
        engine.search("What is it?", retriever=retriever)
    assert str(tmp_path) in str(caught.value)


def damaged_triple_weights(sound: bytes) -> Iterator[tuple[str, bytes]]:
    arrays, header = load(sound), json.loads(sound[8 : 8 + int.from_bytes(sound[:8], "little")])
    recipe = header["__metadata__"]
    for name, value in {"NaN": np.nan, "inf": np.inf, "1e308": 1e308, "3e38": 3e38}.items():
        for kind in (np.float16, np.float32, np.float64):
            with np.errstate(over="ignore"):
                yield f"{name} {kind}", save({**arrays, "output_bias": np.array([value]).astype(kind)}, recipe)
    yield "wrong shape", save({**arrays, "hidden": np.ascontiguousarray(arrays["hidden"][:, 1:])}, recipe)
    yield "no array", save({name: array for name, array in arrays.items() if name != "output"}, recipe)
    yield "whole numbers", save({**arrays, "output_bias": np.array([10**9])}, recipe)
    yield "nested recipe", save(arrays, {"recipe": "[" * 100_000})
    yield (
        "recipe of a huge dimension",
        save(arrays, {"recipe": recipe["recipe"].replace('"dimension": 8', '"dimension": 1' + "0" * 30)}),
    )
    yield "doubled", sound * 2
    yield "zeros", bytes(1000)
    yield "empty", b""
    yield "a header of 2**63 bytes", b"\xff" * 7 + b"\x7f" + sound[8:]
    yield "bfloat16", sound.replace(b'"F16"', b'"BF16"', 1)
    for place in range(0, len(sound), len(sound) // 40):
        yield f"cut at {place}", sound[:place]
    yield "cut in the last byte", sound[:-1]


def test_damaged_triple_weights_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    TripleScorer.create_untrained(Recipe(embedder=EMBEDDER.name, dimension=8), units=4).save(path)
    with open_engine(tmp_path / "kb", Settings(hyperretriever=HyperRetrieverSettings(weights=str(path)))) as engine:
        engine.search("What is it?", retriever="hyperretriever")
    for name, contents in damaged_triple_weights(path.read_bytes()):
        path.write_bytes(contents)
        with pytest.raises(ConfigurationError, match="polyad bench train") as caught:
            TripleScorer.from_settings(str(path), EMBEDDER.name, 8, ())
        assert path.name in str(caught.value), name
