"""Results of the commands as text for people."""

from __future__ import annotations

import json
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from polyad.cli.streams import say, warn
from polyad.config import mask_place
from polyad.model import Answer, Evidence, ScoredPassage, Span, Usage
from polyad.schemas.evidence import select_hyperedges
from polyad.schemas.places import (
    describe_citation,
    describe_copies,
    describe_hit,
    get_excerpt,
    get_file_name,
    shorten,
    split_lines,
    summarize_hit,
)
from polyad.text.files import get_source_file
from polyad.text.validity import describe_validity, parse_bounds, parse_interval
from polyad.text.words import format_count, sanitize

if TYPE_CHECKING:
    from polyad.curation.curator import CorrectionReport, HistoryEntry
    from polyad.engine.maintenance import CheckReport
    from polyad.engine.transfer import ExportReport, ImportReport
    from polyad.indexing.run import IndexReport
    from polyad.protocols.store import Damage
    from polyad.schemas.catalogue import ConflictSchema, FactSchema, SettingSchema
    from polyad.text.versions import VersionConflict

_LISTED_KEYS = ("table", "id", "name", "text", "entity", "package", "version", "reason")
_LISTED_CHARACTERS = 300
"""Maximum length of a value in a printed list, which leaves most hyperedges whole and shortens passages."""

_MARKS = re.compile(r"[^\w\s]*")
"""Punctuation at the beginning of a text."""

_MAX_FACTS = 20
"""Maximum number of withdrawn or restored facts that are printed one by one."""

_MAX_DAMAGE = 20
"""Maximum number of violations of invariants that are printed one by one."""

_MAX_LISTED = 5
"""Maximum number of ids that one line of output lists."""


class Display(Enum):
    """How much of each hit is printed: sentences around the best, the excerpt, or the whole hit."""

    SUMMARY = "summary"
    EXCERPT = "excerpt"
    WHOLE = "whole"


class _Console(Console):
    """A Rich console that reports a closed output as other functions do; Rich exits with code 1."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which ends the command."""
        raise BrokenPipeError


def console() -> Console:
    """Return a Rich console for stdout that prints text as it is, without interpreting markup."""
    return _Console(file=sys.stdout, markup=False, highlight=False, emoji=False)


# Evidence


def show_evidence(evidence: Evidence, explain: bool, display: Display = Display.SUMMARY) -> None:
    """Print the passages of a search result as numbered hits.

    Args:
        evidence: The hits.
        explain: Whether to print also the score and reason of each hit and the path that led to it.
        display: How much of each hit to print.
    """
    out = console()
    if not evidence.passages:
        say(_describe_no_hits(evidence))
    if evidence.spelling:
        say(evidence.describe_spelling())
    for number, hit in enumerate(evidence.passages, 1):
        passage = hit.passage
        relevance = "" if hit.relevance is None else f"  relevance {hit.relevance:.2f}"
        head = f"{number}. {describe_hit(hit, display is Display.WHOLE)}"
        out.print(style_text(head, "bold") + style_text(relevance, "dim"), soft_wrap=True)
        out.print(style_text(f"   {passage.id}", "dim"), soft_wrap=True)
        _show_lines(split_lines(hit, _select_text(hit, display)), hit)
        for validity in _describe_validities(evidence, hit):
            say_indented(validity)
        for fact in hit.retracted:
            entities = f"{join_first(fact.entities)} in: " if fact.entities else ""
            say_indented(f"retracted ({fact.reason}): {entities}{shorten(fact.text, 200)}")
        if hit.copies:
            say_indented(f"also in: {join_first(list(describe_copies(hit)))}")
        if explain:
            say_indented(f"score: {hit.score:.3f}")
        if explain and hit.reason:
            say_indented(f"because: {hit.reason}")
        say()
    if explain and evidence.trace:
        say("How the passages were reached, by hyperedge; each passage by its number:")
        out.print(_build_trace_table(evidence))


