"""Writes the results in ``docs/papers`` and the tables of the README from ``benchmarks/results``.

    python benchmarks/tables.py [--pictures DIR]

Needs no benchmark: ``results.py`` measures, and the summaries are committed. ``tests/benchmarks/test_results.py`` fails
if what is written here differs from the summaries. A page has at most one picture; ``--pictures`` draws all of them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from measured_rows import read_rows

from polyad.text.json_types import parse_value
from polyad_bench.reports.plots import plot_group, save_figure
from polyad_bench.reports.summary import GroupSummary, SystemSummary
from polyad_bench.reports.tables import (
    Table,
    build_cost_table,
    build_hypergraph_table,
    build_quality_table,
    format_markdown,
)

ROOT = Path(__file__).parents[1]
SUMMARIES = ROOT / "benchmarks" / "results"
PAGES_FOLDER = ROOT / "docs" / "papers" / "results"
CONTENTS = ROOT / "docs" / "papers" / "results.md"
PAGES_WITH_TABLES = (
    ROOT / "README.md",
    *(ROOT / "docs" / "papers" / f"{name}.md" for name in ("benchmarks", "baselines")),
)

SCRIPTS = SUMMARIES / "scripts"
"""What other scripts beside this one have measured, by their names: see ``measured_rows.py``."""

OTHERS = ROOT / "benchmarks" / "others.json"
"""What other systems reach, and how that was found out: rows of a table, which nothing here can measure again."""


class Page(NamedTuple):
    """A page of results.

    Attributes:
        title: Of the page.
        text: What was done; what follows from it is for the reader to see.
        picture: Name of the picture that the page shows, of its last benchmark; empty for none.
        is_timed: Whether times mean something: the questions were embedded anew for each system.
        is_grid: Whether two settings differ, so that a table of rows and columns says it all.
        is_of_indexes: Whether what the hypergraphs cost is shown, and nothing of what is found in them.
        has_hypergraphs: Whether a table describes the hypergraphs that were searched.
        beside: Of the retrievers as they come, those that are shown beside what was measured.
    """

    title: str
    text: str
    picture: str
    is_timed: bool = False
    is_grid: bool = False
    is_of_indexes: bool = False
    has_hypergraphs: bool = False
    beside: Sequence[str] = ()


PAGES: Mapping[str, Page] = {
    "retrievers": Page(
        "Retrievers",
        "Every retriever that needs no language model, with default settings, on one index (semantic units, names by "
        "rules). The first stage of `default` was trained on the training and validation questions of these data sets; "
        "the page of the test split shows the rest of 2wiki. Its second stage and `hyperretriever` were trained on "
        "other questions. Times exclude the encoding of the question; other programs used the processor at that time. "
        "Those of `hyperretriever` were measured with its earlier weights.",
        "recall-by-words",
        is_timed=True,
        has_hypergraphs=True,
    ),
    "retrievers-test": Page(
        "Retrievers on the test split",
        "The same retrievers on the fifth of the questions of 2wiki on which no weights were trained.",
        "",
    ),
    "presets": Page(
        "Retrievers by preset",
        "Each retriever with the settings of its paper, as far as these need no language model: all hyperedges are "
        "semantic units, and the embedder is the same small one. The thresholds of the papers belong to other "
        "embedders. `hyperretriever` uses weights of an earlier version, which were trained for two hops on 2wiki. "
        "Its preset follows triples until no new one is plausible, which in the large graph of 2wiki leads far from "
        "most questions; another page has weights that were trained by the preset. `by default` marks default "
        "settings, as on the page of retrievers.",
        "recall",
        beside=("hypersu", "hypergraphrag", "hyperretriever", "default"),
    ),
    "hyperretriever-by-preset": Page(
        "HyperRetriever by its preset, with other weights",
        "The search of the paper, which ends when no new triple is plausible, on semantic units. The weights that "
        "came with polyad then were trained for two hops, on four fifths of the questions of 2wiki. The other weights "
        "were trained by the preset on the other two data sets (`polyad bench train hyperretriever --preset "
        "hyperretriever`). Their positive examples are the triples on shortest paths to an answer, as in the paper, or "
        'with `on evidence` the triples of gold passages (`positives = "evidence"` in the section '
        "[hyperretriever_training]).",
        "",
    ),
    "found-by-a-model": Page(
        "Names and facts of a language model",
        "The retrievers on three hypergraphs: semantic units with names by rules, semantic units with names that "
        "gpt-3.5-turbo extracted from these passages, and facts from its triples. The triples of a passage with one "
        "subject are one fact. A server returned them as replies, which polyad parsed like replies of a model.",
        "recall",
    ),
    "baselines": Page(
        "Baselines",
        "The systems of other papers, as far as these need no language model, beside polyad's retrievers over the same "
        "index. `sentences` are hyperedges of one sentence each, with names by rules or those of gpt-3.5-turbo. "
        "`text alone` leaves out the subjects of passages and the titles in the vectors of hyperedges. `triples of a "
        "model` are those of gpt-3.5-turbo, each a fact; in `facts of a model` those of one subject are one fact.",
        "",
        has_hypergraphs=True,
    ),
    "constructions": Page(
        "Segmentation methods",
        "The methods of HyperSU's Table 11 to group sentences into hyperedges, each with three retrievers.",
        "recall",
        has_hypergraphs=True,
    ),
    "indexing": Page(
        "Size and cost of indexes",
        "The hypergraph that each construction method builds from a corpus, and its cost, as in HyperSU's Tables 5 and "
        "6 and HyperGraphRAG's Table 3. Words are those in the texts of all hyperedges. Processor seconds are those of "
        "all threads from the files to the index, with the embedder and without the loading of models. `facts of a "
        "model` are triples that gpt-3.5-turbo extracted from these passages, returned by a server: requests and "
        "tokens are those of polyad's prompts and of these replies, and the time of the server is not counted.",
        "",
        is_of_indexes=True,
    ),
    "ablation-hypersu": Page(
        "Ablation of HyperSU",
        "`hypersu` without each of its parts (HyperSU, Figure 3 and Table 11).",
        "recall",
    ),
    "ablation-hypergraphrag": Page(
        "Ablation of HyperGraphRAG",
        "`hypergraphrag` without each of its parts (HyperGraphRAG, Table 2).",
        "recall",
    ),
    "ablation-hyperretriever": Page(
        "Ablation of HyperRetriever",
        "`hyperretriever` without each of its parts (HyperRAG's ablations), with weights of an earlier version, "
        "which were trained on most questions of 2wiki.",
        "recall",
    ),
    "sweep-depth-decay": Page(
        "HyperSU: depth and decay",
        "Recall@5 of `hypersu` in per cent, by the hops of the forward walk and the decay at each hop (defaults: 4 and "
        "0.5).",
        "sensitivity-hypersu",
        is_grid=True,
    ),
    "sweep-kappa-dimension": Page(
        "HyperSU: length of semantic units",
        "Recall@5 of `hypersu` in per cent, by kappa, the reward for similar sentences (default: 25, as sentences are "
        "compared by words), and the effective dimension, the cost of a unit (default: 32).",
        "sensitivity-hypersu",
        is_grid=True,
        has_hypergraphs=True,
    ),
}


class Results(NamedTuple):
    """An experiment with its summary."""

    name: str
    value: Mapping[str, Any]
    groups: Sequence[GroupSummary]


def main() -> None:
    """Write all pages with their pictures, and the tables of the README and of docs/papers/benchmarks.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write every picture of every experiment here")
    pictures: Path | None = parser.parse_args().pictures
    PAGES_FOLDER.mkdir(parents=True, exist_ok=True)
    for old in PAGES_FOLDER.glob("*.svg"):
        old.unlink()
    actual = [read(name) for name in PAGES if (SUMMARIES / f"{name}.json").exists()]
    for results in actual:
        draw(results, PAGES_FOLDER, shown_on_page)
        if pictures is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            draw(results, pictures)
        (PAGES_FOLDER / f"{results.name}.md").write_text(page(results), encoding="utf-8")
    CONTENTS.write_text(contents(actual), encoding="utf-8")
    for path in PAGES_WITH_TABLES:
        path.write_text(insert_tables(path.read_text(encoding="utf-8"), summary_tables(actual)), encoding="utf-8")


