"""Runs that are kept: ``polyad eval --out``, and the commands that read such folders."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner, Result

from polyad import sample
from polyad.cli import app
from polyad.engine import Engine
from polyad.language_models.scripted import Request
from polyad.model import Evidence
from polyad_bench.files import RecordFile
from polyad_bench.runs.run_folder import RunWriter
from tests.cli.forked import kill_after, kill_after_answers, run_forked
from tests.faults import RejectionFault
from tests.scripted_server import ScriptedServer

pytestmark = pytest.mark.usefixtures("empty_figures")

Run = Callable[..., Result]

FIVE = {"q1": "Who cast the bell of Tarn?", "q2": "Where was Ines Moreau born?", "q3": "What do otters eat?"}
CORPUS = {
    "bell": ("Bell of Tarn", "The Bell of Tarn was cast by Ines Moreau."),
    "moreau": ("Ines Moreau", "Ines Moreau was born in Aldby, on the river Isk."),
    "otter": ("otter", "An otter eats fish and crabs."),
    "isk": ("Isk", "The Isk is a river. Otters live on its banks."),
}
GOLD = {"q1": ["bell", "moreau"], "q2": ["moreau"], "q3": ["otter"]}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "tarn"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id, "title": title, "text": text} for id, (title, text) in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    queries = [{"_id": id, "text": text, "metadata": {"answers": ["x"]}} for id, text in FIVE.items()]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    judged = "".join(f"{id}\t{document}\t1\n" for id, documents in GOLD.items() for document in documents)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str | Path, **environment: str) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)

    return invoke


def measure(run: Run, *arguments: str | Path) -> Any:
    result = run("eval", *arguments, "--embedder", "hashing:64", "--json")
    assert result.exit_code == 0, result.output
    shape = json.loads(result.stdout)
    assert shape.pop("schema") == 1
    return shape


def error_of(result: Result, code: int = 2) -> str:
    assert result.exit_code == code, result.output
    assert not result.stdout or set(json.loads(result.stdout)) == {"schema", "error"}
    return " ".join(result.stderr.split())


def test_a_run_that_is_kept_prints_what_its_files_say(run: Run, dataset: Path, tmp_path: Path) -> None:
    shape = measure(run, "tarn", "--retriever", "bm25,default", "-k", "2", "--out", "kept", "--store", "kb")
    files = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    assert files.keys() == {
        *("manifest.json", "cost.json", "hypergraph.json", "per_query.jsonl", "passages.jsonl", "run.trec"),
        *("results.json", "titles.json"),
    }
    assert shape == json.loads(files["results.json"])
    (tmp_path / "kept" / "results.json").unlink()
    (tmp_path / "kept" / "run.trec").unlink()
    assert measure(run, "tarn", "--retriever", "bm25,default", "-k", "2", "--out", "kept") == shape
    assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == files
    alone = measure(run, "tarn", "--retriever", "bm25,default", "-k", "2", "--store", "kb")
    for one, other in zip(alone["results"], shape["results"], strict=True):
        assert {**one, "latency_ms": 0} == {**other, "latency_ms": 0}


def log_searches() -> None:
    """Write the retriever and question of each search to a file."""
    search = Engine.search

    def log(engine: Engine, question: str, *arguments: Any, **options: Any) -> Evidence:
        with Path("asked.log").open("a", encoding="utf-8") as file:
            print(options["retriever"], question, file=file)
        return search(engine, question, *arguments, **options)

    setattr(Engine, "search", log)  # noqa: B010  # mypy refuses the assignment of a method


def test_a_run_that_was_killed_asks_only_what_is_missing(dataset: Path, tmp_path: Path) -> None:
    arguments = [
        "eval",
        "tarn",
        "--retriever",
        "bm25,default",
        "--embedder",
        "hashing:64",
        "--store",
        "kb",
        "--out",
        "kept",
        "--json",
    ]

    def process(questions: int) -> CompletedProcess[str]:
        def prepare() -> None:
            log_searches()
            kill_after(RunWriter, "add_record", questions)

        return run_forked(arguments, prepare, folder=tmp_path)

    assert process(2).returncode == -signal.SIGKILL
    assert process(2).returncode == -signal.SIGKILL
    assert len((tmp_path / "kept" / "per_query.jsonl").read_text().splitlines()) == 4
    last = process(99)
    assert last.returncode == 0, last.stderr
    queries = (tmp_path / "asked.log").read_text().splitlines()
    assert queries == [f"{name} {question}" for name in ("bm25", "default") for question in FIVE.values()]
    assert [row["retriever"] for row in json.loads(last.stdout)["results"]] == ["bm25", "default"]


def test_a_run_of_something_else_is_not_mixed_in(run: Run, dataset: Path) -> None:
    measure(run, "tarn", "--retriever", "bm25", "--out", "kept")
    result = run("eval", "tarn", "--retriever", "bm25", "-k", "3", "--embedder", "hashing:64", "--out", "kept")
    assert "holds a run with k = 5, not 3; give another --out for this one" in error_of(result)


def test_compare_is_a_gate(run: Run, dataset: Path, tmp_path: Path) -> None:
    measure(run, "tarn", "--retriever", "bm25,none", "--out", "kept")
    shape = json.loads(run("bench", "compare", "kept", "--json").stdout)
    (comparison,) = shape["comparisons"]
    assert (comparison["first"], comparison["second"]) == ("kept:bm25", "kept:none")
    assert comparison["differences"][0]["difference"] == -comparison["differences"][0]["first"] < 0
    assert {question["query_id"] for question in comparison["questions"]} <= FIVE.keys()
    fallen = run("bench", "compare", "kept", "--fail-below", "recall@5=-0.5")
    assert fallen.exit_code == 1
    assert "kept:none: recall@5 is -" in fallen.stderr
    assert "against kept:bm25; allowed is -0.50" in fallen.stderr
    assert "recall@5 is worse on" in fallen.stdout
    assert "none: not found: Bell of Tarn; not found: Ines Moreau" in fallen.stdout
    (tmp_path / "kept" / "titles.json").unlink()  # as in a run that was stored by an earlier version
    assert "none: not found: Bell of Tarn; not found:" in run("bench", "compare", "kept").stdout
    assert run("bench", "compare", "kept:none", "kept:bm25", "--fail-below", "recall@5=-0.5").exit_code == 0
    assert "3 runs were given; expected one or two" in error_of(run("bench", "compare", "kept", "kept", "kept"))
    assert "no measure 'luck@5'" in error_of(run("bench", "compare", "kept", "--measures", "luck@5"))


def test_questions_lead_from_a_folder_to_a_table(run: Run, dataset: Path, tmp_path: Path) -> None:
    folder = Path(sample.__file__).parent / "documents"
    made = run("bench", "questions", folder, "--out", "own", "--count", "5", "--json")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout) == {
        "schema": 1,
        "passages": 12,
        "questions": {"known-item": 5, "two-hop": 5},
        "folder": "own",
    }
    (row,) = measure(run, "own", "--retriever", "bm25")["results"]
    assert 0 < row["recall@5"] <= 1
    assert "'own' is not empty" in error_of(run("bench", "questions", folder, "--out", "own"))
    assert "expected either" in error_of(run("bench", "questions", "--out", "new"))
    assert run("index", "tarn/corpus.jsonl", "--store", "kb", "--embedder", "hashing:64").exit_code == 0
    again = run("bench", "questions", "--store", "kb", "--out", "new")
    assert again.stderr == ""
    assert "new: 1 known-item, 1 two-hop questions\non 4 passages. Next: polyad eval new" in again.stdout


def test_documents_in_which_no_name_leads_anywhere_have_known_items_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The otter closes both of its small round ears whenever it dives for fish.")
    result = run("bench", "questions", "a.txt", "--out", "own", "--json")
    assert json.loads(result.stdout)["questions"] == {"known-item": 1, "two-hop": 0}
    assert "no two-hop questions" in result.stderr


def test_report_writes_what_eval_printed_anew(run: Run, dataset: Path, tmp_path: Path) -> None:
    shape = measure(run, "tarn", "--retriever", "bm25,none", "--out", "runs/one")
    first = run("bench", "report", "runs", "--json")
    assert first.exit_code == 0, first.output
    files = [tmp_path / name for name in json.loads(first.stdout)["files"]]
    files += [tmp_path / "runs" / "one" / name for name in ("results.json", "run.trec")]
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    assert run("bench", "report", "runs").exit_code == 0
    assert {path: path.read_bytes() for path in files} == before
    assert json.loads(before[tmp_path / "runs" / "one" / "results.json"]) == shape
    assert "'tarn' holds no run" in error_of(run("bench", "report", "tarn"))


def test_a_sweep_is_a_run_for_each_value_and_taken_up_again(run: Run, dataset: Path, tmp_path: Path) -> None:
    command = ("bench", "sweep", "tarn", "hypersu.decay=0.3,0.7", "--embedder", "hashing:64", "--out", "runs", "--json")
    first = run(*command)
    assert first.exit_code == 0, first.output
    shape = json.loads(first.stdout)
    assert [one["folder"] for one in shape["runs"]] == ["runs/tarn/hypersu.decay=0.3", "runs/tarn/hypersu.decay=0.7"]
    assert shape["runs"][0]["index"] == shape["runs"][1]["index"], "they share an index, and what it took"
    manifest = json.loads((tmp_path / "runs" / "tarn" / "hypersu.decay=0.7" / "manifest.json").read_text())
    assert manifest["settings"]["stages"]["hypersu"]["decay"] == 0.7
    assert "runs/report/tarn-sensitivity.svg" in shape["report"]
    assert json.loads(run(*command).stdout) == shape
    assert "expected benchmarks and settings" in error_of(run("bench", "sweep", "tarn", "--out", "runs"))
    message = error_of(run("bench", "sweep", "tarn", "hypersu.deacy=1", "--out", "runs"))
    assert "'hypersu.deacy' is no setting" in message
    assert "expected a folder for the runs" in error_of(run("bench", "sweep", "tarn", "hypersu.decay=1"))


def test_an_experiment_is_what_its_file_says(run: Run, dataset: Path, tmp_path: Path) -> None:
    plan = 'benchmarks = ["tarn"]\nretrievers = ["hypersu"]\nembedder = "hashing:64"\nout = "runs"\n'
    (tmp_path / "plan.toml").write_text(plan + '[variants.window]\n"segmentation.method" = "window"\n')
    result = run("bench", "experiment", "plan.toml")
    assert result.exit_code == 0, result.output
    assert "## tarn, 3 questions, k = 5" in result.stdout
    assert (tmp_path / "runs" / "tarn" / "window" / "results.json").exists()
    (tmp_path / "plan.toml").write_text(plan + "retriever = 1\n")
    message = error_of(run("bench", "experiment", "plan.toml"))
    assert "'plan.toml', line 5: retriever is no key of an experiment" in message


def test_an_ablation_measures_without_each_part(run: Run, dataset: Path) -> None:
    result = run("bench", "ablate", "tarn", "--retriever", "hypergraphrag", "--embedder", "hashing:64", "--out", "runs")
    assert result.exit_code == 0, result.output
    names = ["as set", "without entities", "without hyperedges", "without passages"]
    assert [name for name in names if f"| {name} |" in result.stdout] == names
    message = error_of(run("bench", "ablate", "tarn", "--retriever", "bm25"))
    assert "retriever is 'bm25'; expected one of hypersu" in message


def answer_and_judge(request: Request) -> str:
    """Right about the bell, wrong about all else; one judgement of it all is no JSON, whoever asks."""
    question = str(request["messages"][-1]["content"])
    if '"statements"' in question:
        return '{"statements": ["x"]}'
    if "Question: " in question:
        return "Ines Moreau [1]." if "bell of Tarn?" in question else "I do not know."
    if '{"score": 0}' in question:
        return '{"score": 5}'
    if '"answer_only"' in question:
        return '{"both": ["x"], "answer_only": [], "reference_only": ["y"]}'
    if "otters" in question:
        return "It is hard to say."
    return json.dumps({"correct": "\nInes Moreau.\n" in question})


def test_answers_and_judgements_survive_being_killed_and_are_asked_for_once(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = {"q1": ["Ines Moreau"], "q2": ["Aldby"], "q3": ["fish"]}
    queries = [{"_id": id, "text": text, "metadata": {"answers": accepted[id]}} for id, text in FIVE.items()]
    (dataset / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    judges = "gpt_acc,graphrag_bench,g_e,r_s"
    command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--store", "kb", "--out", "kept"]
    command += ["--model", "scripted", "--replies", "replies.sqlite", "--answers", "--judge", judges, "--json"]

    with ScriptedServer(answer_and_judge) as server:
        environment = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "none",
            "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1",  # else what others had asked for is lost when it is killed
        }

        def process(records: int) -> CompletedProcess[str]:
            return run_forked(command, partial(kill_after_answers, records), folder=tmp_path, environment=environment)

        assert process(2).returncode == -signal.SIGKILL
        assert process(4).returncode == -signal.SIGKILL
        last = process(999)
        assert last.returncode == 0, last.stderr
        prompts = [str(recorded.body["messages"][-1]["content"]) for recorded in server.requests]
        answering = [prompt for prompt in prompts if "Question: " in prompt]
        assert len(answering) == len(set(answering)) == 3
        (result,) = json.loads(last.stdout)["results"]
        assert process(999).stdout == last.stdout
        monkeypatch.chdir(tmp_path)
        people = CliRunner().invoke(app, command[:-1], env=environment)
        assert len(server.requests) == len(prompts), "all is there"
    assert people.exit_code == 0, people.output
    assert "50.0* (2 / 3)" in people.stdout
    actual = result["answers"]
    exact, contained = actual["em"]["value"], actual["contain_acc"]["value"]
    assert exact == contained == pytest.approx(1 / 3, abs=1e-3), "a citation is no part of an answer"
    assert actual["gpt_acc"] == {"value": 0.5, "counted": 2, "asked": 3, "enough": False}
    assert (actual["graphrag_bench"]["counted"], actual["g_e"]["counted"], actual["r_s"]["counted"]) == (3, 3, 3)
    answered = [json.loads(line) for line in (tmp_path / "kept" / "answers.jsonl").read_text().splitlines()]
    cast = next(line for line in answered if line["query_id"] == "q1")
    assert cast["context"] == "Bell of Tarn\nThe Bell of Tarn was cast by Ines Moreau."
    lines = [json.loads(line) for line in (tmp_path / "kept" / "judgements.jsonl").read_text().splitlines()]
    unread = [line for line in lines if line["judge"] == "gpt_acc" and line["value"] is None]
    assert [line["reply"] for line in unread] == ["It is hard to say."] * 3
    actual = CliRunner().invoke(app, ["bench", "report", str(tmp_path / "kept"), "--out", str(tmp_path / "report")])
    assert actual.exit_code == 0, actual.output
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert "50.0* (2 / 3)" in tables
    assert "| r_s | gold documents of 3 questions | bm25 |" in tables
    assert "| statement_f1 | 3 requests for each answer | bm25 |" in tables
    assert "| c_rec_words | words | bm25 |" in tables


def test_questions_are_answered_side_by_side_and_failures_left_for_the_next_run(
    run: Run, dataset: Path, tmp_path: Path
) -> None:
    together, waiting, failing = threading.Event(), threading.Semaphore(2), True

    def reply(request: Request) -> str | RejectionFault:
        if not waiting.acquire(blocking=False):
            together.set()
        question = str(request["messages"][-1]["content"])
        if failing and "otters" in question:
            return RejectionFault(400)
        return "Yes." if together.wait(20) else "Alone."

    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        command = ("eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--answers")
        result = run(*command, "--model", "scripted", **environment)
        assert result.exit_code == 1, result.output
        assert "no answer to q3" in result.stderr
        failing = False
        again = run(*command, "--model", "scripted", **environment)
        assert again.exit_code == 0, again.output
    lines = [json.loads(line) for line in (tmp_path / "kept" / "answers.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == ["Yes."] * 3
    assert lines[2]["query_id"] == "q3"


def test_answers_need_a_model_and_a_folder(run: Run, dataset: Path) -> None:
    assert "expected one with --out DIR" in error_of(run("eval", "tarn", "--answers"))
    assert "--answers needs a language model" in error_of(run("eval", "tarn", "--answers", "--out", "kept"))
    assert "judge is 'luck'; expected one of gpt_acc" in error_of(run("eval", "tarn", "--judge", "luck", "--out", "k"))


def test_refusal_asks_again_without_gold_and_is_taken_up_where_it_was_killed(
    run: Run, dataset: Path, tmp_path: Path
) -> None:
    command = ["eval", "tarn", "--retriever", "bm25,default", "--embedder", "hashing:64", "--out", "kept", "--refusal"]
    prepare = partial(kill_after, RecordFile, "append", 2, lambda file, *_: "without_gold" in str(file.path))
    process = run_forked(command, prepare, folder=tmp_path)
    assert process.returncode == -signal.SIGKILL
    path = tmp_path / "kept" / "without_gold.jsonl"
    assert len(path.read_text().splitlines()) == 2
    actual = run(*command, "--json")
    assert actual.exit_code == 0, actual.output
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["retriever"], line["query"]["id"]) for line in lines] == [
        (name, id) for name in ("bm25", "default") for id in FIVE
    ]
    assert {passage["document_id"] for line in lines for passage in line["passages"]} == {"isk"}
    bm25, default = (result["refusal"] for result in json.loads(actual.stdout)["results"])
    assert (bm25["criterion"], default["criterion"], bm25["questions"]) == ("score", "relevance", 3)
    assert bm25["refused"] >= 2 / 3, "the Isk says nothing of a bell"
    before = path.read_bytes()
    people = run(*command)
    assert "without gold documents; refused where 5 % of the others are" in people.stdout
    assert path.read_bytes() == before
    assert run("bench", "report", "kept", "--out", "report").exit_code == 0
    assert "| ROC AUC |" in (tmp_path / "report" / "tables.md").read_text()
    assert "--refusal write into the folder of a run" in error_of(run("eval", "tarn", "--refusal"))


def test_refusal_needs_gold_documents_and_others(run: Run, dataset: Path) -> None:
    with (dataset / "qrels" / "test.tsv").open("a") as file:
        file.write("q3\tisk\t1\n")
    command = ("eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--refusal")
    assert "each document of tarn is gold: without them nothing is left" in error_of(run(*command))
    (dataset / "qrels" / "test.tsv").unlink()
    (dataset / "qrels").rmdir()
    assert "--refusal takes gold documents out of the index" in error_of(run(*command))


def test_the_judge_may_be_another_model_and_stays_the_same(run: Run, dataset: Path, tmp_path: Path) -> None:
    with ScriptedServer(answer_and_judge) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--answers"]
        command += ["--judge", "g_e", "--model", "small"]
        assert run(*command, "--judge-model", "large", **environment).exit_code == 0
        models = [recorded.body["model"] for recorded in server.requests]
        assert models == ["small"] * 3 + ["large"] * 21
        refused = run(*command, "--judge-model", "other", **environment)
        assert "was judged by 'large', not 'other'; name the same model" in error_of(refused)
        assert run(*command, "--judge-model", "large", **environment).exit_code == 0
        assert len(server.requests) == len(models)
    lines = [json.loads(line) for line in (tmp_path / "kept" / "judgements.jsonl").read_text().splitlines()]
    assert {line["model"] for line in lines} == {"large"}


def test_g_e_is_the_mean_of_seven_dimensions_that_see_the_reasoning_and_of_f1(
    run: Run, dataset: Path, tmp_path: Path
) -> None:
    query = {"_id": "q1", "text": FIVE["q1"], "metadata": {"answers": ["Ines Moreau"]}}
    (dataset / "queries.jsonl").write_text(json.dumps(query))
    points = {
        "correctness": 9,
        "relevance": 8,
        "factuality": 7,
        "comprehensiveness": 6,
        "knowledgeability": 5,
        "coherence": 4,
        "diversity": 3,
    }

    def reply(request: Request) -> str:
        question = str(request["messages"][-1]["content"])
        if "<given_answer>" not in question:
            return "<think>She cast bells.</think> <answer>It is Ines Moreau [1].</answer>"
        assert "<reasoning>\nShe cast bells.\n</reasoning>\n<given_answer>\nIt is Ines Moreau.\n" in question
        return json.dumps({"score": next(score for name, score in points.items() if f"its {name}:" in question)})

    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "POLYAD_MODEL": "small", "OPENAI_API_KEY": "none"}
        command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--answers"]
        result = run(*command, "--judge", "g_e", **environment, POLYAD_ANSWER_PROMPT="think-answer")
        assert result.exit_code == 0, result.output
    assert run("bench", "report", "kept", "--out", "report").exit_code == 0
    lines = (tmp_path / "report" / "tables.md").read_text().splitlines()
    header = next(line for line in lines if "g_e" in line)
    row = lines[lines.index(header) + 2]
    outputs = dict(zip(*([cell.strip() for cell in line.split("|")] for line in (header, row)), strict=True))
    assert {name: outputs[f"g_e.{name}"] for name in points} == {
        name: f"{10 * each}.0" for name, each in points.items()
    }
    f1 = 2 * 2 / (4 + 2)  # "it is ines moreau" and "ines moreau" share two words
    assert outputs["g_e"] == f"{100 * (sum(points.values()) / 70 + f1) / 2:.1f}" == "63.3"


def test_the_report_says_which_tokenizer_and_which_gold_text_were_used(run: Run, dataset: Path, tmp_path: Path) -> None:
    queries = [
        {"_id": "q1", "text": FIVE["q1"], "metadata": {"answers": ["Ines Moreau"], "evidence": ["Ines cast it."]}},
        {"_id": "q2", "text": FIVE["q2"], "metadata": {"answers": ["Aldby"]}},
    ]
    (dataset / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    words = ["Ines", "Moreau", "Aldby", "Tarn", "?"]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)} | {"-": 9}, "-"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "gpt2.json"))
    with ScriptedServer(["Ines Tarn.", "In Aldby."]) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_MODEL": "small"}
        environment |= {"POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1", "POLYAD_TOKENIZER": "gpt2.json"}
        command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--answers"]
        result = run(*command, "--judge", "r_s", "--json", **environment)
        assert result.exit_code == 0, result.output
        (tmp_path / "gpt2.json").write_text((tmp_path / "gpt2.json").read_text() + " ")
        assert "c_rec was judged by 'gpt2.json " in error_of(run(*command, **environment))
    answers = json.loads(result.stdout)["results"][0]["answers"]
    # The vocabulary has no other words, which are one token. "Ines - -" has Ines of Ines Moreau, "- Aldby -" has Aldby.
    assert answers["c_rec"]["value"] == (1 / 2 + 1) / 2
    # "Who cast the bell of Tarn?" is - Tarn ?, "Where was Ines Moreau born?" is - Ines Moreau ?.
    assert answers["a_rel"]["value"] == pytest.approx((2 / 3 + 1 / 4) / 2, abs=1e-4)
    assert run("bench", "report", "kept", "--out", "report").exit_code == 0
    tables = (tmp_path / "report" / "tables.md").read_text()
    assert re.search(r"\| c_rec \| tokens of gpt2\.json [0-9a-f]{12} \| bm25 \|", tables)
    assert "| c_rec_words | words | bm25 |" in tables
    assert "| r_s | stated evidence of 1 question, gold documents of 1 question | bm25 |" in tables


def test_judges_are_told_what_the_directory_of_prompts_says(run: Run, dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "judge_g_e.md"
    path.write_text('Rate its {name}. {"score": 0}', encoding="utf-8")
    with ScriptedServer(answer_and_judge) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "POLYAD_PROMPTS": "mine"}
        command = ["eval", "tarn", "--retriever", "bm25", "--embedder", "hashing:64", "--out", "kept", "--answers"]
        command += ["--judge", "g_e", "--model", "small"]
        result = run(*command, **environment)
        assert result.exit_code == 0, result.output
        questions = [str(recorded.body["messages"][-1]["content"]) for recorded in server.requests]
        assert sum('Rate its coherence. {"score": 0}' in one for one in questions) == 3
        assert run(*command, **environment).exit_code == 0
        path.write_text('How is its {name}? {"score": 0}', encoding="utf-8")
        refused = error_of(run(*command, **environment))
        assert "holds a run with prompts = " in refused, "judgements of two prompts are no average"
        assert len(server.requests) == len(questions)


def test_an_experiment_answers_in_each_mode_and_has_that_judged(run: Run, dataset: Path, tmp_path: Path) -> None:
    plan = 'benchmarks = ["tarn"]\nretrievers = ["bm25"]\nembedder = "hashing:64"\nout = "runs"\n'
    modes = 'answering = ["concise", "entities"]\njudges = ["g_e", "r_s"]\njudge_model = "large"\n'
    (tmp_path / "plan.toml").write_text(plan + modes)

    def reply(request: Request) -> str:
        question, message = str(request["messages"][-1]["content"]), str(request["messages"][0]["content"])
        if "JSON array" in message:
            return '["x", "Ines Moreau"]'
        return answer_and_judge(request) if "<given_answer>" in question else "x [1]."

    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        command = ("bench", "experiment", "plan.toml", "--store", "indexes", "--model", "small", "--json")
        result = run(*command, **environment)
        assert result.exit_code == 0, result.output
        request_count = len(server.requests)
        assert {recorded.body["model"] for recorded in server.requests} == {"small", "large"}
        assert run(*command, **environment).stdout == result.stdout
        assert len(server.requests) == request_count, "all is there"
    concise, entities = (one["results"][0]["answers"] for one in json.loads(result.stdout)["runs"])
    assert "mrr" not in concise
    assert (entities["mrr"]["value"], entities["g_e"]["counted"], concise["r_s"]["counted"]) == (1.0, 3, 3)
    folders = sorted(path.name for path in (tmp_path / "runs" / "tarn").iterdir())
    assert folders == ["as set, concise", "as set, entities"]
    assert len(list((tmp_path / "indexes").iterdir())) == 1, "they share an index"
    assert "answers needs a language model" in error_of(run("bench", "experiment", "plan.toml"))
    (tmp_path / "plan.toml").write_text(plan + 'judges = ["luck"]\n')
    assert "'plan.toml', line 5: judges has 'luck'; expected some of gpt_acc" in error_of(
        run("bench", "experiment", "plan.toml")
    )


def lines_of(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for path in sorted(folder.rglob(name)) for line in path.read_text().splitlines()]


def killed_after(records: int, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run polyad in a process of its own, which is killed once so many answers and judgements are stored."""
    process = run_forked(command, partial(kill_after_answers, records), folder=folder, environment=environment)
    assert process.returncode == -signal.SIGKILL, process.stderr