def _select_text(hit: ScoredPassage, display: Display) -> str:
    if display is Display.WHOLE:
        return hit.passage.text
    return get_excerpt(hit) if display is Display.EXCERPT else summarize_hit(hit)


def _show_lines(lines: Iterable[str], hit: ScoredPassage) -> None:
    """Print indented lines, wrapped to the terminal's width; the best sentence of the hit is bold."""
    out = console()
    width = max(20, out.width - 1)
    wrapped = [
        line
        for long_line in lines
        for line in _wrap(sanitize(long_line), width, f"   {' ' * (len(long_line) - len(long_line.lstrip()))}")
    ]
    styled = list(map(style_text, wrapped))
    if hit.best_sentences and out.is_terminal:
        for number, span in _find_sentence(wrapped, hit.best_sentences[0].of(hit.passage.text)):
            styled[number].stylize("bold", span.start, span.end)
    for line in styled:
        out.print(line, soft_wrap=True)


def _find_sentence(lines: Sequence[str], sentence: str) -> Iterator[tuple[int, Span]]:
    """Yield the part of each of the wrapped lines that a sentence fills, by its letters and digits."""
    places = [
        (number, column) for number, line in enumerate(lines) for column, sign in enumerate(line) if sign.isalnum()
    ]
    letters = "".join(filter(str.isalnum, sanitize(sentence)))
    start = "".join(lines[number][column] for number, column in places).find(letters)
    if letters and start >= 0:
        for number, group in groupby(places[start : start + len(letters)], key=itemgetter(0)):
            columns = [column for _, column in group]
            before, after = lines[number][: columns[0]][::-1], lines[number][columns[-1] + 1 :]
            start, end = (len(_MARKS.findall(part)[0]) for part in (before, after))
            yield number, Span(columns[0] - start, columns[-1] + 1 + end)


def _describe_validities(evidence: Evidence, hit: ScoredPassage) -> Iterator[str]:
    """Yield the version of a hit's document, and a note for the document and each fact that is not valid today."""
    if hit.version:
        yield hit.version.describe()
    now = datetime.now(UTC).timestamp()
    if validity := describe_validity(parse_interval(hit.origin.metadata), now):
        yield validity
    for edge in (scored.hyperedge for scored in select_hyperedges(evidence, hit)):
        if validity := describe_validity(parse_bounds(edge.valid_from, edge.valid_to), now):
            yield f"{validity}: {shorten(edge.text, 200)}"


def _describe_no_hits(evidence: Evidence) -> str:
    if evidence.best_relevance is None:
        return "nothing found"
    absent = "".join(f"\n{name.describe()}" for name in evidence.absent_names)
    return f"nothing in the documents fits this question: best relevance {evidence.best_relevance:.2f}{absent}"


def say_indented(text: str) -> None:
    """Print an indented text, wrapped to the width of the terminal."""
    width = max(20, console().width - 1)
    say("\n".join(_wrap(text, width, "   ")))


def _wrap(text: str, width: int, indent: str) -> list[str]:
    """Return the indented lines of a text, at most ``width`` cells long; a Chinese character takes two cells."""
    cells = "".join(character + "\0" * (cell_len(character) - 1) for character in text)
    width -= "\0" in cells  # a line may end between a character and its second cell
    lines = textwrap.wrap(cells, width, initial_indent="   ", subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\0", "") for line in lines]


def _build_trace_table(evidence: Evidence) -> Table:
    """Return a Rich table of the steps of a search: how the walk reached each fact (HyperSU, Table 18).

    The column of matches is left out if every step matched the whole question.
    """
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
            shorten(texts.get(step.hyperedge_id, step.hyperedge_id), 120),
            *([step.matched] if has_matches else []),
            step.reached,
            ", ".join(step.via),
            places.get(step.passage_id, step.passage_id),
            f"{step.score:.3f}",
        )
        table.add_row(*(style_text(cell) for cell in cells))
    return table


# Answers


