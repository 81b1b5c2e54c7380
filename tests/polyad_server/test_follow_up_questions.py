"""Follow-up questions whose rewriting by a language model cannot be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyad import Document
from polyad.config import LanguageModelSettings, ServerSettings
from polyad.engine.loaders import load_language_model
from polyad.language_models.scripted import Request
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.faults import RejectionFault
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app
from tests.scripted_server import ChatOutcome, ScriptedServer

TEXTS = {
    "kettle": "The membrane of the KT-5 is replaced after 400 hours. Its drain pipe may be three feet long.",
    "mill": "The stone of the ML-9 is dressed each winter. Its belt may be twelve feet long.",
    "press": "The PR-2 has a screw of oak. Its handle is six feet long, and its bed of two planks.",
    "staff": "The workshop in Aldby employs 31 people, the workshop in Tarn 12.",
}
DOCUMENTS = tuple(Document(f"{name}.md", name.title(), text) for name, text in TEXTS.items())
HISTORY = [
    {"role": "user", "content": "After how many hours is the membrane of the KT-5 replaced?"},
    {"role": "assistant", "content": "After 400 hours [1]."},
]
QUESTION, REWRITING = "And how long may its drain pipe be?", "How long may the drain pipe of the KT-5 be?"
UNTRUSTED = {
    "unchanged": QUESTION,
    "shouted": QUESTION.upper(),
    "an answer": "The drain pipe may be at most three feet long.",
    "a refusal": "I'm sorry, but I was given no passage to answer from.",
    "a refusal that asks": "I'm sorry, which product do you mean?",
    "thoughts": "<think>KT-5?</think>",
    "white space": " \n",
}
WRAPPED = {
    "plain": REWRITING,
    "thought": f"<thought>The user means KT-5.</thought>{REWRITING}",
    "quotes": f'"{REWRITING}"',
    "guillemets": f"\u00ab{REWRITING}\u00bb",
    "sure": f'Sure! Here is the standalone question:\n\n"{REWRITING}"',
    "sure on one line": f"Sure! {REWRITING}",
    "label": f"Question: {REWRITING}",
    "markdown": f"**Standalone question:** {REWRITING}",
    "fence": f"```\n{REWRITING}\n```",
    "json": json.dumps({"question": REWRITING}),
    "fenced json": f"```json\n{json.dumps({'reason': 'its', 'standalone_question': REWRITING})}\n```",
    "a note": f"{REWRITING}\n\nI replaced the pronoun.",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, dict[str, ChatOutcome]]]:
    rewriting: dict[str, ChatOutcome] = {}

    def reply(request: Request) -> ChatOutcome:
        is_rewriting = "Last question:" in request["messages"][-1]["content"]
        return rewriting["reply"] if is_rewriting else "Three feet [1]."

    directory: Path = build_index(tmp_path_factory.mktemp("kb") / "kb", DOCUMENTS)
    with ScriptedServer(reply) as scripted:
        model = load_language_model(LanguageModelSettings(model="m", base_url=scripted.base_url, max_retries=0))
        with run_app(create_app(Workspaces(open_index(model), [directory]), ServerSettings())) as server:
            yield server, rewriting


def ask(server: RunningServer, question: str, case: str) -> tuple[str, list[str]]:
    """Return the question that was searched, and the documents of the hits, best first.

    An earlier message with the ``case`` makes the prompt another one, whose reply is not cached.
    """
    history = [{"role": "user", "content": case}, *HISTORY]
    body = {"question": question, "history": history, "k": 2, "regenerate": True, "min_relevance": 0}
    reply = server.client.post("/api/v1/ask", json=body).json()
    return reply["evidence"]["query"], [hit["document_id"] for hit in reply["evidence"]["hits"]]


@pytest.mark.parametrize("kind", UNTRUSTED)
def test_what_is_no_rewriting_is_not_searched(served: tuple[RunningServer, dict[str, ChatOutcome]], kind: str) -> None:
    server, rewriting = served
    rewriting["reply"] = UNTRUSTED[kind]
    query, documents = ask(server, QUESTION, kind)
    assert query == f"{QUESTION} (KT-5)"
    assert documents[0] == "kettle.md"
    query, documents = ask(server, "How many people are employed in Aldby?", kind)
    assert query == "How many people are employed in Aldby?"
    assert documents == ["staff.md", "kettle.md"], "the question as typed and the last question are searched"


def test_a_failure_of_the_model_is_no_rewriting(served: tuple[RunningServer, dict[str, ChatOutcome]]) -> None:
    server, rewriting = served
    rewriting["reply"] = RejectionFault(500, "boom")
    assert ask(server, QUESTION, "failure")[1][0] == "kettle.md"


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_rewriting_is_searched_without_its_wrapping(
    served: tuple[RunningServer, dict[str, ChatOutcome]], kind: str
) -> None:
    server, rewriting = served
    rewriting["reply"] = WRAPPED[kind]
    query, documents = ask(server, QUESTION, kind)
    assert query == REWRITING
    assert documents[0] == "kettle.md"


@pytest.mark.parametrize(
    "rewriting",
    ["HP-7: how long is its drain pipe?", "In the manual of the KT-5: how long is the drain pipe?"],
)
def test_a_colon_in_a_question_is_no_label(
    served: tuple[RunningServer, dict[str, ChatOutcome]], rewriting: str
) -> None:
    server, replies = served
    replies["reply"] = rewriting
    assert ask(server, QUESTION, rewriting)[0] == rewriting
