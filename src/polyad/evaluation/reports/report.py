"""The report of some runs: tables, pictures and one page that needs no other file; all made of the runs' files.

Runs of one data set, on the same questions, share their tables and pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from polyad.errors import ConfigurationError
from polyad.evaluation.figures import save_figure
from polyad.evaluation.measures.ranking import recall
from polyad.evaluation.reports import plots as run_pictures
from polyad.evaluation.reports.summary import GroupSummary, summarise_systems
from polyad.evaluation.reports.tables import Table, build_measured_tables
from polyad.evaluation.runs.comparison import System
from polyad.evaluation.runs.hypergraph_statistics import compute_mean
from polyad.evaluation.runs.run_folder import MANIFEST, Run, load_run
from polyad.text.files import write_atomically

TABLES, PAGE = "tables.md", "report.html"


@dataclass(frozen=True, slots=True)
class SystemGroup:
    """Systems that were asked the same.

    Attributes:
        title: Of the data set, with its number of questions.
        name: For files; of its own.
        systems: By the name they have in tables and pictures.
    """

    title: str
    name: str
    systems: Mapping[str, System]

    @property
    def first(self) -> Run:
        """The run of the first system."""
        return next(iter(self.systems.values())).run


def find_run_folders(paths: Sequence[Path]) -> list[Path]:
    """The run folders that some paths are or hold, sorted below each.

    Raises:
        ConfigurationError: one of them holds none.
    """
    found = []
    for path in paths:
        inside = sorted(manifest.parent for manifest in path.rglob(MANIFEST))
        if not inside:
            raise ConfigurationError(
                f"{str(path)!r} holds no run; expected a folder that polyad eval --out has written"
            )
        found += inside
    return list(dict.fromkeys(found))


def write_report(folders: Sequence[Path], out: Path, seed: int | None = None) -> list[Path]:
    """Write tables, pictures and the page; what is written is the same each time.

    Args:
        folders: Of the runs.
        out: Where to; made when it is not there.
        seed: Of the intervals; by default that of the first run.

    Returns:
        The files.

    Raises:
        ConfigurationError: a run cannot be read, or nothing can be written.
    """
    runs = [load_run(folder) for folder in folders]
    seed = runs[0].seed if seed is None else seed
    groups = [(group, summarise_systems(group.title, group.name, group.systems, seed)) for group in group_runs(runs)]
    own = [build_tables(summaries, *build_measured_tables(group.systems, seed)) for group, summaries in groups]
    try:
        out.mkdir(parents=True, exist_ok=True)
        titled = {group.title: found for (group, _), found in zip(groups, own, strict=True)}
        write_atomically(out / TABLES, format_tables(titled))
        files, parts = [out / TABLES], []
        for (group, summaries), found in zip(groups, own, strict=True):
            drawings = {}
            for name, figure in run_pictures.plot_figures(summaries):
                for kind in ("png", "svg"):
                    files.append(out / f"{group.name}-{name}.{kind}")
                    save_figure(figure, files[-1])
                drawings[name] = _inline(files[-1])
            parts.append(_part(group, found, drawings))
        write_atomically(out / PAGE, _page(parts))
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(out)!r}: {error.strerror}") from error
    return [*files, out / PAGE]


def group_runs(runs: Sequence[Run]) -> list[SystemGroup]:
    """The systems of some runs, together where they were asked the same at the same depth."""
    by_questions: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        dataset = run.manifest["dataset"]
        by_questions.setdefault((dataset["digest"], tuple(dataset["questions"]), run.k), []).append(run)
    groups: list[SystemGroup] = []
    for together in by_questions.values():
        first = together[0]
        names = {group.name for group in groups}
        name = next(name for name in _numbered(first.dataset) if name not in names)
        systems = {
            _name(run, retriever, together): System(retriever, run, records)
            for run in together
            for retriever, records in run.records.items()
        }
        groups.append(SystemGroup(f"{first.dataset}, {first.questions:,} questions, k = {first.k}", name, systems))
    return groups


def _name(run: Run, retriever: str, together: Sequence[Run]) -> str:
    """What tells a system from others: its retriever, the folder of its run, or both."""
    if len(together) == 1:
        return retriever
    folders = [other.folder.name for other in together]
    folder = run.folder.name if folders.count(run.folder.name) == 1 else str(run.folder)
    is_alone = len({name for other in together for name in other.records}) == 1
    return folder if is_alone or folder == retriever else f"{folder}: {retriever}"


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


# Tables


def build_quality_table(summaries: GroupSummary) -> Table:
    """Measures in per cent; of recall also where it lies with 95 per cent confidence, and how it differs.

    The differences are to the first system, or the first of the same retriever where some were run several times; in
    percentage points, with the p value corrected by Holm. Empty where nobody has judged which documents hold the
    evidence.
    """
    rows = []
    for name, summary in summaries.judged.items():
        first, *others = summary.measures
        recall, by = summary.recall, summary.difference
        row = {
            "retriever": name,
            first: _percent(recall.mean),
            "95 %": f"{_percent(recall.low)} - {_percent(recall.high)}",
        }
        row |= {other: _percent(summary.measures[other].mean) for other in others}
        row |= {"by": f"{100 * by.mean:+.1f}", "p": f"{by.p:.4f}"} if by else {"by": "", "p": ""}
        rows.append(row)
    return rows


def build_cost_table(summaries: GroupSummary) -> Table:
    """Times in milliseconds, words and tokens of a question; of the index, the time, the sizes, and of 1,000 tokens.

    The words are those of the text to be read until k documents have been seen.
    """
    rows = []
    for name, summary in summaries.systems.items():
        index = summary.index
        thousands = index.get("tokens", 0) / 1000 if "seconds" in index else 0
        rows.append(
            {
                "retriever": name,
                "p50 ms": f"{summary.p50:.1f}",
                "p95 ms": f"{summary.p95:.1f}",
                "encoder ms": f"{summary.encode_p50:.1f}",
                "words to read": f"{summary.words:.0f}" if summary.words else "-",
                "LLM tokens": f"{summary.llm_tokens:.0f}",
                "indexing s": _number(index.get("seconds")),
                "passages": _number(index.get("passages")),
                "hyperedges": _number(index.get("hyperedges")),
                "entities": _number(index.get("entities")),
                "memory MB": _number(index.get("peak_rss_mb")),
                "indexing ms / 1k tokens": f"{1000 * index['seconds'] / thousands:.1f}" if thousands else "-",
                "LLM tokens / 1k tokens": f"{index.get('llm_tokens', 0) / thousands:.0f}" if thousands else "-",
            }
        )
    return rows


def build_hypergraph_table(summaries: GroupSummary) -> Table:
    """The hypergraphs in numbers; empty where none is known."""
    return [
        {
            "hypergraph": name,
            "hyperedges": _number(one.hyperedges),
            "entities": _number(one.entities),
            "entities a hyperedge": f"{compute_mean(one.arity):.2f}",
            "hyperedges an entity": f"{compute_mean(one.degree):.2f}",
            "sentences a hyperedge": f"{compute_mean(one.sentences):.2f}",
            "words a hyperedge": f"{one.words / max(1, one.hyperedges):.1f}",
        }
        for name, one in summaries.constructions.items()
    ]


def build_tables(summaries: GroupSummary, *measured: Table) -> list[Table]:
    """The tables of a group that are not empty; with those that are ``measured`` in more than a summary tells."""
    own = (build_quality_table(summaries), *measured, build_cost_table(summaries), build_hypergraph_table(summaries))
    return [table for table in own if table]


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,}"


def format_tables(groups: Mapping[str, Sequence[Table]]) -> str:
    """The tables of each group, by its title."""
    parts = ["# Results\n"]
    for title, own in groups.items():
        parts.append(f"## {title}\n")
        parts += [format_markdown(table) for table in own]
    return "\n".join(parts)


def format_markdown(table: Table) -> str:
    """A table in Markdown, numbers to the right."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"

    columns = list(table[0])
    rule = line(["---", *("---:" for _ in columns[1:])])
    return line(columns) + rule + "".join(line(list(row.values())) for row in table)