def show_answer(answer: Answer, explain: bool, display: Display, streamed: bool) -> None:
    """Print an answer and its citations; without an answer, print the passages that were retrieved.

    The text of a ``streamed`` answer was already printed, so only the citations are printed.
    """
    if answer.text and not streamed:
        say(answer.text)
    elif not answer.text and answer.evidence.best_relevance is None:  # otherwise the note explains why
        show_evidence(answer.evidence, explain, display)
    cited = {citation.number: citation for citation in sorted(answer.citations, key=lambda citation: citation.number)}
    if answer.text and answer.evidence.passages and not cited and not answer.entities:
        warn("warning", "this answer cites none of the evidence; --explain prints the evidence")
    if answer.entities:
        _show_entity_citations(answer)
    if cited:
        say()
        say("Sources:")
    for number, citation in cited.items():
        place = describe_citation(citation, answer.evidence)
        say(f"  [{number}] {', '.join(filter(None, (place, get_file_name(citation.origin))))}  {citation.passage_id}")
    if answer.text and answer.evidence.passages and explain:
        say()
        show_evidence(answer.evidence, explain, display)
    if answer.dropped_citations:
        warn("warning", f"removed {format_count(answer.dropped_citations, 'citation')} that pointed at no passage")
    if answer.note:
        say(answer.note)


def _show_entity_citations(answer: Answer) -> None:
    """Print each entity in an answer with the numbers of the citations that mention the entity."""
    say()
    for name in answer.entities:
        numbers = [f"[{cited.number}]" for cited in answer.citations if cited.answer_span.of(answer.text) == name]
        say(f"  {name}  {''.join(numbers) or 'in none of the evidence'}")


# Indexes


def show_index_report(report: IndexReport) -> None:
    """Print how many documents an indexing run added, updated, skipped and failed to index."""
    counts = report.counts
    say(f"{counts.added} added, {counts.updated} updated, {counts.unchanged} unchanged, {len(report.failures)} failed")
    written = f"{format_count(counts.passages, 'passage')} and {format_count(counts.hyperedges, 'hyperedge')} written"
    say(f"{written} in {report.seconds:.1f} s")
    if report.ignored:
        say(
            f"{len(report.ignored):,} left out by .gitignore or as generated; --no-ignore reads them: "
            f"{join_first(report.ignored)}"
        )
    if report.moved:
        fate = "moved, with their vectors" if report.is_pruned else "moved; --prune removes the old ids"
        say(f"{len(report.moved):,} {fate}: {join_first([f'{old} -> {new}' for old, new in report.moved])}")
    others = {*report.protected, *(old for old, _ in report.moved)}
    prunable = [id for id in report.missing if id not in others]
    if prunable:
        fate = "missing on disk and removed" if report.is_pruned else "missing on disk; --prune removes them"
        say(f"{len(prunable):,} {fate}: {join_first(prunable)}")
    if report.protected:
        fate = "missing on disk, not removed because their whole folder is empty; use polyad remove"
        say(f"{len(report.protected):,} {fate}: {join_first(report.protected)}")
    for method, count in report.other_methods.items():
        say(f"{format_count(count, 'document')} built with {method} and left as is; --method rebuilds them")
    if report.usage.calls:
        say(f"language model: {format_usage(report.usage)}")
    for note, count in report.notes.items():
        say(f"  {note}: {count:,}")


def show_export(report: ExportReport) -> None:
    """Print the files that an export wrote, and the numbers of documents, entities and hyperedges in the files."""
    names = ("document", "entity", "hyperedge")
    numbers = (report.documents, report.entities, report.hyperedges)
    documents, entities, hyperedges = map(format_count, numbers, names)
    files = ", ".join(map(str, report.files))
    size = f"{report.size / 1e6:,.1f} MB, {report.seconds:.1f} s"
    say(f"{documents}, {entities} and {hyperedges} written to {files} ({size})")


