"""The choice of a language model: by HTTP and on the page, from the list that the server is configured with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from polyad import Engine
from polyad.config import ServerSettings
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad_server.app import create_app
from polyad_server.keys import add_key
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app
from tests.scripted_server import ScriptedServer

QUESTION = "Who cast the bell of Tarn?"


@pytest.fixture
def models() -> dict[str, ScriptedLanguageModel]:
    def build(name: str) -> ScriptedLanguageModel:
        return ScriptedLanguageModel(lambda _: f"{name} says Ines Moreau [1].", name)

    return {"": build("qwen3"), "fast": build("qwen3:4b")}


@pytest.fixture
def server(tmp_path: Path, models: dict[str, ScriptedLanguageModel]) -> Iterator[RunningServer]:
    index = build_index(tmp_path / "kb")
    with run_app(create_app(Workspaces(open_index(models[""], {"fast": models["fast"]}), [index]))) as running:
        yield running


def test_a_question_names_the_model_that_answers(
    server: RunningServer, models: dict[str, ScriptedLanguageModel]
) -> None:
    assert [each["name"] for each in server.client.get("/api/v1/stats").json()["models"]] == ["fast"]
    history = [{"role": "user", "content": "What hangs in Corven Tower?"}]
    answers = [
        server.client.post("/api/v1/ask", json={"question": QUESTION, "model": name, "history": history}).json()
        for name in ("fast", "")
    ]
    assert [answer["answer"] for answer in answers] == ["qwen3:4b says Ines Moreau [1].", "qwen3 says Ines Moreau [1]."]
    assert answers[0]["citations"]
    assert len(models["fast"].prompts) == len(models[""].prompts) == 2, "each completes the question and answers it"


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_is_not_in_the_list_is_refused(server: RunningServer, stream: bool) -> None:
    body = {"question": QUESTION, "model": "gpt-5", "stream": stream}
    response = server.client.post("/api/v1/ask", json=body)
    assert response.status_code == 422
    assert response.json()["detail"].startswith("the model is 'gpt-5'; expected fast ")


def test_a_model_is_refused_where_none_is_configured(tmp_path: Path) -> None:
    with run_app(create_app(Workspaces(open_index(), [build_index(tmp_path / "kb")]))) as server:
        assert server.client.get("/api/v1/stats").json()["models"] == []
        response = server.client.post("/api/v1/ask", json={"question": QUESTION, "model": "fast"})
        assert "none is configured" in response.json()["detail"]


@pytest.mark.parametrize(("scope", "is_shown"), [("read", False), ("write", False), ("admin", True)])
def test_the_list_has_no_secret_and_its_addresses_are_for_admins(tmp_path: Path, scope: str, is_shown: bool) -> None:
    pytest.importorskip("openai")
    from polyad.config import LanguageModelSettings

    index = build_index(tmp_path / "kb")
    with Engine.open(index) as engine:
        key = add_key(engine.values, "client", scope, datetime.now(UTC))
    with ScriptedServer(["Ines Moreau [1]."]) as endpoint:
        address = endpoint.base_url.replace("http://", "http://ann:sk-in-address@")
        settings = LanguageModelSettings(model="qwen3", base_url=address, api_key="sk-secret")

        def open_one(place: Path | str, create: bool) -> Engine:
            return Engine.open(place, create=create, language_models={"fast": settings})

        with run_app(create_app(Workspaces(open_one, [index]))) as server:
            headers = {"Authorization": f"Bearer {key}"}
            response = server.client.get("/api/v1/stats", headers=headers)
            assert response.json()["models"] == [
                {"name": "fast", "model": "qwen3", "endpoint": endpoint.base_url if is_shown else ""}
            ]
            assert "sk-" not in response.text
            body = {"question": QUESTION, "model": "fast"}
            answer = server.client.post("/api/v1/ask", json=body, headers=headers).json()
            assert answer["answer"] == "Ines Moreau [1]."


def test_answers_by_a_named_model_and_new_answers_are_limited(tmp_path: Path) -> None:
    models = {name: ScriptedLanguageModel(lambda _: "Ines Moreau [1].") for name in ("fast", "large")}
    workspaces = Workspaces(open_index(models["fast"], models), [build_index(tmp_path / "kb")])
    with run_app(create_app(workspaces, ServerSettings(model_answers_per_minute=1))) as server:

        def ask(**options: object) -> int:
            return server.client.post("/api/v1/ask", json={"question": QUESTION, **options}).status_code

        assert [ask(model="fast"), ask(model="fast"), ask(model="large")] == [200, 429, 200]
        assert [ask(regenerate=True), ask(regenerate=True), ask(), ask()] == [200, 429, 200, 200]
