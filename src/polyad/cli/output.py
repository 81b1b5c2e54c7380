"""What the commands print: JSON for programs, text for people, progress on the error stream."""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from polyad.cli.places import also_in, file_of, named, place_in_words, shortened, snippet
from polyad.evaluation.datasets.beir import Question
from polyad.indexing.run import IndexReport
from polyad.model import Answer, Evidence, Usage
from polyad.protocols.components import Progress, silent
from polyad.schemas import versioned
from polyad.schemas.catalogue import FactShape
from polyad.schemas.measuring import missing
from polyad.text.cleaning import sanitize
from polyad.text.counting import format_count

_SNIPPET_CHARACTERS, _DEMO_CHARACTERS = 320, 160
_LISTED = ("table", "id", "name", "text", "package", "version")
_NAMED = 5  # of many things that one line is about

# To the streams


def say_json(value: Mapping[str, object]) -> None:
    """Print ``value`` as JSON, with the version of its shape, and nothing else."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(versioned(value), ensure_ascii=not is_unicode, indent=2))


def say(text: str = "") -> None:
    """Print a line of a result."""
    typer.echo(sanitize(text))


def say_piece(text: str) -> None:
    """Print a piece of an answer as it comes."""
    typer.echo(sanitize(text), nl=False)


def warn(kind: str, text: str) -> None:
    """Print one line on the error stream: ``polyad: error: ...``."""
    typer.echo(f"polyad: {kind}: {' '.join(sanitize(text).split())}", err=True)


def console() -> Console:
    """Where tables and wrapped text go: the standard output of this moment, without any interpretation of the text."""
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress]:
    """Draw progress on the error stream, unless that is no terminal or ``quiet``."""
    screen = Console(file=sys.stderr, stderr=True, markup=False, highlight=False, emoji=False)
    if quiet or not screen.is_terminal:  # a bar that is disabled ends with an empty line before rich 15
        yield silent
        return
    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("loading", total=None)

        def show(done: int, total: int | None, message: str) -> None:
            count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            bar.update(task, completed=done, total=total, description=f"{count} {message}")

        with _downloads_shown(show):
            yield show


@contextmanager
def _downloads_shown(show: Progress) -> Iterator[None]:
    """Have ``show`` told how far the library is in fetching a model, which it logs."""
    log, shown = logging.getLogger("polyad.progress"), _Shown(show)
    log.addHandler(shown)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(logging.NOTSET)
        log.propagate = True


class _Shown(logging.Handler):
    """Passes records that say how far something is on to a bar."""

    def __init__(self, show: Progress) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        done, total = getattr(record, "done", 0), getattr(record, "total", None)
        self._show(done, total, record.getMessage())


# Evidence


def show_evidence(evidence: Evidence, explain: bool) -> None:
    """Print numbered hits; with ``explain`` why each is there, and the walk that led to them."""
    out = console()
    if not evidence.passages:
        say(_nothing(evidence))
    for number, hit in enumerate(evidence.passages, 1):
        passage = hit.passage
        rest = filter(None, (file_of(hit.origin), f"{hit.score:.3f}", passage.id))
        head = f"{number}. {named(passage, hit.origin)}"
        out.print(_text(head, "bold") + _text(f"  {'  '.join(rest)}", "dim"), soft_wrap=True)
        _say_indented(snippet(hit, _SNIPPET_CHARACTERS))
        if hit.copies:
            _say_indented(f"also in: {some_of(list(also_in(hit)))}")
        if explain and hit.relevance is not None:
            _say_indented(f"relevance: {hit.relevance:.2f}")
        if explain and hit.reason:
            _say_indented(f"because: {hit.reason}")
        say()
    if explain and evidence.trace:
        say("How the passages were reached, by hyperedge; each passage by its number:")
        out.print(_trace_table(evidence))


def _nothing(evidence: Evidence) -> str:
    if evidence.best_relevance is None:
        return "nothing found"
    return f"nothing in the documents fits this question: best relevance {evidence.best_relevance:.2f}"


def _say_indented(text: str) -> None:
    """Print text wrapped to the width of the terminal."""
    width = max(20, console().width - 1)
    say(textwrap.fill(text, width, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False))


def _trace_table(evidence: Evidence) -> Table:
    """The columns of HyperSU's Table 18; without the matches where these are always the question."""
    places = {hit.passage.id: str(number) for number, hit in enumerate(evidence.passages, 1)}
    texts = {edge.hyperedge.id: edge.hyperedge.text for edge in evidence.hyperedges}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    has_matches = any(step.matched != evidence.question for step in evidence.trace)
    matched = [("matched", 3)] if has_matches else []
    for name, share in (("hyperedge", 4), *matched, ("reached", None), ("via", 2), ("passage", None)):
        table.add_column(name, ratio=share, max_width=None if share else 8)
    table.add_column("score", justify="right")
    for step in evidence.trace:
        cells = (
            shortened(texts.get(step.hyperedge_id, step.hyperedge_id), 120),
            *([step.matched] if has_matches else []),
            step.reached,
            ", ".join(step.via),
            places.get(step.passage_id, step.passage_id),
            f"{step.score:.3f}",
        )
        table.add_row(*(_text(cell) for cell in cells))
    return table