def show_import(report: ImportReport) -> None:
    """Print how many documents an import added, and a warning for each line that was not imported."""
    say(f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {len(report.failures)} failed")
    if report.embedded:
        say(f"the texts of {format_count(report.embedded, 'document')} were embedded again")
    if report.statements:
        say(f"{format_count(report.statements, 'correction')} added")
    for failure in report.failures:
        warn("failed", f"{failure.id}: {failure.reason}")


def show_estimate(usage: Usage) -> None:
    """Print the estimated calls, tokens and US dollars that indexing would cost."""
    if not usage.calls:
        say("indexing would not call a language model")
        return
    say(f"about {format_usage(usage)}; prompts are counted, the length of replies is estimated")
    if not usage.cost:
        say("to see the cost, set prompt_price and completion_price in the section [language_model] of polyad.toml")


def format_usage(usage: Usage) -> str:
    """Format language-model usage as text: calls, tokens and, if prices are set, US dollars."""
    cost = f", ${usage.cost:,.4f}" if usage.cost else ""
    tokens = f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens"
    return f"{format_count(usage.calls, 'call')}, {tokens}{cost}"


def warn_of_failures(report: IndexReport) -> None:
    """Print a warning for each reason why documents were not indexed, with the ids of the documents."""
    if report.counts.stop_reason:
        left = f"; {format_count(report.counts.unprocessed, 'document')} left" if report.counts.unprocessed else ""
        warn("stopped", f"{report.counts.stop_reason}{left}")
    by_reason: dict[str, list[str]] = {}
    for failure in report.failures:
        by_reason.setdefault(failure.reason, []).append(failure.id)
    for reason, ids in by_reason.items():
        warn("failed", f"{join_first(ids)}: {reason}")
    if report.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.skipped_kinds.items())
        files = format_count(len(report.skipped), "file")
        warn(
            "warning",
            f"skipped {files} of unsupported type or minified: {kinds}; polyad index --help lists what it reads",
        )


def join_first(ids: Sequence[str]) -> str:
    """Return at most five ids joined by commas, and the number of further ids: ``a, b and 3 more``."""
    more = f" and {len(ids) - _MAX_LISTED:,} more" if len(ids) > _MAX_LISTED else ""
    return f"{', '.join(ids[:_MAX_LISTED])}{more}"


def warn_of_nothing(report: IndexReport, paths: Sequence[Path]) -> None:
    """Print a warning if an indexing run found no documents in ``paths``."""
    if report.is_empty:
        places = ", ".join(map(str, paths))
        warn("warning", f"nothing to index in {places}; polyad index --help lists the supported file types")


def warn_of_duplicates(report: IndexReport) -> None:
    """Print a warning if documents with equal content were indexed under different ids."""
    if report.duplicates:
        (id, earlier), count = report.duplicates[0], len(report.duplicates)
        warn(
            "warning",
            f"{format_count(count, 'document')} {'has' if count == 1 else 'have'} the same content as another "
            f"document, for example {id} and {earlier}, and searches return both; remove one with polyad remove, and "
            "spell paths the same way each time",
        )


def warn_of_others(report: IndexReport, documents: int, index: str = "the index") -> None:
    """Print a warning if the index contains more documents than the indexing run of ``report`` processed.

    Args:
        report: The indexing run.
        documents: Number of documents in the index.
        index: How to call the index in the warning.
    """
    others = documents - report.counts.added - report.counts.updated - report.counts.unchanged
    if others > 0:
        warn("warning", f"{index} also contains {format_count(others, 'other document')}, which are searched too")


# Fields and tables


def show_fields(values: Mapping[str, object]) -> None:
    """Print each non-empty value of a mapping as a line ``name  value``, and each item of a list on its own line.

    Numbers in a document's metadata are printed as they are: a year gets no comma.
    """
    rows: list[tuple[str, object]] = []
    for name, value in values.items():
        inner = value.items() if isinstance(value, Mapping) else [(name, value)]
        if name == "metadata":
            inner = [(key, str(item) if isinstance(item, int | float) else item) for key, item in inner]
        rows += [(key, item) for key, item in inner if item or item == 0]
    width = max((cell_len(name) for name, _ in rows), default=0)
    for name, value in rows:
        label = name.replace("_", " ")
        if isinstance(value, Sequence) and not isinstance(value, str):
            say(f"{label}:")
            for item in value:
                say(f"  - {_format_item(item)}")
        else:
            label += " " * (width - cell_len(label))
            say(f"{label}  {_number(value) if isinstance(value, int | float) else value}".rstrip())


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}".rstrip("0").rstrip(".")