def test_a_sweep_is_answered_and_judged_and_taken_up_where_it_was_killed(
    run: Run, dataset: Path, tmp_path: Path
) -> None:
    command = [
        "bench",
        "sweep",
        "tarn",
        "answer.prompt=concise,think-answer",
        "--retriever",
        "bm25",
        "--out",
        "runs",
        "--json",
    ]
    command += ["--embedder", "hashing:64", "--store", "indexes", "--answers", "--judge", "gpt_acc,r_s"]
    command += ["--model", "small", "--judge-model", "large"]
    with ScriptedServer(answer_and_judge) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        one_by_one = {**environment, "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1"}
        killed_after(2, command, tmp_path, one_by_one)
        assert len(lines_of(tmp_path / "runs", "answers.jsonl")) == 2
        killed_after(10, command, tmp_path, one_by_one)  # among the answers of the second value
        assert sorted(path.name for path in (tmp_path / "runs" / "tarn").iterdir()) == [
            "answer.prompt=concise",
            "answer.prompt=think-answer",
        ]
        actual = run(*command, **environment)
        assert actual.exit_code == 0, actual.output
        questions = [recorded.body for recorded in server.requests]
        assert run(*command, **environment).stdout == actual.stdout
        assert len(server.requests) == len(questions), "all is there"
    answering = [json.dumps(body["messages"]) for body in questions if body["model"] == "small"]
    assert len(answering) == len(set(answering)) == 6, "each question once in each mode"
    judging = [body for body in questions if body["model"] == "large"]
    remaining = [line for line in lines_of(tmp_path / "runs", "judgements.jsonl") if line["judge"] == "gpt_acc"]
    assert len(remaining) <= len(judging) <= len(remaining) + 2, "but for those under way when it was killed"
    for one in json.loads(actual.stdout)["runs"]:
        (result,) = one["results"]
        assert (result["answers"]["r_s"]["counted"], result["answers"]["gpt_acc"]["asked"]) == (3, 3)
    assert "50.0* (2 / 3)" in (tmp_path / "runs" / "report" / "tables.md").read_text()


