"""The page of the papers; run as a module, it writes ``docs/papers/presets.md``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from polyad.cli.settings import CommandSettings
from polyad.engine import DEFAULT_METHOD
from polyad.engine.registry import get_sections
from polyad.presets import PRESETS, PaperSetting, Preset
from polyad.text.files import read_package_file

_HEAD = """# Papers and presets

A preset sets construction, retrieval and answering as in one paper:

```sh
polyad index corpus/ --store kb --preset hypersu
polyad ask "Where was the maker of the Bell of Tarn born?" --store kb --preset hypersu --model qwen3
polyad eval musique/ --preset hypersu
```

In Python: `Engine.open("kb", preset="hypersu")`. To change some of its values, use
`polyad.engine.build_preset_settings("hypersu", {"hypersu.width": 50})`. Flags, the environment and settings files
override a preset; `polyad config --preset hypersu` prints every value and its source. A preset contains no models; the
tables name the models of the papers.

If a paper contradicts itself or its public code, the preset follows the paper's formula, and the table also gives the
value of the code. Prompts are polyad's own words with the formats and scales of the papers; the setting `prompts`
replaces them by files. Thresholds of cosines belong to the encoder of the paper: `polyad bench thresholds --store kb`
prints those for the embedder of an index. The nearest of more than 20,000 vectors are found approximately;
`nearest.nprobe = 0` is exact. `python -m tests.docs.papers_page` writes this page from `src/polyad/presets/`.
"""

_MEASURES = """## Measures

Measures are shares in per cent; the best accepted answer counts. A judge is a language model, with polyad's own prompts
(`judge_*.md`); a question whose judgement stays missing is left out, and the mean gets a star if more than 5 % are. The
judges of texts, and R-S, read all that the answer received, or the first k passages if there is no answer. A report
states the requests of each judgement, the tokenizer, and the gold text of R-S.

| measure | what it is | source | what differs |
|---|---|---|---|"""

_TABLES = """## Tables and figures

One command for each table or figure that shows a measurement, an example or settings. Folders are data sets of the
layouts that `polyad eval` reads; `kb` is an index of the preset. Models are those of your settings. A sweep writes its
tables and plots into `report/` in the folder of `--out`; `--limit 100` asks fewer questions. Times and tokens are
measured without the cache of replies. Where presets are compared, the systems of the paper are the rows of a preset
with its own retriever. [Baselines](baselines.md) has the same tables with GraphRAG, LightRAG and other systems.

A command with `--answers`, `--judge`, `facts` or a model in its sweep needs a language model; the others need none. All
run in the nightly tests on small data with a scripted model. [Results](results/presets.md) has what was measured, which
is retrieval and construction; no table of answers was measured with an instructed model, and
[the page of baselines](baselines.md#tables-of-the-papers-with-baselines) says how to do so with a small one.
"""


def page() -> str:
    """Return the papers page in Markdown."""
    presets = (line for preset in PRESETS.values() for line in _preset(preset))
    return "\n".join([_HEAD, *presets, *_measures(), *_tables()])


def read_tables() -> list[dict[str, Any]]:
    """Return the papers with the commands for their tables and figures."""
    return _read_entries("tables.toml", "papers")


def read_measures() -> list[dict[str, Any]]:
    """Return the measures, with the source of each and what differs from the source."""
    return _read_entries("measures.toml", "measures")


def _read_entries(file: str, key: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(read_package_file("polyad.presets", file))[key]
    return entries


def get_default(setting: PaperSetting) -> object:
    """Return polyad's default of a setting."""
    section, key = setting.place
    kind = get_sections()[section] if section else CommandSettings
    default = next(field.default for field in fields(kind) if field.name == key)
    own_defaults = {"method": DEFAULT_METHOD, "k": 5}
    return own_defaults.get(setting.name, default)


def _preset(preset: Preset) -> Iterator[str]:
    yield f"## {preset.name}\n"
    yield f"{preset.paper}. Public code: {preset.code}.\n"
    yield "| setting | paper | source | public code | default of polyad | reason |\n|---|---|---|---|---|---|"
    for setting in preset.settings:
        default = get_default(setting)
        same = "" if default == setting.value else _written(default) or "chosen automatically"
        yield _row(f"`{setting.name}`", _written(setting.value), setting.source, setting.code, same, setting.why)
    yield "\nAn empty default equals the value of the paper. No setting controls these parts:\n"
    yield "| part | paper | public code | preset |\n|---|---|---|---|"
    for part in preset.parts:
        yield _row(part.name, part.paper, part.code, part.polyad)
    yield "\nPrompts, by the name of the file that replaces each:\n"
    yield "| file | prompt of the paper |\n|---|---|"
    yield from (_row(f"`{name}.md`", place) for name, place in preset.prompts.items())
    yield ""


def _measures() -> Iterator[str]:
    yield _MEASURES
    for measure in read_measures():
        names = ", ".join(f"`{name}`" for name in measure["names"])
        yield _row(names, measure["what"], measure["source"], measure["differs"])
    yield ""


def _tables() -> Iterator[str]:
    yield _TABLES
    for paper in read_tables():
        yield f"### {paper['title']}\n"
        for table in paper["tables"]:
            command = table["command"].replace(" && ", " &&\n")
            yield f"**{table['name']}**: {table['what']}.\n\n```sh\n{command}\n```\n"
        yield f"{paper['others']}\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _written(value: object) -> str:
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    Path("docs/papers/presets.md").write_text(page(), encoding="utf-8")
