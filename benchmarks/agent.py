"""A scripted agent answers two-hop questions over MCP: steps, tokens read, and complete evidence.

    python benchmarks/agent.py --benchmark DIR --store DIR [--questions 20] [--json FILE]

``--benchmark`` is a BEIR folder of 2WikiMultiHopQA and ``--store`` an index of its corpus. The agent has no language
model. It is a program with the rules of the skill of ``polyad agent install``: it asks for one fact at a time, takes
the name from the answer, and asks for the next fact with this name. In one of two runs it looks for a name with
``find_text`` if no passage is about it. It sees the index through the tools of ``polyad mcp`` alone. The first
questions of the file whose form it can divide are asked.

Evidence is complete if the agent has read a passage of each gold article. An answer counts if the text read for the
last question contains it, so this is no measure of answers that a model would write. One call of ``find_evidence`` with
the whole question stands beside the agent.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from measured_rows import write_rows

from polyad.text.words import count_tokens

ROLES = "director|performer|composer|mother|father|wife|husband|spouse|founder|author|editor|publisher|producer"
CUES = {
    "director": r"directed by|director|film by",
    "performer": r"performed by|recorded by|sung by|singer|song by|single by|by",
    "composer": r"composed by|written by|composer|songwriter|by",
    "mother": r"mother|daughter of|son of|and",
    "father": r"father|daughter of|son of",
    "wife": r"wife|married|spouse",
    "husband": r"husband|married|wife of|spouse",
    "spouse": r"married|wife|husband|spouse",
}
"""Words before the name that has a role. Where none precedes a name, the first name of the text is taken."""

NAME = r"[A-ZÀ-Þ][\w.'-]*(?: (?:(?:of|de|von|van|da|di|the|la|le|al|bin) )*[A-ZÀ-Þ][\w.'-]*)*"
TWO_HOPS = (
    re.compile(
        rf".*(?P<phrase>the (?P<role>{ROLES}) of (?:the )?(?:film |song )?(?P<subject>.+?))"
        r"(?= \(Film\)| (?:born|died?|work|study|from|buried|is from|graduated?|win)\b|\?)"
    ),
    re.compile(
        r"(?:(?:Who|What|When|Where|Why) (?:is|did|was) )?"
        rf"(?P<phrase>(?P<subject>[A-Z].*?)'s (?P<role>{ROLES}))(?= \w|'s)"
    ),
)
"""Forms of a question whose part, the name of a person with a role, can be asked first."""

K = 3
NAMES_TRIED = 2


class Question(NamedTuple):
    """A question that can be divided: about a person with a role, who has to be named first."""

    text: str
    first: str
    subject: str
    role: str
    phrase: str
    gold: frozenset[str]
    answers: tuple[str, ...]


@dataclass
class Reading:
    """What an agent has read for one question.

    Attributes:
        steps: Number of calls.
        tokens: Tokens of the results.
        documents: Ids of the documents read.
        seen: Ids of the passages read.
        last: Text of the last results.
    """

    steps: int = 0
    tokens: int = 0
    documents: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)
    last: str = ""


class Agent:
    """Answers questions by the tools of an MCP server.

    Args:
        client: The client of the server.
        finds_text: Whether the agent may call ``find_text``.
    """

    def __init__(self, client: Client, finds_text: bool) -> None:
        self._client = client
        self._finds_text = finds_text

    async def call(self, reading: Reading, tool: str, **arguments: object) -> Any:
        """Call a tool and record what was read."""
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        shape: Any = result.structured_content
        reading.steps += 1
        reading.tokens += count_tokens(json.dumps(shape, ensure_ascii=False))
        items = shape.get("evidence", shape.get("matches", []))
        reading.documents.update(item["document_id"] for item in items)
        reading.seen += [item["id"] for item in items if item["id"] not in reading.seen]
        return shape

    async def ask(self, reading: Reading, question: str, name: str) -> list[dict[str, Any]]:
        """Return the evidence for a question about a name, the passages about the name first."""
        shape = await self.call(reading, "find_evidence", question=question, k=K, max_tokens=1500)
        items = [{**item, "text": item["excerpt"]} for item in shape["evidence"]]
        if self._finds_text and not any(_is_about(item, name) for item in items):
            shape = await self.call(reading, "find_text", pattern=name, ignore_case=True, max_tokens=600)
            items = [*shape["matches"], *items]
        return sorted(items, key=lambda item: not _is_about(item, name))

    async def answer(self, question: Question) -> Reading:
        """Ask for the person that the question describes, then for what is asked of this person."""
        reading = Reading()
        names: list[str] = []
        for item in await self.ask(reading, question.first, question.subject):
            names += [name for name in _find_names(item["text"], question) if name not in names]
        texts: list[str] = []
        for name in names[:NAMES_TRIED]:
            items = await self.ask(reading, question.text.replace(question.phrase, name), name)
            texts += [item["text"] for item in items]
            if any(_is_about(item, name) for item in items):
                break
        reading.last = "\n".join(texts)
        return reading


def _is_about(item: dict[str, Any], name: str) -> bool:
    """Return whether the title of a passage names ``name``."""
    title, words = item["place"].casefold(), name.casefold().split()
    return all(word.strip("().,") in title for word in words)


def _find_names(text: str, question: Question) -> list[str]:
    """Return names in a text that the question lacks, those behind a word for the role first."""
    question_text = question.text.casefold()
    names = [match for match in re.finditer(NAME, text) if match[0].casefold() not in question_text]
    cue = CUES.get(question.role, question.role)
    behind = [
        match for match in names if re.search(rf"\b(?:{cue})\b[^.]{{0,25}}$", text[: match.start()], re.IGNORECASE)
    ]
    people = [match[0].rstrip(".") for match in [*behind, *names] if " " in match[0]]
    return list(dict.fromkeys(people))


def read_questions(folder: Path, number: int) -> tuple[list[Question], int]:
    """Return the first questions that can be divided, and the number of the others between them."""
    gold = defaultdict(set)
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            gold[row["query-id"]].add(row["corpus-id"])
    questions: list[Question] = []
    skipped = 0
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["metadata"]["type"] not in ("compositional", "inference"):
            continue
        match = next((match for form in TWO_HOPS if (match := form.search(record["text"]))), None)
        if match is None:
            skipped += 1
            continue
        subject, role = match["subject"], match["role"]
        first = f"Who is the {role} of {subject}?"
        answers = tuple(record["metadata"]["answers"])
        articles = frozenset(gold[record["_id"]])
        questions.append(Question(record["text"], first, subject, role, match["phrase"], articles, answers))
        if len(questions) == number:
            break
    return questions, skipped


def _summarise(retriever: str, agent: str, readings: list[tuple[Question, Reading]]) -> dict[str, object]:
    count = len(readings)
    return {
        "retriever": retriever,
        "agent": agent,
        "questions": count,
        "steps": round(sum(reading.steps for _, reading in readings) / count, 2),
        "tokens": round(sum(reading.tokens for _, reading in readings) / count),
        "complete": sum(question.gold <= reading.documents for question, reading in readings),
        "answer_read": sum(
            any(answer.casefold() in reading.last.casefold() for answer in question.answers)
            for question, reading in readings
        ),
    }


async def measure(store: Path, retriever: str, questions: list[Question], verbose: bool) -> list[dict[str, object]]:
    """Ask all questions in three ways, and return a row for each."""
    arguments = ["-m", "polyad", "mcp", "--store", str(store), "--retriever", retriever]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ})
    rows = []
    async with Client(stdio_client(server)) as client:
        single = Agent(client, finds_text=False)
        readings = []
        for question in questions:
            reading = Reading()
            shape = await single.call(reading, "find_evidence", question=question.text, k=2 * K, max_tokens=3000)
            reading.last = "\n".join(item["excerpt"] for item in shape["evidence"])
            readings.append((question, reading))
        rows.append(_summarise(retriever, "one call of find_evidence, k=6", readings))
        for finds_text in (False, True):
            agent = Agent(client, finds_text)
            readings = [(question, await agent.answer(question)) for question in questions]
            rows.append(_summarise(retriever, f"agent {'with' if finds_text else 'without'} find_text", readings))
            for question, reading in readings if verbose else ():
                print(question.gold <= reading.documents, reading.steps, question.text, file=sys.stderr)
    return rows


def main() -> None:
    """Measure and print a row for each way to ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--benchmark", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--retrievers", default="default,dense")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", type=Path, help="save the results here")
    arguments = parser.parse_args()
    questions, skipped = read_questions(arguments.benchmark, arguments.questions)
    print(f"{len(questions)} questions; {skipped} between them have another form", file=sys.stderr)
    rows = [
        row
        for retriever in arguments.retrievers.split(",")
        for row in anyio.run(measure, arguments.store, retriever, questions, arguments.verbose)
    ]
    for row in rows:
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ")
    if arguments.json:
        write_rows(arguments.json, rows)


if __name__ == "__main__":
    main()
