# ruff: noqa: RUF001  full-width punctuation ends sentences too
from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from polyad.cli import app
from polyad.engine import Engine
from polyad.errors import ConfigurationError, MissingExtraError
from polyad.indexing.mentions.gliner import LABEL_SETS, MULTILINGUAL_MODEL, GlinerMentionExtractor
from polyad.model import Document
from polyad.protocols.components import MentionExtractor

LONGEST = 12
"""Words that the models of these tests read."""


class FakeGliner:
    """Finds every capitalised word, as ``GLiNER`` reports them, and keeps what it was asked."""

    def __init__(self) -> None:
        self.config = SimpleNamespace(max_len=LONGEST)
        self.texts: list[str] = []
        self.labels: list[str] = []
        self.device = ""

    def eval(self) -> None:
        """As PyTorch has it."""

    def inference(self, texts: Sequence[str], labels: list[str], **_: object) -> list[list[dict[str, Any]]]:
        self.texts += texts
        self.labels = labels
        return [[_entity(text, word, labels[0]) for word in text.split() if word.istitle()] for text in texts]


def _entity(text: str, word: str, label: str) -> dict[str, Any]:
    start = text.index(word)
    return {"start": start, "end": start + len(word), "text": word, "label": label, "score": 0.75}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGliner:
    model = FakeGliner()
    module = ModuleType("gliner")

    def load(name: str, map_location: str) -> FakeGliner:
        model.device = map_location
        return model

    module.GLiNER = SimpleNamespace(from_pretrained=load)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gliner", module)
    return model


@pytest.mark.parametrize(("gpus", "expected"), [(1, "cuda"), (0, "cpu")])
def test_a_gpu_is_used_if_there_is_one(
    gpus: int, expected: str, fake: FakeGliner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    GlinerMentionExtractor.from_name("general:tiny")
    assert fake.device == expected


def test_spans_refer_to_the_text_and_scores_are_percentages(fake: FakeGliner) -> None:
    text = "one two three four. Ada five six seven eight. nine ten Bo eleven twelve!"
    extractor: MentionExtractor = GlinerMentionExtractor("tiny")
    mentions = extractor.extract(["", text, "Cy"])
    assert [[(mention.name, mention.start) for mention in actual] for actual in mentions] == [
        [],
        [("Ada", text.index("Ada")), ("Bo", text.index("Bo"))],
        [("Cy", 0)],
    ]
    assert {(mention.type, mention.score) for actual in mentions for mention in actual} == {("person", 75.0)}


def test_windows_are_sentences_that_the_model_can_read_whole(fake: FakeGliner) -> None:
    GlinerMentionExtractor("tiny").extract(["a b c. d e f. g h i j. " + "k " * 30])
    assert fake.texts[:2] == ["a b c. d e f.", "g h i j."]
    assert [len(text.split()) for text in fake.texts[2:]] == [12, 12, 6]


def test_every_sentence_may_be_a_window_of_its_own(fake: FakeGliner) -> None:
    GlinerMentionExtractor("tiny", window_words=1).extract(["a b. c d? e\nf", "我是。你是！"])
    assert fake.texts == ["a b.", "c d?", "e", "f", "我是。", "你是！"]


def test_sentence_windows_are_selected_by_name(fake: FakeGliner) -> None:
    GlinerMentionExtractor.from_name("medical@sentence").extract(["a b. c d? e"])
    assert fake.texts == ["a b.", "c d?", "e"]
    assert fake.labels == list(LABEL_SETS["medical"])
    GlinerMentionExtractor.from_name("medical").extract(["a b. c d? e"])
    assert fake.texts[3:] == ["a b. c d? e"]


def test_the_preset_hypersu_reads_sentences_by_gliner(fake: FakeGliner, tmp_path: Path) -> None:
    with Engine.open(tmp_path / "kb", embedder="hashing:32", preset="hypersu") as engine:
        engine.index_documents([Document("bell", "", "the bell was cast by Ines. it hangs in Aldby.")])
        assert engine.catalogue.statistics().settings["mentions"].startswith("gliner:general@sentence:")
    assert fake.texts == ["the bell was cast by Ines.", "it hangs in Aldby."]
    with Engine.open(tmp_path / "kb", preset="hypersu", create=False) as engine:
        assert engine.components.extractor.name == "gliner:general@sentence:urchade/gliner_large-v2.1"


@pytest.mark.parametrize("failure", ["package", "model"])
def test_the_preset_hypersu_says_in_one_line_that_it_extracts_names_by_rules(
    failure: str, fake: FakeGliner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if failure == "package":
        monkeypatch.setitem(sys.modules, "gliner", None)
    else:
        monkeypatch.delattr(sys.modules["gliner"], "GLiNER")
    with Engine.open(tmp_path / "kb", embedder="hashing:32", preset="hypersu") as engine:
        assert engine.components.extractor.name.startswith("rules")
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "by rules" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_help_and_a_model_that_cannot_be_loaded_name_the_multilingual_model(
    fake: FakeGliner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["gliner"], "GLiNER")
    with pytest.raises(ConfigurationError, match=f"gliner:general:{MULTILINGUAL_MODEL}"):
        GlinerMentionExtractor.from_name("general")
    help_text = CliRunner().invoke(app, ["index", "--help"], env={"COLUMNS": "200"}).output
    assert MULTILINGUAL_MODEL in help_text


def test_blank_texts_are_not_read(fake: FakeGliner) -> None:
    assert GlinerMentionExtractor("tiny").extract(["", " \n "]) == [[], []]
    assert fake.texts == []


def test_label_sets_are_those_of_the_paper(fake: FakeGliner) -> None:
    assert {name: len(labels) for name, labels in LABEL_SETS.items()} == {"general": 17, "medical": 11}
    GlinerMentionExtractor("tiny", "medical").extract(["a"])
    assert fake.labels == list(LABEL_SETS["medical"])


@pytest.mark.parametrize("labels", ["statute, court ", ("statute", "court")])
def test_labels_may_be_given(fake: FakeGliner, labels: str | tuple[str, ...]) -> None:
    GlinerMentionExtractor("tiny", labels).extract(["a"])
    assert fake.labels == ["statute", "court"]


def test_the_name_says_labels_and_model(fake: FakeGliner) -> None:
    assert GlinerMentionExtractor("some/model", "medical").name == "gliner:medical:some/model"
    assert GlinerMentionExtractor("some/model", ("a", "b")).name == "gliner:a,b:some/model"


@pytest.mark.parametrize("labels", ["nonsense", "", (), (" ",)])
def test_an_unknown_label_set_is_refused(fake: FakeGliner, labels: str | tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="label"):
        GlinerMentionExtractor("tiny", labels)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -1.0, float("nan")])