# Answers


def show_answer(answer: Answer, explain: bool, streamed: bool) -> None:
    """Print the answer, unless it was ``streamed`` already, and what it cites; without an answer, the evidence."""
    if answer.text and not streamed:
        say(answer.text)
    elif not answer.text and answer.evidence.best_relevance is None:  # else the note says it all
        show_evidence(answer.evidence, explain)
    cited = {citation.number: citation for citation in sorted(answer.citations, key=lambda citation: citation.number)}
    if answer.text and answer.evidence.passages and not cited and not answer.entities:
        warn("warning", "this answer cites none of the evidence; --explain shows what was found")
    if answer.entities:
        _say_where_names_stand(answer)
    if cited:
        say()
        say("Sources:")
    for number, citation in cited.items():
        title = citation.origin.title or citation.title or citation.document_id
        place = place_in_words(title, citation.location)
        say(f"  [{number}] {', '.join(filter(None, (place, file_of(citation.origin))))}  {citation.passage_id}")
    if answer.text and answer.evidence.passages and explain:
        say()
        show_evidence(answer.evidence, explain)
    if answer.dropped_citations:
        warn("warning", f"removed {format_count(answer.dropped_citations, 'citation')} that pointed at no passage")
    if answer.note:
        say(answer.note)


def _say_where_names_stand(answer: Answer) -> None:
    """Say for each name of an answer which sources hold it."""
    say()
    for name in answer.entities:
        numbers = [f"[{cited.number}]" for cited in answer.citations if cited.answer_span.of(answer.text) == name]
        say(f"  {name}  {''.join(numbers) or 'in none of the evidence'}")


# Indexes


def show_index_report(report: IndexReport) -> None:
    """Print what a run of indexing did."""
    counts = report.counts
    say(f"{counts.added} added, {counts.updated} updated, {counts.unchanged} unchanged, {len(report.failures)} failed")
    written = f"{format_count(counts.passages, 'passage')} and {format_count(counts.hyperedges, 'hyperedge')} written"
    say(f"{written} in {report.seconds:.1f} s")
    spared = set(report.protected)
    prunable = [id for id in report.missing if id not in spared]
    if prunable:
        fate = "removed, no longer there" if report.is_pruned else "no longer there, which --prune would remove"
        say(f"{len(prunable):,} {fate}: {some_of(prunable)}")
    if report.protected:
        fate = "no longer there, and not removed as nothing else is there either; polyad remove does"
        say(f"{len(report.protected):,} {fate}: {some_of(report.protected)}")
    for method, count in report.other_methods.items():
        say(f"{format_count(count, 'document')} kept the method {method}, which only --method would replace")
    if report.usage.calls:
        say(f"language model: {in_words(report.usage)}")
    for note, count in report.notes.items():
        say(f"  {note}: {count:,}")


def show_estimate(usage: Usage) -> None:
    """Print what indexing would cost."""
    if not usage.calls:
        say("no call to a language model would be made")
        return
    say(f"about {in_words(usage)}; prompts are counted, replies guessed")
    if not usage.cost:
        say("for the cost set prompt_price and completion_price in the section [language_model] of polyad.toml")


def in_words(usage: Usage) -> str:
    """Calls, tokens and, where prices are known, cost."""
    cost = f", ${usage.cost:,.4f}" if usage.cost else ""
    tokens = f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens"
    return f"{format_count(usage.calls, 'call')}, {tokens}{cost}"


def warn_of_failures(report: IndexReport) -> None:
    """Say on the error stream what was not indexed, and why."""
    if report.counts.stop_reason:
        left = f"; {format_count(report.counts.unprocessed, 'document')} left" if report.counts.unprocessed else ""
        warn("stopped", f"{report.counts.stop_reason}{left}")
    by_reason: dict[str, list[str]] = {}
    for failure in report.failures:
        by_reason.setdefault(failure.reason, []).append(failure.id)
    for reason, ids in by_reason.items():
        warn("failed", f"{some_of(ids)}: {reason}")
    if report.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.skipped_kinds.items())
        what = format_count(len(report.skipped), "file")
        warn("warning", f"skipped {what}: {kinds}; unsupported file type for --method {report.method}")


def some_of(ids: Sequence[str]) -> str:
    """The first of many ids, and how many more there are."""
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def warn_of_nothing(report: IndexReport, paths: Sequence[Path]) -> None:
    """Say on the error stream when there was nothing to index."""
    if report.is_empty:
        places = ", ".join(map(str, paths))
        warn("warning", f"nothing to index in {places}; expected files of the kinds that polyad index --help lists")


def warn_of_no_documents() -> None:
    """Say on the error stream that the index is empty."""
    warn("warning", "this index holds no documents; add some with polyad index")


