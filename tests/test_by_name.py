"""Adapters by name: what each name loads, and what is said of a name that is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.constants
import pytest

from polyad.adapters.scripted import ScriptedLanguageModel
from polyad.by_name import load_embedder, load_extractor
from polyad.errors import ConfigurationError, MissingExtraError


@pytest.fixture
def names_file(tmp_path: Path) -> Path:
    path = tmp_path / "names: a list.jsonl"
    path.write_text(json.dumps({"entities": ["Tarn"]}), encoding="utf-8")
    return path


def test_hashing_takes_a_dimension() -> None:
    embedder = load_embedder("hashing:48")
    assert (embedder.name, embedder.dimension) == ("hashing:48", 48)


@pytest.mark.parametrize("name", ["hashing", "hashing:", "hashing:many", "hashing:-8", "hashing:0"])
def test_hashing_without_a_dimension_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(?i)dimension"):
        load_embedder(name)


def test_an_endpoint_needs_a_model() -> None:
    with pytest.raises(ConfigurationError, match="expected openai:MODEL"):
        load_embedder("openai:")


@pytest.mark.parametrize("name", ["no-such-model", "no:such:model"])
def test_any_other_name_is_a_local_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)  # else it tries the network for a minute
    with pytest.raises(ConfigurationError, match=f"embedding model '{name}' cannot be loaded"):
        load_embedder(name)


def test_an_extractor_is_loaded_by_the_name_it_bears(names_file: Path) -> None:
    for name in ("rules", f"given:{names_file}", "llm"):
        assert load_extractor(name, ScriptedLanguageModel([])).name == name


@pytest.mark.parametrize("name", ["", "regex", "rules:strict", "llm:gpt", "given", "given:"])
def test_a_name_of_no_extractor_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no mention extractor .*; expected"):
        load_extractor(name, ScriptedLanguageModel([]))


def test_mentions_by_a_language_model_need_one() -> None:
    with pytest.raises(ConfigurationError, match="need a language model; name one with --model"):
        load_extractor("llm", None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gliner", "gliner:general:urchade/gliner_large-v2.1"),
        ("gliner:medical", "gliner:medical:urchade/gliner_large-v2.1"),
        ("gliner:statute,court:some/model", "gliner:statute,court:some/model"),
        ("gliner::C:/models/small", "gliner:general:C:/models/small"),
    ],
)
def test_gliner_takes_labels_and_a_model(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    class Model:
        config = SimpleNamespace()

        def __init__(self, model: str, map_location: str) -> None:
            loaded.append(model)

        def eval(self) -> None:
            """As PyTorch has it."""

    monkeypatch.setitem(sys.modules, "gliner", SimpleNamespace(GLiNER=SimpleNamespace(from_pretrained=Model)))
    assert load_extractor(name, None).name == meant
    assert [f"gliner:{meant.split(':')[1]}:{model}" for model in loaded] == [meant]


def test_an_unknown_label_set_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no label set 'nonsense'"):
        load_extractor("gliner:nonsense", None)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(MissingExtraError, match=r'pip install "polyad\[gliner\]"'):
        load_extractor("gliner:medical:some/model", None)