def test_a_threshold_is_a_probability(fake: FakeGliner, threshold: float) -> None:
    with pytest.raises(ConfigurationError, match="threshold"):
        GlinerMentionExtractor("tiny", threshold=threshold)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(MissingExtraError, match=r"polyad\[gliner\]"):
        GlinerMentionExtractor("tiny")


@pytest.fixture(scope="module")
def gliner() -> ModuleType:
    """The package, which other tests do without."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.delitem(sys.modules, "gliner")
        return cast(ModuleType, pytest.importorskip("gliner"))


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory, gliner: ModuleType) -> Path:
    """A GLiNER of 16 dimensions with random weights, that reads characters and at most twelve words."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    tokenizers = importlib.import_module("tokenizers")
    folder = tmp_path_factory.mktemp("gliner")
    letters = [chr(code) for code in range(33, 127)]
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    vocabulary = {token: row for row, token in enumerate([*special.values(), *letters, *(f"##{c}" for c in letters)])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder / "encoder")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    encoder = transformers.BertModel(transformers.BertConfig(vocab_size=len(vocabulary), **sizes))
    encoder.save_pretrained(folder / "encoder")
    config = gliner.GLiNERConfig(
        model_name=str(folder / "encoder"),
        hidden_size=16,
        max_len=LONGEST,
        max_width=3,
        span_mode="markerV0",
        dropout=0.0,
    )
    gliner.GLiNER.from_config(config).save_pretrained(folder / "model")
    return folder / "model"


@pytest.fixture
def saved_model(model_folder: Path, gliner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the model, for the installed package."""
    monkeypatch.setitem(sys.modules, "gliner", gliner)
    return model_folder


def test_a_saved_model_is_loaded_and_its_spans_are_exact(saved_model: Path) -> None:
    extractor = GlinerMentionExtractor(str(saved_model), ("person", "city"), threshold=0.01)
    texts = ["Ada met Bo in Rome. " * 5, "", "Cy ran " + "on and on " * 20]
    mentions = extractor.extract(texts)
    assert mentions[0]
    assert mentions[1] == []
    for text, results in zip(texts, mentions, strict=True):
        assert all(mention.name == text[mention.start : mention.end].strip() for mention in results)
        assert all(mention.type in ("person", "city") and 0 < mention.score <= 100 for mention in results)
        assert [mention.start for mention in results] == sorted(mention.start for mention in results)
    assert max(mention.end for mention in mentions[0]) > len(texts[0]) / 2
    assert max(mention.end for mention in mentions[2]) > len(texts[2]) / 2


def test_a_saved_model_finds_the_same_again(saved_model: Path) -> None:
    extractor = GlinerMentionExtractor(str(saved_model), ("person",), threshold=0.01)
    assert extractor.extract(["Ada met Bo."]) == extractor.extract(["Ada met Bo."])


@pytest.mark.filterwarnings("error")
def test_no_text_is_truncated(saved_model: Path) -> None:
    GlinerMentionExtractor(str(saved_model), ("person",)).extract(["well-known e.g. x's " * 20])


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("gliner")
    with pytest.raises(ConfigurationError, match="nowhere"):
        GlinerMentionExtractor(str(tmp_path / "nowhere"))