def show_list(items: Sequence[Mapping[str, object]]) -> None:
    """Print each item of a list on one line, with its id or name and a short description."""
    if not items:
        say("nothing found")
    for item in items:
        say("  ".join(shorten(str(item[key]), _LISTED_CHARACTERS) for key in _LISTED_KEYS if key in item))


def show_retractions(items: Sequence[Mapping[str, Any]], store: str) -> None:
    """Print each retraction of the index ``store``, and below it the command that undoes it."""
    if not items:
        say("nothing found")
    for item in items:
        show_list([item])
        selectors = {"hyperedge": next(iter(item["hyperedges"]), "")}
        selectors |= {key: item[key] for key in ("entity", "role", "where")}
        if item["id"] and not item["hyperedges"]:
            say("  its document no longer has this fact")
        else:
            options = [f"--{name}={value}" for name, value in selectors.items() if value]
            say(f"  polyad restore {shlex.join(options)} --store {shlex.quote(mask_place(store))}")


def show_correction(report: CorrectionReport, *, is_trial: bool) -> None:
    """Print the facts that a correction removed or restored, and the passages that still state removed facts."""
    for verb, facts in (("withdrawn", report.withdrawn), ("restored", report.restored)):
        for fact in facts[:_MAX_FACTS]:
            entities = f"{join_first(fact.entities)} in: " if fact.entities else ""
            say(f"{verb}  {fact.hyperedge_id}  {entities}{shorten(fact.text, 100)}")
        if len(facts) > _MAX_FACTS:
            say(f"{verb}  {len(facts) - _MAX_FACTS:,} more")
    changed = len(report.withdrawn) + len(report.restored)
    would = "would change; nothing was changed" if is_trial else "changed"
    say(f"{format_count(changed, 'fact')} of {format_count(len(report.documents), 'document')} {would}")
    if report.passages:
        say(f"still stated by: {join_first(report.passages)}")


def show_check(report: CheckReport, store: str, *, repaired: bool) -> None:
    """Print the damage that ``polyad check`` detected, and the commands that repair the index."""
    if not report.damage:
        say(f"no damage found in {report.seconds:.1f} s")
    for one in report.damage[:_MAX_DAMAGE]:
        say(f"{one.invariant}: {one.table} {one.id}".rstrip() + f" {one.problem}")
    if len(report.damage) > _MAX_DAMAGE:
        say(f"{len(report.damage) - _MAX_DAMAGE:,} more; --json prints all")
    if repaired and len(report.damage) > len(report.remaining):
        say(f"{len(report.damage) - len(report.remaining):,} of {len(report.damage):,} repaired")
    for advice in dict.fromkeys(_format_remedy(one, report, store) for one in report.remaining):
        say(advice)


def _format_remedy(damage: Damage, report: CheckReport, store: str) -> str:
    """Return text with the command that repairs one damaged row of the index ``store``."""
    place = f"--store {shlex.quote(mask_place(store))}"
    if damage.remedy == "repair":
        return f"delete derived data and orphaned rows: polyad check --repair {place}"
    if damage.remedy == "restore":
        return f"restore the index from a backup, or index the documents into another --store ({damage.problem})"
    source = get_source_file(report.sources.get(damage.document_id, ""))
    if damage.table == "document" or not source:
        return f"remove and index again: polyad remove {place} {_quote_arguments(damage.document_id)}"
    return f"index again: polyad index --force {place} {_quote_arguments(source)}"


