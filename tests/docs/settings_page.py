"""The page of all settings; run as a module, it writes ``docs/settings.md``."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from polyad.cli.context import FILE_NAME
from polyad.cli.settings import LANGUAGE_MODEL, get_file_sections, get_variables, list_keys
from polyad.text.words import collapse_whitespace

try:
    from polyad_baselines.registration import ROWS
except ModuleNotFoundError:  # an installation of the core alone
    ROWS = {}

_HEAD = f"""# Settings

This page lists every key of `{FILE_NAME}`, its default value and the environment variable that sets it.

A value is taken from the first of these places that sets it:

1. a flag of the command, or `polyad --set SECTION.KEY=VALUE`
2. the environment variable
3. `{FILE_NAME}` in the working directory, or the file of `polyad --config FILE`
4. the user's own `{FILE_NAME}` (on Linux in `~/.config/polyad/`)
5. the preset: `--preset NAME` sets every value as in a paper ([papers](papers/presets.md))
6. the default

`polyad config` prints every value and its source. In Python each section is a dataclass:
`Settings(split=SplitSettings(passage_tokens=100))`. `python -m tests.docs.settings_page` writes this page from the
docstrings of these classes.

## Most used

An empty default means that the key is not set (`None` in Python; TOML has no such value).

`split.passage_tokens` is the key `passage_tokens` of the section `[split]`. Keys without a section are top-level keys.
"""

_MODELS = """## [models.NAME]

A section for each language model that people may choose for answers, on the page of `polyad serve` (*Settings*) or as
`model` of a request. It has the keys of `[language_model]`. The default of `model` is NAME. A model without `base_url`
is at the endpoint of `[language_model]`, with its key; another endpoint needs an `api_key` of its own. Indexing and
search use the model of `[language_model]`, which may be one of these: `--model NAME`, or `model = "NAME"` in
`[language_model]`, takes the keys of `[models.NAME]`. No environment variable sets them.

```toml
[models.fast]
model = "qwen3:4b"

[models.large]
model = "qwen3:32b"
base_url = "http://gpu.example:8000/v1"
```
"""

MOST_USED = """
    store preset method embedder mention_extractor retriever k max_words min_relevance rerank replies prompts
    language_model.model language_model.base_url language_model.api_key language_model.concurrency
    language_model.timeout language_model.requests_per_minute language_model.tokens_per_minute
    language_model.prompt_price language_model.completion_price
    read.max_bytes read.max_seconds read.max_memory read.workers read.follow_links
    split.passage_tokens split.overlap_tokens split.section_tokens split.language
    encoder.device encoder.base_url answer.max_context_tokens answer.max_answer_tokens nearest.nprobe
""".split()  # noqa: SIM905  # a list literal takes 35 lines
"""Settings in the table at the top of the page, as ``section.key`` or a key of the top level."""

_COLUMNS = "| key | default | variable | description |\n|---|---|---|---|"


def page() -> str:
    """Return the settings page in Markdown."""
    sections = list_sections()
    rows = {key: row for name, kind in sections.items() for key, row in _rows(name, kind)}
    lines = [_HEAD, _COLUMNS, *(f"| `{key}` {rows[key]}" for key in MOST_USED), ""]
    return "\n".join([*lines, *(line for name, kind in sections.items() for line in _section(name, kind))])


def list_sections() -> dict[str, type]:
    """Return polyad's sections and those of the baselines, whatever plug-ins are installed."""
    builtin = {name: kind for name, kind in get_file_sections().items() if kind.__module__.startswith("polyad.")}
    return {**builtin, **{name: row.settings for name, row in ROWS.items() if row.settings}}


def _section(name: str, kind: type) -> Iterator[str]:
    yield f"## {f'[{name}]' if name else 'Top level'}\n"
    yield f"{_parse_docstring(kind)[0]}\n"
    yield _COLUMNS
    for key, row in _rows(name, kind):
        yield f"| `{key.rpartition('.')[2]}` {row}"
    yield ""
    if name == LANGUAGE_MODEL:
        yield _MODELS


def _rows(name: str, kind: type) -> Iterator[tuple[str, str]]:
    """Yield the full key of each setting of a section, and the cells behind it."""
    _, attributes = _parse_docstring(kind)
    types = get_type_hints(kind)
    for field in list_keys(kind):
        default = "" if field.default is MISSING else _format_value(field.default)
        places = get_variables().items()
        variables = ", ".join(f"`{variable}`" for variable, place in places if place == (name, field.name))
        if name in ROWS:
            variables = f"`POLYAD_{name.upper()}_{field.name.upper()}`"
        choices = get_args(types[field.name]) if get_origin(types[field.name]) is Literal else ()
        sentence = f"One of {', '.join(map(repr, choices))}." if choices else ""
        description = f"{attributes[field.name]} {sentence}".strip().replace("|", "\\|")
        yield f"{name}.{field.name}".lstrip("."), f"| {default} | {variables} | {description} |"


def _format_value(default: Any) -> str:
    if default is None or default in ("", ()):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _parse_docstring(kind: type) -> tuple[str, dict[str, str]]:
    """Return the summary of a dataclass and the description of each attribute, from its docstring."""
    about, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:\n")
    descriptions = re.findall(r"^(\w+): (.*(?:\n +.*)*)", textwrap.dedent(rest), re.MULTILINE)
    return _as_markdown(about), {name: _as_markdown(collapse_whitespace(text)) for name, text in descriptions}


def _as_markdown(text: str) -> str:
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")


if __name__ == "__main__":
    Path("docs/settings.md").write_text(page(), encoding="utf-8")