def read(name: str) -> Results:
    """Return the summary of one experiment."""
    value = json.loads((SUMMARIES / f"{name}.json").read_text(encoding="utf-8"))
    groups = [_shorten_names(parse_value(group, GroupSummary)) for group in value["groups"]]
    if PAGES[name].beside:
        others = {group.name: group for group in read("retrievers").groups}
        groups = [
            _add_defaults(group, others[group.name], PAGES[name].beside) for group in groups if group.name in others
        ]
    return Results(name, value, groups)


BY_DEFAULT = "by default: "


def _add_defaults(group: GroupSummary, others: GroupSummary, names: Sequence[str]) -> GroupSummary:
    """Return the group with default retrievers added, which are compared with nothing."""
    by_default = {f"{BY_DEFAULT}{name}": replace(others.systems[name], difference=None) for name in names}
    return replace(group, systems={**group.systems, **by_default})


def _shorten_names(group: GroupSummary) -> GroupSummary:
    """Return the group with shorter names: the value alone if one setting is swept."""
    return replace(
        group,
        systems={_short(name): system for name, system in group.systems.items()},
        hypergraphs={_short(name): one for name, one in group.hypergraphs.items()},
    )


def _short(name: str) -> str:
    return re.sub(r"\b[a-z]+\.(method=)?", "", name).replace("_s ", "'s ").replace("_", " ")