def test_an_ablation_is_answered_and_judged(run: Run, dataset: Path, tmp_path: Path) -> None:
    command = ["bench", "ablate", "tarn", "--retriever", "hypergraphrag", "--embedder", "hashing:64", "--out", "runs"]
    command += ["--answers", "--judge", "gpt_acc"]
    with ScriptedServer(answer_and_judge) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        result = run(*command, "--model", "small", "--json", **environment)
    assert result.exit_code == 0, result.output
    assert [len(one["results"][0]["answers"]) > 1 for one in json.loads(result.stdout)["runs"]] == [True] * 6
    assert len(lines_of(tmp_path / "runs", "answers.jsonl")) == 6 * 3
    naive = tmp_path / "runs" / "tarn" / "without entities, hyperedges and passages"
    answered = [json.loads(line) for line in (naive / "answers.jsonl").read_text().splitlines()]
    assert all(line["text"] for line in answered), "the model answers from its own knowledge"
    command[command.index("runs")] = "others"
    assert "--answers needs a language model" in error_of(run(*command))
    command[command.index("gpt_acc")] = "luck"
    assert "judge is 'luck'; expected one of gpt_acc" in error_of(run(*command, "--model", "small"))
    assert not (tmp_path / "others").exists(), "nothing was measured for nothing"


