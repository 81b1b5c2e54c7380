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
from sphinx.application import Sphinx

import polyad
import polyad_baselines
import polyad_bench
import polyad_readers
import polyad_server

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


def _write_reference() -> None:
    """Write the pages of the modules, one a package."""
    folder = HERE / "reference" / "modules"
    folder.mkdir(parents=True, exist_ok=True)
    for root in (polyad, polyad_readers, polyad_bench, polyad_server, polyad_baselines):
        for package, modules in _modules(root.__name__, root.__path__):
            _write(folder / f"{package}.rst", _page_of_modules(package, modules))


def _remove_annotations_of_frameworks(_app: Sphinx, function: object, _is_bound: bool) -> None:
    """Reduce ``Annotated[str, typer.Option(...)]`` in a signature to ``str``: options are on the page of commands."""
    if inspect.isfunction(function):
        with suppress(NameError):  # a name that only type checkers import
            function.__annotations__ = get_type_hints(function)


def _link_names(_app: Sphinx, page: str, source: list[str]) -> None:
    """Make each class in the table of public names a link to its description."""

    def link(match: re.Match[str]) -> str:
        value = getattr(polyad, match[1])
        return f"| {{py:class}}`~{value.__module__}.{value.__qualname__}` |" if inspect.isclass(value) else match[0]

    if page == "reference/python":
        source[0] = re.sub(r"^\| `(\w+)` \|", link, source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> None:
    """Connect the handlers of Sphinx's events."""
    app.connect("source-read", _link_names)
    app.connect("autodoc-before-process-signature", _remove_annotations_of_frameworks)


def _write(page: Path, text: str) -> None:
    """Write a page unless it is as it was, so that it is not built again."""
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


_write_reference()
