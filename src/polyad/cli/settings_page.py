"""The page of all settings; run as a module, it writes ``docs/settings.md``."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from polyad.cli.context import FILE_NAME
from polyad.cli.settings import describe_choices, get_file_sections, get_variables, list_keys
from polyad.text.cleaning import collapse_whitespace

_HEAD = f"""# Settings

Written by `python -m polyad.cli.settings_page`; what stands here is said where each setting is defined.

A flag goes before the environment, which goes before `{FILE_NAME}` in the working directory (or the file that `polyad
--config FILE` names), which goes before the user's own `{FILE_NAME}` (on Linux in `~/.config/polyad/`), which goes
before the preset (`--preset NAME`: everything as in a paper, docs/papers.md). `polyad config` prints every value and
where it came from. In Python the sections are dataclasses: `Settings(split=SplitSettings(...))`.
"""


def page() -> str:
    """Return the settings page in Markdown."""
    return "\n".join([_HEAD, *(line for name, kind in get_file_sections().items() for line in _section(name, kind))])


def _section(name: str, kind: type) -> Iterator[str]:
    about, attributes = _parse_docstring(kind)
    yield f"## {f'[{name}]' if name else 'Top level'}\n"
    yield f"{about}\n"
    yield "| key | default | variable | |\n|---|---|---|---|"
    for field in list_keys(kind):
        default = "" if field.default is MISSING else _written(field.default)
        variables = ", ".join(f"`{variable}`" for variable in get_variables(name, field.name))
        says = f"{attributes[field.name]} {describe_choices(name)[field.name]}".strip().replace("|", "\\|")
        yield f"| `{field.name}` | {default} | {variables} | {says} |"
    yield ""


def _written(default: Any) -> str:
    if default is None or default == "":
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