def show_history(entries: Sequence[HistoryEntry]) -> None:
    """Print the change log of an index, one line for each command."""
    if not entries:
        say("no change was recorded")
    for entry in entries:
        counts = ", ".join(
            format_count(number, noun)
            for number, noun in (
                (entry.documents, "document"),
                (entry.passages, "passage"),
                (entry.hyperedges, "hyperedge"),
                (entry.tokens, "token"),
            )
            if number
        )
        cost = f", ${entry.cost:,.4f}" if entry.cost else ""
        say(f"{entry.time}  {entry.command:<8} {counts or 'no document'}{cost}")


def show_suggestions(suggestions: Sequence[Mapping[str, object]]) -> None:
    """Print each suggested alias as the ``polyad alias`` command that adds it."""
    if not suggestions:
        say("no names that resemble each other")
    for one in suggestions:
        names = _quote_arguments(str(one["name"]), str(one["entity"]))
        say(f"polyad alias {names}  # {one['reason']}, {one['score']:.2f}")


def _quote_arguments(*arguments: str) -> str:
    """Return the last arguments of a command as text to paste into a shell; none of them is taken for an option."""
    is_option = any(argument.startswith("-") for argument in arguments)
    return shlex.join(["--", *arguments] if is_option else arguments)


def show_settings(settings: Sequence[SettingSchema]) -> None:
    """Print settings as TOML, with the source of each value that is not the default."""
    section = ""
    for setting in settings:
        if setting.section != section:
            section = setting.section
            say(f"\n[{section}]")
        origin = "" if setting.origin == "default" else f"  # {setting.origin}"
        say(f"{setting.key} = {json.dumps(setting.value, ensure_ascii=False)}{origin}")


def show_conflicts(conflicts: Sequence[ConflictSchema], versions: Sequence[VersionConflict] = ()) -> None:
    """Print contradicting facts, each value of a role with the facts that state it, and contradicting versions."""
    for version in versions:
        say("\n    ".join(map(str, (f"{version.family}: {version.reason}", *version.documents))))
    if not conflicts and not versions:
        say("no conflicts")
    for conflict in conflicts:
        say(f"{conflict.relation or 'facts'}  {conflict.subject}  {conflict.role}")
        for value in conflict.values:
            for fact in value.facts:
                dates = " ".join(
                    f"{name} {date}" for name, date in (("from", fact.valid_from), ("to", fact.valid_to)) if date
                )
                say(f"    {value.value}  {fact.id}  {dates}".rstrip())


def show_facts(facts: Sequence[FactSchema]) -> None:
    """Print each fact with its text, and the values of its roles."""
    if not facts:
        say("nothing found")
    for fact in facts:
        relation = f"{fact.relation}  " if fact.relation else ""
        say(f"{fact.id}  {relation}{' '.join(fact.text.split())}")
        for role, names in _format_roles(fact).items():
            say(f"    {role or '-'}: {'; '.join(names)}")
        interval = parse_bounds(fact.valid_from or "", fact.valid_to or "")
        if validity := describe_validity(interval, datetime.now(UTC).timestamp()):
            say(f"    {validity}")


def _format_roles(fact: FactSchema) -> dict[str, list[str]]:
    """Return the values of each role of a fact as text, keyed by role.

    Entities with an id are printed with their label, numbers with their unit.
    """
    of_arguments = {argument.role for argument in fact.arguments}
    values = {role: [] if role in of_arguments else [*names] for role, names in fact.roles.items()}
    for argument in fact.arguments:
        value, unit, names = argument.value, argument.unit, argument.names
        if names:
            value = f"{names[0]} ({value})"
        values[argument.role].append(f"{value} {unit}" if unit and not value.endswith(unit) else value)
    return values


def _format_item(item: object) -> str:
    if isinstance(item, Mapping):
        return "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in item.items() if value not in ("", None))
    return str(item)


def show_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table with one row for each mapping, whose keys are the columns; the first column is left-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if place else "left", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(style_text(cell) for cell in row.values()))
    console().print(table)


def style_text(words: str, style: str = "") -> Text:
    """Return ``words`` without control characters as a Rich text in ``style``."""
    return Text(sanitize(words), style=style)
