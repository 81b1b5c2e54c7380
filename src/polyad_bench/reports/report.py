"""The report of runs: tables, plots and one self-contained HTML page, all derived from the files of the runs.

Runs on the same questions of one data set share their tables and plots.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.text.files import make_file_name, write_atomically
from polyad_bench.files import make_folder
from polyad_bench.measures.ranking import recall
from polyad_bench.reports.plots import plot_group, save_figure
from polyad_bench.reports.summary import RECALL, GroupSummary, summarise_systems
from polyad_bench.reports.tables import (
    Table,
    build_average_table,
    build_tables,
    format_html,
    format_markdown,
    format_percent,
)
from polyad_bench.runs.comparison import System
from polyad_bench.runs.plans import UNCHANGED
from polyad_bench.runs.run_folder import MANIFEST, Run, load_run

TABLES, PAGE = "tables.md", "report.html"


@dataclass(frozen=True, slots=True)
class SystemGroup:
    """Systems (a retriever in an evaluation run) that answered the same questions and can be compared.

    Attributes:
        title: Name of the data set and number of questions.
        name: Name for files, unique in a report.
        systems: Systems by their names in tables and plots.
    """

    title: str
    name: str
    systems: Mapping[str, System]


def find_run_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of all evaluation runs at or below each path, sorted within each path.

    The runs of an ablation with unchanged settings come first, because the others are compared with the first run.

    Raises:
        ConfigurationError: a path contains no run.
    """
    folders = []
    for path in paths:
        manifests = sorted(
            path.rglob(MANIFEST), key=lambda manifest: (manifest.parent.name != UNCHANGED.name, manifest)
        )
        if not manifests:
            raise ConfigurationError(
                f"{str(path)!r} holds no run; expected a folder that polyad eval --out has written"
            )
        folders += [manifest.parent for manifest in manifests]
    return list(dict.fromkeys(folders))


def write_report(
    folders: Sequence[Path], out: Path, seed: int | None = None, measures: Sequence[str] = ()
) -> list[Path]:
    """Write tables, plots and an HTML page that compare several evaluation runs. Equal runs produce identical files.

    Args:
        folders: Folders of the runs.
        out: Folder of the report; created if it is missing.
        seed: Seed of the intervals; by default the seed of the first run.
        measures: Measures of the plots, such as ``f1``; recall by default.

    Returns:
        The written files.

    Raises:
        ConfigurationError: a run cannot be read, or a file cannot be written.
    """
    runs = [load_run(folder) for folder in folders]
    seed = runs[0].seed if seed is None else seed
    files, markdown, html = [out / TABLES], ["# Results\n"], []
    try:
        make_folder(out)
        groups = group_runs(runs)
        summaries = [summarise_systems(group.title, group.name, group.systems, seed) for group in groups]
        _require_measures(summaries, measures)
        for group, summary in zip(groups, summaries, strict=True):
            tables = build_tables(summary, group.systems, seed)
            markdown += [f"## {group.title}\n", *map(format_markdown, tables)]
            drawings = {}
            for name, figure in plot_group(summary, measures or (RECALL,)):
                for suffix in ("png", "svg"):
                    files.append(out / f"{make_file_name(f'{group.name}-{name}')}.{suffix}")
                    save_figure(figure, files[-1])
                svg = files[-1].read_text(encoding="utf-8")
                drawings[name] = svg[svg.index("<svg") :]  # a page must not contain the XML declaration
            html.append(_format_section(group, tables, drawings))
        if average := build_average_table(
            [(summary, group.systems) for group, summary in zip(groups, summaries, strict=True)]
        ):
            markdown += ["## Mean of all settings\n", format_markdown(average)]
            html.append(f"<h2>Mean of all settings</h2>\n{format_html(average)}")
        write_atomically(out / TABLES, "\n".join(markdown))
        write_atomically(out / PAGE, "\n".join([_PAGE_START, *html, "</body>\n</html>\n"]))
    except OSError as error:
        raise ConfigurationError(f"cannot write into {str(out)!r}: {error.strerror}") from error
    return [*files, out / PAGE]