def test_judging_that_was_killed_asks_for_no_judgement_that_is_kept(run: Run, dataset: Path, tmp_path: Path) -> None:
    command = ["eval", "tarn", "--retriever", "bm25,default", "--embedder", "hashing:64", "--store", "kb"]
    command += ["--out", "kept", "--model", "small", "--answers"]
    judging = [*command, "--judge", "g_e", "--judge-model", "large"]
    with ScriptedServer(answer_and_judge) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        assert run(*command, **environment).exit_code == 0
        sent = len(server.requests)
        for records in (5, 11, 7):
            before = lines_of(tmp_path / "kept", "judgements.jsonl")
            killed_after(records, judging, tmp_path, {**environment, "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "4"})
            assert len(lines_of(tmp_path / "kept", "judgements.jsonl")) == len(before) + records
        before = lines_of(tmp_path / "kept", "judgements.jsonl")
        asked_before = len(server.requests)
        assert run(*judging, **environment).exit_code == 0
        request_count = len(server.requests)
    remaining = lines_of(tmp_path / "kept", "judgements.jsonl")
    assert len(remaining) == len({(one["retriever"], one["query_id"], one["judge"]) for one in remaining}) == 2 * 3 * 7
    assert request_count - asked_before == len(remaining) - len(before), "what is missing, and nothing else"
    # Each kill loses the four requests under way, and replies that arrived while the last record was being stored.
    assert request_count - sent <= len(remaining) + 3 * (4 + 4)


def test_written_questions_lead_from_a_folder_to_a_table_though_killed_half_way(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def writing(request: Request) -> str:
        question = str(request["messages"][-1]["content"])
        facts = question.split("<facts>")[1].split("</facts>")[0].split()
        return json.dumps({"question": f"Of what is it said: {' '.join(facts)}?", "answer": "x"})

    folder = Path(sample.__file__).parent / "documents"
    command = [
        "bench",
        "questions",
        str(folder),
        "--out",
        "own",
        "--written",
        "--hops",
        "3,2,1",
        "--model",
        "scripted",
        "--json",
    ]
    with ScriptedServer(writing) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        killed = run_forked(
            command,
            partial(kill_after, RecordFile, "append", 4),
            folder=tmp_path,
            environment={**environment, "POLYAD_LANGUAGE_MODEL_CONCURRENCY": "1"},
        )
        assert killed.returncode == -signal.SIGKILL
        assert {path.name for path in (tmp_path / "own").iterdir()} == {"plan.json", "written.jsonl"}
        result = run(*command, **environment)
        assert result.exit_code == 0, result.output
        prompts = [str(recorded.body["messages"][-1]["content"]) for recorded in server.requests]
        assert len(prompts) <= len(set(prompts)) + 1, "but for the one under way, none was asked for twice"
    kinds = [f"{source}-{number}-hop" for source in ("binary", "n-ary") for number in (1, 2, 3)]
    assert json.loads(result.stdout)["questions"] == dict(zip(kinds, [1, 0, 0, 3, 2, 1], strict=True))
    assert "fewer questions than requested: 1 of 3 binary-1-hop, 0 of 2 binary-2-hop" in " ".join(result.stderr.split())
    assert "is not empty" in error_of(run(*command))
    (row,) = measure(run, "own", "--retriever", "bm25")["results"]
    assert row["evidence_recall"]["at_words"]["2000"] > 0.5
    other = ("bench", "questions", folder, "--out", "new", "--written")
    assert "--written needs a language model" in error_of(run(*other))
    assert "--hops is '3,2'; expected three whole numbers" in error_of(run(*other, "--model", "x", "--hops", "3,2"))


def test_answers_are_judged_in_pairs_from_the_command_line(run: Run, dataset: Path, tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        question = str(request["messages"][-1]["content"])
        if "<first>" in question:
            return json.dumps({"better": "first" if "<first>\nGrounded" in question else "second"})
        return "Grounded [1]." if "<passage" in question else "Guessed."

    with ScriptedServer(reply) as server:
        environment = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        command = ("eval", "tarn", "--retriever", "none,bm25", "--embedder", "hashing:64", "--out", "kept", "--answers")
        assert run(*command, "--model", "small", **environment).exit_code == 0
        judging = ("bench", "compare", "kept", "--pairwise", "verdicts", "--model", "large")
        result = run(*judging, "--json", **environment)
        assert result.exit_code == 0, result.output
        request_count = len(server.requests)
        people = run(*judging, **environment)
        assert len(server.requests) == request_count, "all is there"
    (outcome,) = json.loads(result.stdout)["pairwise"]
    assert (outcome["first"], outcome["losses"], outcome["disagreements"], outcome["judged"]) == ("kept:none", 3, 0, 3)
    assert "whose answers are better" in people.stdout
    assert "--pairwise needs a language model" in error_of(run("bench", "compare", "kept", "--pairwise", "verdicts"))


def test_a_filter_restricts_the_searches_and_the_gold_documents(run: Run, dataset: Path) -> None:
    arguments = ("eval", dataset, "--retriever", "bm25", "--embedder", "hashing:32", "--store", "kb", "-q", "--json")
    whole = json.loads(run(*arguments).stdout)["results"][0]
    part = json.loads(run(*arguments, "--where", "id in (moreau, isk)").stdout)["results"][0]
    # No term of "Who cast the bell of Tarn?" stands in "moreau"; "otter" does not count, as the filter excludes it.
    assert (whole["recall@5"], part["recall@5"]) == (0.8333, 0.5)
    only_bell = json.loads(run(*arguments, "--where", "id = bell", "--out", "part").stdout)
    assert [only_bell["results"][0][name] for name in ("recall@5", "all_recall@5", "mrr")] == [1.0, 1.0, 1.0]
    rankings = [json.loads(line) for line in Path("part/per_query.jsonl").read_text().splitlines()]
    gold = {ranking["query"]["id"]: ranking["query"]["gold"] for ranking in rankings}
    assert gold == {"q1": ["bell"], "q2": [], "q3": []}
    assert {hit["document_id"] for ranking in rankings for hit in ranking["passages"]} <= {"bell"}
    other = run(*arguments, "--where", "id = otter", "--out", "part")
    assert other.exit_code == 2
    assert "where = " in json.loads(other.stdout)["error"]["message"]


@pytest.mark.parametrize("arguments", [("--where", "id = isk"), ("--where", "id = bell", "--refusal", "--out", "run")])
def test_a_filter_has_to_select_gold_documents_that_stay_in_the_index(
    run: Run, dataset: Path, arguments: tuple[str, ...]
) -> None:
    refused = run("eval", dataset, "--retriever", "bm25", "--embedder", "hashing:32", "-q", *arguments)
    assert refused.exit_code == 2
    assert "--where" in refused.stderr