def _inline(path: Path) -> str:
    """An SVG as part of a page, without what stands before its first element."""
    text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]


# The page

_BOLD = re.compile(r"^\*\*([\d.]+)\*\*$")

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
"""


def _page(parts: Sequence[str]) -> str:
    head = [
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Results</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>Results</h1>",
    ]
    return "\n".join([*head, *parts, "</body>\n</html>\n"])


def _part(group: SystemGroup, own: Sequence[Table], drawings: Mapping[str, str]) -> str:
    """What the page says of one group."""
    parts = [f"<h2>{escape(group.title)}</h2>"]
    parts += [_in_html(table) for table in own]
    parts += [f"<figure aria-label='{escape(name)}'>{drawing}</figure>" for name, drawing in drawings.items()]
    parts.append("<details><summary>Each question</summary>" + _in_html(_question_table(group)) + "</details>")
    parts.append("<details><summary>What was measured with what</summary>" + _in_html(_setup_table(group)))
    return "\n".join([*parts, "</details>"])


def _in_html(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table[0])
    rows = ("".join(f"<td>{_in_bold(escape(cell))}</td>" for cell in row.values()) for row in table)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<div class='wide'><table>\n<tr>{head}</tr>\n{body}\n</table></div>"


def _in_bold(cell: str) -> str:
    """Markdown's bold as that of HTML; titles of questions have none."""
    return _BOLD.sub(r"<b>\1</b>", cell)


def _question_table(group: SystemGroup) -> Table:
    """Recall of each question by each system."""
    k = group.first.k
    pairs = zip(*(system.records for system in group.systems.values()), strict=True)
    return [
        {
            "question": records[0].query.text,
            **{
                name: _percent(recall(record.documents, record.query.gold, k)) if record.query.gold else "-"
                for name, record in zip(group.systems, records, strict=True)
            },
        }
        for records in pairs
    ]


def _setup_table(group: SystemGroup) -> Table:
    """What the manifests say, and where they differ from the first."""
    rows = []
    for name, system in group.systems.items():
        manifest = system.run.manifest
        rows.append(
            {
                "retriever": name,
                "method": manifest.get("method") or "by default",
                "embedder": manifest.get("embedder") or "by default",
                "polyad": manifest["versions"]["polyad"],
                "commit": manifest["commit"][:12] or "-",
                "processor": manifest["machine"]["processor"],
                "cores": str(manifest["machine"]["cores"]),
                "data": manifest["dataset"]["digest"][:12],
            }
        )
    return rows
