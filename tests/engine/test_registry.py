"""Adapters by name: what each name loads, and what is said of a name that is none."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import huggingface_hub.constants
import pytest

from polyad.config import Backend, EncoderSettings, LanguageModelSettings
from polyad.embedders.hashing import HashingEmbedder
from polyad.embedders.minilm.embedder import MiniLMEmbedder
from polyad.embedders.sentence_transformers import SentenceTransformerEmbedder
from polyad.engine import Engine, loaders
from polyad.engine.loaders import load_embedder, load_extractor
from polyad.errors import ConfigurationError, IndexMismatchError, MissingExtraError, ModelNotFoundError
from polyad.language_models.scripted import ScriptedLanguageModel, cite_first_passage
from polyad.model import Document
from polyad.protocols.store import Manifest
from polyad.stores.sqlite import SqliteStore
from tests.scripted_server import ScriptedServer


@pytest.fixture
def names_file(tmp_path: Path) -> Path:
    path = tmp_path / "names: a list.jsonl"
    path.write_text(json.dumps({"entities": ["Tarn"]}), encoding="utf-8")
    return path


def test_hashing_takes_a_dimension() -> None:
    embedder = load_embedder("hashing:48")
    assert (embedder.name, embedder.dimension) == ("hashing:48", 48)


@pytest.mark.parametrize("name", ["hashing:many", "hashing:-8", "hashing:0"])
def test_hashing_with_an_invalid_dimension_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(?i)dimension"):
        load_embedder(name)


def test_an_index_by_an_endpoints_embedder_opens_again_without_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(dimension=24) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with Engine.open(tmp_path, embedder="openai:org/small:latest") as engine:
            engine.index_documents([Document("bell", "Bell", "The Bell of Tarn was cast by Ines Moreau.")])
        server.requests.clear()
        with Engine.open(tmp_path, create=False) as engine:
            hits = engine.search("Who cast the bell?", retriever="dense").passages
        assert [hit.passage.document_id for hit in hits] == ["bell"]
        assert {request.body["model"] for request in server.requests} == {"org/small:latest"}
        with closing(SqliteStore.open(tmp_path)) as store:
            assert load_embedder(store.manifest.embedder).name == store.manifest.embedder == "openai:org/small:latest"


def test_an_index_by_an_endpoints_embedder_refuses_another_model(tmp_path: Path) -> None:
    with ScriptedServer() as server:
        Engine.open(tmp_path, embedder=load_embedder("openai:small", EncoderSettings(base_url=server.base_url))).close()
    with pytest.raises(IndexMismatchError, match="openai:small"):
        Engine.open(tmp_path, embedder="openai:large")


class Renamed(HashingEmbedder):
    """Has the same name whatever the length of its vectors, as a model behind an endpoint that serves another now."""

    @property
    def name(self) -> str:
        return "openai:small"


def test_vectors_of_another_length_are_refused_with_both_embedders_named(tmp_path: Path) -> None:
    bell, otter = Document("bell", "Bell", "Ines Moreau cast it."), Document("otter", "Otter", "It eats fish.")
    with Engine.open(tmp_path, embedder=Renamed(8)) as engine:
        engine.index_documents([bell])
    other = r"built with 'openai:small', vectors of 8 numbers, and 'openai:small' now returns 9; use .* another --store"
    with Engine.open(tmp_path, embedder=Renamed(9)) as engine:
        for retriever in ("dense", "default", "hypergraphrag"):
            with pytest.raises(IndexMismatchError, match=other):
                engine.search("Who cast the bell?", retriever=retriever)
        with pytest.raises(IndexMismatchError, match=other):
            engine.index_documents([otter])
        assert engine.search("Who cast the bell?", retriever="bm25").passages, "no vector is needed"
    with Engine.open(tmp_path, embedder=Renamed(8)) as engine:
        assert engine.catalogue.statistics().documents == 1
        assert engine.search("Who cast the bell?", retriever="dense").passages


def test_the_endpoint_and_its_key_may_be_given() -> None:
    with ScriptedServer(dimension=8) as server:
        embedder = load_embedder("openai:small", EncoderSettings(base_url=server.base_url, api_key="secret"))
        assert embedder.encode(["Tarn"], "query").shape == (1, 8)
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret"}


def test_an_endpoint_is_of_no_concern_to_other_embedders() -> None:
    assert (
        load_embedder("hashing:8", EncoderSettings(base_url="http://127.0.0.1:1/v1", api_key="secret")).dimension == 8
    )


def test_an_endpoint_needs_a_model() -> None:
    with pytest.raises(ConfigurationError, match="expected openai:MODEL"):
        load_embedder("openai:")


@pytest.mark.parametrize("is_named", [True, False])
def test_a_language_model_is_opened_by_its_name_or_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    with ScriptedServer(cite_first_passage) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url if is_named else "http://127.0.0.1:1/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        value = "org/chat" if is_named else LanguageModelSettings(model="org/chat", base_url=server.base_url)
        with Engine.open(tmp_path, embedder="hashing:8", language_model=value) as engine:
            engine.index_documents([Document("bell", "Bell", "The Bell of Tarn was cast by Ines Moreau.")])
            answer = engine.ask("Who cast the bell?")
    assert answer.text == "The Bell of Tarn was cast by Ines Moreau [1]."
    (request,) = server.requests
    assert (request.body["model"], request.headers["authorization"]) == ("org/chat", "Bearer secret")


def test_a_blank_name_is_no_language_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="model is ' '; expected the name of a model"):
        Engine.open(tmp_path / "kb", language_model=" ")
    assert not (tmp_path / "kb").exists()


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
        ("gliner:general@sentence", "gliner:general@sentence:urchade/gliner_large-v2.1"),
        ("gliner:@sentence:some/model", "gliner:general@sentence:some/model"),
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


def without_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "find_spec", lambda name: None if name == "sentence_transformers" else name)


def test_the_default_embedder_needs_no_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    without_sentence_transformers(monkeypatch)
    assert isinstance(load_embedder("sentence-transformers/all-MiniLM-L6-v2"), MiniLMEmbedder)
    assert isinstance(load_embedder("all-MiniLM-L6-v2", EncoderSettings(backend="numpy")), MiniLMEmbedder)


def test_the_settings_select_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"'numpy' supports 'all-MiniLM-L6-v2' and .* only, not 'some/model'"):
        load_embedder("some/model", EncoderSettings(backend="numpy"))
    with pytest.raises(ConfigurationError, match="backend is 'jax'; expected auto, torch or numpy"):
        EncoderSettings(backend=cast(Backend, "jax"))
    assert isinstance(load_embedder("all-MiniLM-L6-v2", EncoderSettings(backend="torch")), SentenceTransformerEmbedder)


def test_a_new_index_never_uses_another_embedder_than_the_default_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(model: object) -> Path:
        raise ModelNotFoundError("the model is nowhere")

    without_sentence_transformers(monkeypatch)
    monkeypatch.setattr("polyad.embedders.packaged_model.PackagedModel.get_folder", absent)
    for embedder in (None, "all-MiniLM-L6-v2"):
        with pytest.raises(ModelNotFoundError, match="the model is nowhere"):
            Engine.open(tmp_path / "kb", embedder=embedder)
    with Engine.open(tmp_path / "kb", embedder="hashing") as engine:
        engine.index_documents([Document("a", "Bell", "The bell was cast by Ines Moreau.")])
        assert engine.search("Who cast the bell?").passages
    with Engine.open(tmp_path / "kb", create=False) as engine:
        assert engine.components.embedder.name == "hashing:384"


@pytest.mark.parametrize("name", ["hashing", "hashing:", "hashing:384", "hashing:0384"])
def test_an_index_opens_with_each_name_of_its_embedder(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        with Engine.open(tmp_path, embedder=name) as engine:
            assert engine.components.embedder.name == "hashing:384"
    with pytest.raises(IndexMismatchError, match="not 'hashing:385'"):
        Engine.open(tmp_path, embedder="hashing:385")


def test_the_organisation_of_a_model_is_not_part_of_its_name(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path, Manifest("all-MiniLM-L6-v2", 384, "rules")).close()
    Engine.open(tmp_path, embedder="sentence-transformers/all-MiniLM-L6-v2").close()


def test_a_file_of_names_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.jsonl").write_text('{"entities": ["Ines Moreau"]}')
    for path in ("./names.jsonl", "names.jsonl", ".//names.jsonl"):
        Engine.open("kb", embedder="hashing:8", mention_extractor=f"given:{path}").close()