def _require_measures(summaries: Sequence[GroupSummary], measures: Sequence[str]) -> None:
    systems = [system for summary in summaries for system in summary.systems.values()]
    for measure in measures:
        if not any(system.find_estimate(measure) for system in systems):
            names = dict.fromkeys(name for system in systems for name in (*system.answers, *system.measures))
            raise ConfigurationError(f"no run has the measure {measure!r}; expected some of {', '.join(names)}")


def group_runs(runs: Sequence[Run]) -> list[SystemGroup]:
    """Return groups of systems (a retriever in a run) that answered the same questions at the same ranking depth."""
    by_questions: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        dataset = run.manifest["dataset"]
        by_questions.setdefault((dataset["digest"], run.questions, run.k), []).append(run)
    groups: dict[str, SystemGroup] = {}
    for members in by_questions.values():
        first = members[0]
        start = make_file_name(first.dataset)
        names = itertools.chain([start], (f"{start}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in groups)
        systems = {
            _name_system(run, retriever, members): System(retriever, run, records)
            for run in members
            for retriever, records in run.records.items()
        }
        title = f"{first.dataset}, {first.question_count:,} questions, k = {first.k}"
        groups[name] = SystemGroup(title, name, systems)
    return list(groups.values())


def _name_system(run: Run, retriever: str, group_runs: Sequence[Run]) -> str:
    """Return the name of a retriever in a run, unique among the runs of a group: retriever, run folder, or both."""
    if len(group_runs) == 1:
        return retriever
    folders = [member.folder.name for member in group_runs]
    folder = run.folder.name if folders.count(run.folder.name) == 1 else str(run.folder)
    has_one_retriever = len({name for member in group_runs for name in member.records}) == 1
    return folder if has_one_retriever or folder == retriever else f"{folder}: {retriever}"


_PAGE_START = """\
<!doctype html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<title>Results</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ccc; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
</style>
</head>
<body>
<h1>Results</h1>"""


def _format_section(group: SystemGroup, tables: Sequence[Table], plots: Mapping[str, str]) -> str:
    """Return HTML with the tables and the plots of a group of systems; ``plots`` contains SVG, keyed by name."""
    parts = [f"<h2>{escape(group.title)}</h2>", *map(format_html, tables)]
    parts += [f"<figure aria-label='{escape(name)}'>{drawing}</figure>" for name, drawing in plots.items()]
    for title, table in (("Questions", _build_question_table(group)), ("Setup", _build_setup_table(group))):
        parts.append(f"<details><summary>{title}</summary>{format_html(table)}</details>")
    return "\n".join(parts)


def _build_question_table(group: SystemGroup) -> Table:
    """Return a table with one row per question and the recall of each system."""
    return [
        {
            "question": records[0].query.text,
            **{
                name: format_percent(
                    recall(record.documents, record.query.gold, system.run.k) if record.query.gold else None
                )
                for (name, system), record in zip(group.systems.items(), records, strict=True)
            },
        }
        for records in zip(*(system.records for system in group.systems.values()), strict=True)
    ]


def _build_setup_table(group: SystemGroup) -> Table:
    """Return a table with one row per system: settings, code version, machine and data set."""
    return [
        {
            "retriever": name,
            "method": manifest.get("method") or "by default",
            "embedder": manifest.get("embedder") or "by default",
            "polyad": manifest.get("versions", {}).get("polyad", "-"),
            "commit": manifest.get("commit", "")[:12] or "-",
            "processor": str(manifest.get("machine", {}).get("processor", "-")),
            "cores": str(manifest.get("machine", {}).get("cores", "-")),
            "data": manifest["dataset"]["digest"][:12],
        }
        for name, system in group.systems.items()
        for manifest in [system.run.manifest]
    ]