# Pictures


def shown_on_page(results: Results, group: GroupSummary, name: str) -> bool:
    """Return whether the page of an experiment shows this picture: its own of the last benchmark."""
    return group is results.groups[-1] and name == PAGES[results.name].picture


def draw(
    results: Results, folder: Path, is_wanted: Callable[[Results, GroupSummary, str], bool] = lambda *_: True
) -> None:
    """Draw the pictures of an experiment into a folder, all or those selected by ``is_wanted``."""
    for group in results.groups:
        for name, figure in plot_group(group):
            if is_wanted(results, group, name):
                save_figure(figure, folder / picture(results, group, name))


def picture(results: Results, group: GroupSummary, name: str) -> str:
    """Return the file name of a picture."""
    return f"{results.name}-{group.name}-{name}.svg"


# Pages


def page(results: Results) -> str:
    """Return the Markdown page of one experiment."""
    other_page = PAGES[results.name]
    parts = [f"# {other_page.title}\n", f"{_wrap(other_page.text)}\n", _format_setup(results)]
    for group in results.groups:
        parts.append(f"## {group.name if other_page.is_of_indexes else group.title}\n")
        parts += [format_markdown(table) for table in _tables(other_page, group)]
        if other_page.picture and group is results.groups[-1]:
            file = picture(results, group, other_page.picture)
            parts.append(f"![{file}]({file})\n")
    return "\n".join(parts)


def _tables(other_page: Page, group: GroupSummary) -> Iterator[Table]:
    if other_page.is_of_indexes:
        yield indexing_table(group)
        return
    if other_page.is_grid:
        yield grid(list(group.systems.values()))
    else:
        yield build_quality_table(group)
    if other_page.is_timed:
        yield [_select_columns(row) for row in build_cost_table(group)]
    if group.hypergraphs and other_page.has_hypergraphs:
        yield build_hypergraph_table(group)


def indexing_table(group: GroupSummary) -> Table:
    """Return size and cost of each hypergraph; a dash if no language model was asked."""
    rows = []
    for name, system in group.systems.items():
        index, one = system.index, group.hypergraphs[name]
        thousands = index["tokens"] / 1000
        calls, tokens = index.get("llm_calls", 0), index.get("llm_tokens", 0)
        rows.append(
            {
                "hypergraph": name,
                "passages": f"{index['passages']:,}",
                "hyperedges": f"{index['hyperedges']:,}",
                "entities": f"{index['entities']:,}",
                "words": f"{one.words:,}",
                "processor s": f"{index['cpu_seconds']:.1f}",
                "processor ms / 1k tokens": f"{1000 * index['cpu_seconds'] / thousands:.0f}",
                "LLM requests": f"{calls:,}" if calls else "-",
                "LLM tokens / 1k tokens": f"{tokens / thousands:,.0f}" if calls else "-",
            }
        )
    return rows