def warn_of_duplicates(report: IndexReport) -> None:
    """Say on the error stream that documents were indexed under two ids, and what to do about it."""
    if report.duplicates:
        (id, earlier), count = report.duplicates[0], len(report.duplicates)
        warn(
            "warning",
            f"{format_count(count, 'document')} {'has' if count == 1 else 'have'} the content of another under another "
            f"id, such as {id} of {earlier}; a search finds both: take one out with polyad remove, and give a path the "
            "same way each time",
        )


def warn_of_others(report: IndexReport, documents: int, index: str = "the index") -> None:
    """Say on the error stream when an index of so many ``documents`` holds more than what was just indexed."""
    others = documents - report.counts.added - report.counts.updated - report.counts.unchanged
    if others > 0:
        warn("warning", f"{index} also holds {format_count(others, 'other document')}, searched too")


# The sample


def show_demo(report: IndexReport, found: Sequence[tuple[Question, Evidence]], store: str | None) -> None:
    """Print what ``polyad demo`` found, and what to do next."""
    out = console()
    show_index_report(report)
    for number, (query, evidence) in enumerate(found, 1):
        say()
        out.print(_text(f"{number}. {query.text}", "bold"))
        for hit in evidence.passages:
            if hit.passage.document_id in query.gold:
                _say_indented(f"* {hit.passage.title}: {snippet(hit, _DEMO_CHARACTERS)}")
        others = [hit.passage.title for hit in evidence.passages if hit.passage.document_id not in query.gold]
        _say_indented(f"also found: {', '.join(others)}")
        lost = missing(query, evidence)
        _say_indented(f"not found, though needed: {', '.join(lost)}" if lost else "(both documents it needs)")
    complete = sum(not missing(query, evidence) for query, evidence in found)
    say()
    say(f"{complete} of {len(found)} questions have all their evidence. No language model was used.")
    say('Next: polyad index YOUR_FOLDER --store kb, then polyad search "YOUR QUESTION" --store kb --explain')
    if store:
        say(f'Or ask this index: polyad search "QUESTION" --store {store}')


# Fields and tables


def show_fields(values: Mapping[str, object]) -> None:
    """Print names and values, one pair a line; what lies in a mapping or a list gets lines of its own.

    What a document says of itself is printed as it stands there: a year gets no comma.
    """
    rows: list[tuple[str, object]] = []
    for name, value in values.items():
        inner = value.items() if isinstance(value, Mapping) else [(name, value)]
        if name == "metadata":
            inner = [(key, str(item) if isinstance(item, int | float) else item) for key, item in inner]
        rows += [(key, item) for key, item in inner if value is item or item not in ("", None)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        label = name.replace("_", " ")
        if isinstance(value, Sequence) and not isinstance(value, str):
            say(f"{label}:")
            for item in value:
                say(f"  - {_on_one_line(item)}")
        else:
            say(f"{label:<{width}}  {_number(value) if isinstance(value, int | float) else value}".rstrip())


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}".rstrip("0").rstrip(".")


def show_list(items: Sequence[Mapping[str, object]]) -> None:
    """Print ids or names, one a line; behind the id of a hyperedge what it says, behind a row who adds it."""
    if not items:
        say("nothing found")
    for item in items:
        shown = [
            " ".join(str(item[key]).split())
            for key in ("table", "id", "name", "text", "package", "version")
            if key in item
        ]
        say("  ".join(shown))


def show_settings(settings: Sequence[Mapping[str, object]]) -> None:
    """Print settings as in the settings file, each with where it came from, unless that is the default."""
    section = ""
    for setting in settings:
        if setting["section"] != section:
            section = str(setting["section"])
            say(f"\n[{section}]")
        origin = "" if setting["origin"] == "default" else f"  # {setting['origin']}"
        say(f"{setting['key']} = {json.dumps(setting['value'], ensure_ascii=False)}{origin}")


def show_facts(facts: Sequence[FactShape]) -> None:
    """Print facts, each with the names in its roles."""
    if not facts:
        say("nothing found")
    for fact in facts:
        relation = f"{fact['relation']}  " if fact["relation"] else ""
        say(f"{fact['id']}  {relation}{' '.join(fact['text'].split())}")
        for role, names in _roles(fact).items():
            say(f"    {role or '-'}: {'; '.join(names)}")


def _roles(fact: FactShape) -> dict[str, list[str]]:
    """What is in each role, as it is read: entities known by an id with their label, numbers with their unit."""
    shown: dict[str, list[str]] = {role: [] for role in fact["roles"]} if fact["arguments"] else fact["roles"]
    for one in fact["arguments"]:
        value, unit, names = one["value"], one.get("unit", ""), one.get("names", [])
        if names:
            value = f"{names[0]} ({value})"
        shown[one["role"]].append(f"{value} {unit}" if unit and not value.endswith(unit) else value)
    return shown


def _on_one_line(item: object) -> str:
    if isinstance(item, Mapping):
        return "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in item.items() if value not in ("", None))
    return str(item)


def show_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Print rows of equal keys: the first column as text, the others as numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if place else "left", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_text(cell) for cell in row.values()))
    console().print(table)


def _text(words: str, style: str = "") -> Text:
    return Text(sanitize(words), style=style)
