"""The command ``polyad demo``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from polyad import sample
from polyad.cli import output
from polyad.cli.options import Depth, Json, Quiet, directory_for, load_settings
from polyad.cli.progress import progress_bar
from polyad.cli.streams import say, say_result
from polyad.engine import Engine
from polyad.indexing.run import IndexReport
from polyad.model import Evidence
from polyad.sample import SampleQuestion
from polyad.schemas.evidence import evidence_json
from polyad.schemas.places import get_excerpt, shorten
from polyad.schemas.reports import index_json
from polyad.text.json_types import format_value

_EXCERPT_CHARACTERS = 160


def demo(
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory that keeps the index of the sample.")
    ] = None,
    k: Depth = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try polyad on a bundled sample, offline.

    Indexes the sample and searches for the evidence of six questions. Each question needs two documents: one that
    mentions a name, and one about that name.

    Example: polyad demo --store demo-kb
    """
    settings = load_settings(k=k)
    with (
        directory_for(store) as directory,
        progress_bar(quiet or json) as progress,
        Engine.open(directory) as engine,
    ):
        report = engine.index_documents(sample.documents(), progress=progress)
        results = [(query, engine.search(query.text, settings.command.depth)) for query in sample.questions()]
    say_result(json, _demo_json(report, results), _show_demo, report, results, store)


def _show_demo(report: IndexReport, results: Sequence[tuple[SampleQuestion, Evidence]], store: str | None) -> None:
    """Print the questions of ``polyad demo`` with the passages that answer them, and commands to try next."""
    out = output.console()
    output.show_index_report(report)
    for number, (query, evidence) in enumerate(results, 1):
        say()
        out.print(output.style_text(f"{number}. {query.text}", "bold"))
        for hit in evidence.passages:
            if hit.passage.document_id in query.gold:
                output.say_indented(f"* {hit.passage.title}: {shorten(get_excerpt(hit), _EXCERPT_CHARACTERS)}")
        others = [hit.passage.title for hit in evidence.passages if hit.passage.document_id not in query.gold]
        output.say_indented(f"also found: {', '.join(others)}")
        missing = _find_missing_gold(query, evidence)
        output.say_indented(
            f"not found, though needed: {', '.join(missing)}" if missing else "(both documents it needs)"
        )
    complete = sum(not _find_missing_gold(query, evidence) for query, evidence in results)
    say()
    say(f"{complete} of {len(results)} questions have all their evidence. No language model was used.")
    say('Next: polyad index YOUR_FOLDER --store kb, then polyad search "YOUR QUESTION" --store kb --explain')
    if store:
        say(f'Or ask this index: polyad search "QUESTION" --store {shlex.quote(store)}')


def _demo_json(report: IndexReport, results: Sequence[tuple[SampleQuestion, Evidence]]) -> dict[str, object]:
    """Return the results of the demo as the JSON object that ``polyad demo --json`` prints."""
    return {
        "index": index_json(report),
        "questions": [
            {
                **format_value(evidence_json(evidence, explain=False)),
                "gold": sorted(query.gold),
                "missing": _find_missing_gold(query, evidence),
            }
            for query, evidence in results
        ],
    }


def _find_missing_gold(query: SampleQuestion, evidence: Evidence) -> list[str]:
    """Return the ids of a question's gold documents that the search did not retrieve."""
    return sorted(query.gold - {hit.passage.document_id for hit in evidence.passages})
