"""Configuration of Sphinx. `make docs` builds the site; every warning, such as a broken link, is an error."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_type_hints

import fastapi  # noqa: F401  autodoc, which imports with TYPE_CHECKING set, could not import these
import llama_index.core  # noqa: F401
import mcp.server  # noqa: F401
import typer.main
from sphinx.application import Sphinx
from typer.core import TyperGroup

import polyad
import polyad_baselines
import polyad_bench
import polyad_readers
import polyad_server
from polyad.cli import app

HERE = Path(__file__).parent

project = "polyad"
author = "The polyad developers"
copyright = "the polyad developers; Apache-2.0"
version = release = polyad.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
exclude_patterns = ["_build"]
suppress_warnings = [
    "config.cache",
    "ref.python",  # attributes of one name in several classes; a name that is not there still is an error
]
smartquotes = False  # they would make one dash of the two before a flag
html_theme = "furo"
html_title = f"polyad {release}"
html_extra_path = ["output.schema.json"]
html_copy_source = False

myst_heading_anchors = 4
myst_disable_syntax = ["footnote_ref"]  # "[^1]" is what some models write for a citation

# Notebooks run each time the site is built; one that fails is an error.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"

autodoc_default_options = {"members": True, "show-inheritance": True, "ignore-module-all": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["gliner"]
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Names of polyad in docstrings must exist; other packages, type variables and private names are not looked up.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!polyad(_bench|_server)?\.).*"),
    (r"py:.*", r".*\.([A-Z]|\w+T|_\w+)"),
    (r"py:.*", r"polyad\.snapshot\.columns\.Run"),
    (r"py:class", r"polyad\..*\.Annotated"),  # Sphinx looks for it in the module of the annotated class
]


def _modules(package: str, path: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Every package, with its modules but those that run when they are imported."""
    inside = [module for module in pkgutil.iter_modules(path, f"{package}.") if not module.name.endswith("__main__")]
    yield package, [module.name for module in inside if not module.ispkg]
    for module in inside:
        if module.ispkg:
            yield from _modules(module.name, [str(Path(module.module_finder.path) / module.name.rpartition(".")[2])])


def _page_of_modules(package: str, modules: Iterable[str]) -> str:
    parts = [f"{package}\n{'=' * len(package)}", f".. automodule:: {package}"]
    for module in modules:
        parts.append(f"{module}\n{'-' * len(module)}\n\n.. automodule:: {module}")
    return "\n\n".join(parts) + "\n"


def _row(name: str) -> str:
    """Return a table row with a public name and the beginning of its docstring, if it has one."""
    value = getattr(polyad, name)
    if not inspect.isclass(value):
        return f"| `{name}` | {f'The names of all {name.lower()}.' if name.isupper() else 'As installed.'} |"
    summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    summary = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", summary)
    return f"| {{py:class}}`~{value.__module__}.{value.__qualname__}` | {summary.split('; see')[0]} |"


def _commands(group: object, parent: str = "") -> Iterator[str]:
    """Yield the reference of each command of a group and of its subgroups, as ``--help`` prints it."""
    assert isinstance(group, TyperGroup)
    for name, command in ((parent + name, command) for name, command in group.commands.items()):
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{name} ")
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


def _write_reference() -> None:
    """Write the pages of the modules, one a package, the table of the public names, and the commands."""
    folder = HERE / "reference" / "modules"
    folder.mkdir(parents=True, exist_ok=True)
    for root in (polyad, polyad_readers, polyad_bench, polyad_server, polyad_baselines):
        for package, modules in _modules(root.__name__, root.__path__):
            _write(folder / f"{package}.rst", _page_of_modules(package, modules))
    commands = typer.main.get_group(app)
    commands.list_commands(typer.Context(commands))  # adds those of other packages
    _write(HERE / "reference" / "commands.inc", "\n".join(_commands(commands)))
    rows = "\n".join(map(_row, polyad.__all__))
    _write(HERE / "reference" / "names.inc", f"| name | |\n|---|---|\n{rows}\n")


def _remove_annotations_of_frameworks(_app: Sphinx, function: object, _is_bound: bool) -> None:
    """Reduce ``Annotated[str, typer.Option(...)]`` in a signature to ``str``: options are on the page of commands."""
    if inspect.isfunction(function):
        with suppress(NameError):  # a name that only type checkers import
            function.__annotations__ = get_type_hints(function)


def setup(app: Sphinx) -> None:
    """Connect the handlers of Sphinx's events."""
    app.connect("autodoc-before-process-signature", _remove_annotations_of_frameworks)


def _write(page: Path, text: str) -> None:
    """Write a page unless it is as it was, so that it is not built again."""
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


_write_reference()
