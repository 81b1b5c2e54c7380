"""The reference of the command line and of Python; run as a module, it writes the pages in ``docs/reference``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import typer.main
from typer.core import TyperGroup

import polyad
from polyad.cli import app

FOLDER = Path("docs", "reference")

_COMMAND_LINE = """# Command line

What `polyad COMMAND --help` prints. [Settings](../settings.md) come from flags, the environment or `polyad.toml`, in
this order. Exit codes: 0 success, 1 incomplete (a document or the language model failed), 2 wrong usage or
configuration, 130 interrupted. `python -m tests.docs.reference_pages` writes this page.

"""

_PYTHON = """# Python

The names of `import polyad`. Everything else is on the pages of [modules](modules.md), which `make docs` writes, and
may change with any version. Plug-ins implement the protocols in {py:mod}`polyad.protocols.components` and
{py:mod}`polyad.protocols.store`. `python -m tests.docs.reference_pages` writes this page.

| name | |
|---|---|
"""

_SETTINGS_AND_ERRORS = """
Settings are dataclasses in {py:mod}`polyad.config` and beside each retriever; [Settings](../settings.md) lists them.
Every error is a subclass of {py:class}`~polyad.errors.PolyadError`; {py:mod}`polyad.errors` shows the tree.
"""


def build_pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    commands = typer.main.get_group(app)
    commands.list_commands(typer.Context(commands))  # adds those of other packages
    return {
        "command-line.md": _COMMAND_LINE + "\n".join(_list_commands(commands)),
        "python.md": _PYTHON + "".join(map(_format_name, polyad.__all__)) + _SETTINGS_AND_ERRORS,
    }


def _format_name(name: str) -> str:
    """Return a table row with a public name and the beginning of its docstring, if it has one."""
    value = getattr(polyad, name)
    if not inspect.isclass(value):
        return f"| `{name}` | {f'The names of all {name.lower()}.' if name.isupper() else 'As installed.'} |\n"
    summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    summary = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", summary)
    return f"| `{name}` | {summary.split('; see')[0]} |\n"


def _list_commands(group: object, parent: str = "") -> Iterator[str]:
    """Yield the reference of each command of a group and of its subgroups, as ``--help`` prints it."""
    assert isinstance(group, TyperGroup)
    for name, command in ((parent + name, command) for name, command in group.commands.items()):
        if isinstance(command, TyperGroup):
            yield from _list_commands(command, f"{name} ")
            continue
        usage, options = f"polyad {name}", ["| option | |", "|---|---|"]
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                usage += f" {parameter.metavar or (parameter.name or '').upper()}"
            elif not getattr(parameter, "hidden", False):
                spelt = ", ".join([*parameter.opts, *parameter.secondary_opts])
                options.append(f"| `{spelt}` | {getattr(parameter, 'help', '') or ''} |".replace("\n", " "))
        about = inspect.cleandoc(command.help or "")
        yield "\n\n".join([f"## {name}", f"```text\n{usage}\n```", about, "\n".join(options), ""])


if __name__ == "__main__":
    for file, text in build_pages().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