def _select_columns(row: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a row that are known for an existing index without a language model."""
    return {name: cell for name, cell in row.items() if name in _OF_ASKING}


_OF_ASKING = ("retriever", "p50 ms", "p95 ms", "encoder ms", "words to read")


def grid(systems: Sequence[SystemSummary]) -> Table:
    """Return recall over two settings: a row per value of the first, a column per value of the second."""
    down, across = systems[0].settings
    by_place = {tuple(system.settings.values()): f"{100 * system.recall.mean:.1f}" for system in systems}
    rows, columns = (sorted({place[axis] for place in by_place}) for axis in (0, 1))
    corner = f"{_key(down)} \\ {_key(across)}"
    return [{corner: f"{row:g}", **{f"{column:g}": by_place[row, column] for column in columns}} for row in rows]


def _key(setting: str) -> str:
    return setting.partition(".")[2].replace("_", " ")


def _format_setup(results: Results) -> str:
    """Return the setup of the measurement and the commands that repeat it."""
    value = results.value
    other_page, lines = PAGES[results.name], []
    if not other_page.is_of_indexes:
        lines.append(
            "Recall counts documents, in per cent, with a 95 per cent confidence interval (bootstrap over the "
            "questions). `by` is the difference from the first row, or from the first row of the same retriever. p is "
            "the probability of so large a difference by chance (randomisation test, with Holm's correction)."
        )
    lines += [_format_measurement(measured, value) for measured in value["measured"]]
    if other_page.is_timed or other_page.is_of_indexes:
        lines.append("The machine had other work: compare times with each other only.")
    if other_page.is_timed:
        lines.append("Words to read are the words of the first passages that contain five documents.")
    if results.name == "retrievers":
        lines += _format_overhead()
    lines.append(f"`{value['command']}` repeats the measurement; `python benchmarks/tables.py` writes this page.")
    return "\n".join(f"{_wrap(line)}\n" for line in dict.fromkeys(lines))


def _format_measurement(measured: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """Return the sentence on the setup; it names the benchmarks if setups differ."""
    data = measured.get("data", [])
    is_part = len(value["measured"]) > 1 and data
    beginning = f"{' and '.join(filter(None, (', '.join(data[:-1]), data[-1])))} measured" if is_part else "Measured"
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    machine = measured["machine"]
    commit = measured["commit"][:12] + (", with changes," if measured["commit"].endswith("+") else "")
    return (
        f"{beginning} at commit {commit} with {versions}, {measured['embedder']}, on {machine['cores']} cores of "
        f"{machine['processor']}; seed {value['seed']}."
    )


def _format_overhead() -> Iterator[str]:
    """Yield the sentence on the overhead of measuring beside the searches, if it was measured."""
    rows = read_rows(SCRIPTS / "asking.json")
    if rows:
        first, *others = sorted(rows, key=lambda row: -float(row["share"]))
        times = [row["own ms"] for row in rows]
        yield (
            f"Counting words and writing records (`polyad eval --out`) takes {min(times):.1f} to {max(times):.1f} ms "
            f"of processor time for each question of {first['dataset']}: {_percent(first['share'])} per cent of a "
            f"search with `{first['retriever']}`, which takes {first['search ms']:.1f} ms, and at most "
            f"{_percent(max(row['share'] for row in others))} per cent with the others (`benchmarks/asking.py`)."
        )


def _wrap(text: str) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > 120:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def contents(actual: Iterable[Results]) -> str:
    """Return the page that links to all pages."""
    lines = "\n".join(f"- [{PAGES[results.name].title}](results/{results.name}.md)" for results in actual)
    return f"""# Results

Measurements on three public benchmarks without a language model (all-MiniLM-L6-v2, 22 million parameters).
`benchmarks/results.py` measures and writes summaries to `benchmarks/results`. `benchmarks/tables.py` writes these
pages and the tables of the README from the summaries. Each page has at most one picture; `python benchmarks/tables.py
--pictures DIR` draws all of them.

{lines}

```{{toctree}}
:hidden:
:glob:

results/*
```
"""


# The README and docs/papers/benchmarks.md


def insert_tables(text: str, tables: Mapping[str, str]) -> str:
    """Return the text with the tables inserted between ``<!-- table: NAME -->`` and ``<!-- end of table -->``."""

    def filled(mark: re.Match[str]) -> str:
        return f"<!-- table: {mark[1]} -->\n{tables.get(mark[1], mark[2])}<!-- end of table -->"

    return re.sub(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end of table -->", filled, text, flags=re.DOTALL)


def summary_tables(actual: Iterable[Results]) -> dict[str, str]:
    """Return the tables of the README and of docs/papers/benchmarks.md by name."""
    by_name = {results.name: results for results in actual}
    tables = {"others": format_markdown(json.loads(OTHERS.read_text(encoding="utf-8")))}
    if "retrievers" in by_name:
        tables["retrievers"] = format_markdown(_overview(by_name["retrievers"], by_name.get("retrievers-test")))
    if "presets" in by_name:
        tables["presets"] = format_markdown(_overview(by_name["presets"], None, {("hyperretriever", "2wiki")}))
    if "found-by-a-model" in by_name:
        tables["found-by-a-model"] = format_markdown(_found_by_a_model(by_name["found-by-a-model"]))
    if "baselines" in by_name:
        tables["baselines"] = format_markdown(_baselines(by_name["baselines"]))
    scripts = {
        "public-code": _public_code(),
        "prose": _prose(),
        "manuals": _manuals(),
        "unseen": _unseen(),
        "harder": _harder(),
    }
    return tables | {name: format_markdown(table) for name, table in scripts.items() if table}


_SEARCHES = {
    "bm25+dense": "`dense` and `bm25` by reciprocal ranks",
    "bm25+dense, 200 words": "the same on plain pieces of 200 words",
    "hyperretriever with signals": "`hyperretriever` with the signals of `default`",
}
"""What is no retriever of polyad by its name is called."""


def _prose() -> Table:
    """Return the recall of evidence, in per cent, by budget of words: a row for each search."""
    return [
        {"": _search(row["retriever"]), **{f"{budget} words": _percent(row[budget]["recall"]) for budget in _WORDS}}
        for row in sorted(read_rows(SCRIPTS / "prose.json"), key=_default_last)
        if "--max-words" not in row["retriever"]
    ]


_WORDS = ("500", "1000", "2000")


def _manuals() -> Table:
    """Return the rank measures of evidence in manuals, in per cent: a row for each search."""
    names = ("top 1", "top 3", "MRR", "300 words", "600 words", "1200 words")
    return [
        {"": _search(_of_corpus(row)), **{name: _percent(row[name]) for name in names}}
        for row in sorted(read_rows(SCRIPTS / "manuals.json"), key=_default_last)
        if row["corpus"] == "files" or row["retriever"] == "bm25+dense"
    ]


def _of_corpus(row: Mapping[str, Any]) -> str:
    return f"{row['retriever']}{', 200 words' if row['corpus'] == 'chunks' else ''}"


def _default_last(row: Mapping[str, Any]) -> tuple[bool, bool]:
    return row["retriever"] == "default", "+" in row["retriever"]


def _unseen() -> Table:
    """Return the recall of weights that never saw the benchmark: by scorer and shape, with numbers of articles."""
    rows = {
        (row["set"], row["shape"]): row
        for row in read_rows(SCRIPTS / "second_stage_training.json")
        if row["weights"] == "both stages" and row["gold"] is None
    }
    shapes = {
        "as it is": "as it is",
        "full size": "among all articles of the family",
        "no titles": "titles stripped",
        "Markdown by 4": "four articles a Markdown document, passages",
        "joined by 10": "joined by ten without titles, passages",
    }
    triples = {(row["retriever"], row["dataset"]): row for row in read_rows(SCRIPTS / "leave_one_out.json")}
    return [
        {
            "": f"`default`, {label}",
            **{
                name: f"{_with_interval(rows[name, shape])} of {rows[name, shape]['articles']:,}"
                for name in _BENCHMARKS
            },
        }
        for shape, label in shapes.items()
        if rows
    ] + [
        {"": _search(scorer), **{name: _with_interval(triples[scorer, name]) for name in _BENCHMARKS}}
        for scorer in dict.fromkeys(scorer for scorer, _ in triples)
    ]


_BENCHMARKS = ("2wiki", "hotpotqa", "musique")


def _with_interval(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{_percent(row['recall@5'])} ({100 * low:.0f} - {100 * high:.0f})"


def _harder() -> Table:
    """Return the recall on harder corpora: a row per retriever and corpus, a column per benchmark."""
    rows = {(row["corpus"], row["retriever"], row["dataset"]): row for row in read_rows(SCRIPTS / "retrieval.json")}
    corpora = {
        "no titles": "titles stripped",
        "joined": "joined by four",
        "sections": "sections of Markdown files, ten a file",
    }
    return [
        {"": f"{reply}, `{name}`", **{data: _percent(rows[corpus, name, data]["recall@5"]) for data in _BENCHMARKS}}
        for corpus, reply in corpora.items()
        for name in ("dense", "bm25", "default")
        if rows
    ]


def _search(name: str) -> str:
    return _SEARCHES.get(name, f"`{name}`")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _overview(retrievers: Results, test_split: Results | None, trained: Set[tuple[str, str]] = frozenset()) -> Table:
    """Return recall with its interval: a row per retriever, a column per benchmark.

    Those of ``trained``, a retriever on a benchmark whose questions it was trained on, have a dash.
    """
    columns = {group.name: group for group in retrievers.groups} | {
        f"{group.name}, test split": group for group in (test_split.groups if test_split else ())
    }
    return [
        {
            "": f"`{name}`",
            **{
                column: "-" if (name, column) in trained else _cell(group.systems.get(name))
                for column, group in columns.items()
            },
        }
        for name, system in retrievers.groups[0].systems.items()
        if name == system.retriever  # what is shown beside them has two names
    ]


def _cell(system: SystemSummary | None) -> str:
    """Return recall and its interval; a dash for a retriever that was not measured."""
    if system is None:
        return "-"
    return f"{100 * system.recall.mean:.1f} ({100 * system.recall.low:.0f} - {100 * system.recall.high:.0f})"


def _baselines(results: Results) -> Table:
    """Return recall: a row per benchmark and way of building hyperedges, a column per retriever."""
    names = list(dict.fromkeys(system.retriever for group in results.groups for system in group.systems.values()))
    rows = []
    for group in results.groups:
        for way in dict.fromkeys(name.rpartition(": ")[0] for name in group.systems):
            systems = {f"`{name}`": group.systems.get(f"{way}: {name}" if way else name) for name in names}
            cells = {name: _percent(system.recall.mean) if system else "-" for name, system in systems.items()}
            rows.append({"": ", ".join(filter(None, (group.name, way))), **cells})
    return rows


def _public_code() -> Table:
    """Return recall of LinearRAG's public code: a row per variant of the texts, two columns per benchmark."""
    rows = {
        (row["dataset"], row["has_titles"], row["has_numbers"], row["parameters"]): row
        for row in read_rows(SCRIPTS / "linearrag_public_code.json")
    }
    names = list(dict.fromkeys(name for name, *_ in rows))
    return [
        {
            "": f"{'titles and texts' if titles else 'texts'}{', numbered' if numbered else ''}; parameters: {values}",
            **{
                f"{name}, {system}": _percent(row[system])
                if (row := rows.get((name, titles, numbered, values)))
                else "-"
                for name in names
                for system in ("dense", "linearrag")
            },
        }
        for titles, numbered, values in dict.fromkeys(key[1:] for key in rows)
    ]


def _found_by_a_model(results: Results) -> Table:
    """Return recall: a row per retriever, a column per way of building hyperedges."""
    (group,) = results.groups
    ways = list(dict.fromkeys(name.rpartition(": ")[0] for name in group.systems))
    retrievers = list(dict.fromkeys(system.retriever for system in group.systems.values()))
    return [
        {"": f"`{name}`", **{way: f"{100 * group.systems[f'{way}: {name}'].recall.mean:.1f}" for way in ways}}
        for name in retrievers
    ]


if __name__ == "__main__":
    main()
