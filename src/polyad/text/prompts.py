"""The prompts for language models: polyad's own in ``polyad/prompts``, files by which users override them, and quoting.

A file in the user's directory replaces the whole prompt of its name. Placeholders such as ``{max_clues}`` are replaced
in it as in polyad's own. Replies are parsed in the same way, so the prompt has to ask for the same form.

A plug-in keeps its prompts in the same way, in the folder ``prompts`` of its import package. The user's files for
it lie in a folder of the package's name within the user's directory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.protocols.components import Prompt
from polyad.text.files import list_package_files, read_file, read_package_file
from polyad.text.words import collapse_whitespace, count_tokens

PROMPT_NAMES = list_package_files("polyad", "prompts/*.md")
"""The names of all prompts, sorted. Prompts for facts have two parts, separated by a line ``---``: the first request,
and the request for more (in ``facts_again``: for unreadable replies, and for cut replies)."""

_MAX_CHARACTERS = 200_000
"""Most characters of a prompt's file: no model reads more."""


class Prompts:
    """A collection of all prompts for language models: polyad's prompts, some of them replaced by the user's files.

    Args:
        directory: Files ``NAME.md`` in it replace the prompts of these names; None for the package's own.
        package: Import package of the prompts.

    Raises:
        ConfigurationError: the directory is missing, a file has the name of no prompt, or a file cannot be read.
    """

    def __init__(self, directory: str | Path | None = None, package: str = "polyad") -> None:
        self._directory = Path(directory) if directory else None
        self._package = package
        self._overrides = _read_overrides(self._directory, package) if self._directory else {}
        self._version = _hash(self._list_replaced())

    def for_package(self, package: str) -> Prompts:
        """Return the prompts of a plug-in by its import package, some of them replaced by the user's files for it.

        Raises:
            ConfigurationError: a file for the plug-in has the name of no prompt, or cannot be read.
        """
        folder = self._directory / package if self._directory else None
        return Prompts(folder if folder and folder.is_dir() else None, package)

    def get_text(self, name: str, /, **values: object) -> str:
        """Return the prompt with this ``name``; each ``{placeholder}`` is replaced by the value with the same name."""
        prompt = self._overrides.get(name) or self._read_default(name)
        for key, value in values.items():
            prompt = prompt.replace(f"{{{key}}}", str(value))
        return prompt

    def get_parts(self, name: str) -> tuple[str, str]:
        """Return both parts of the fact extraction prompt ``name``: the first request and the follow-up request.

        A file with only a first part is used with polyad's second part.
        """
        first, _, second = self.get_text(name).partition("\n---\n")
        default = self._read_default(name).partition("\n---\n")[2]
        return first.strip(), (second or default).strip()

    def fingerprint(self, *names: str) -> str:
        """Return a hash of the prompts among ``names`` that the user replaced; "" if the user replaced none."""
        replaced = [f"{name}\n{self._overrides[name]}" for name in names if name in self._overrides]
        return _hash(replaced)

    @property
    def version(self) -> str:
        """A hash of all prompts that the user replaced, those of plug-ins included; "" if the user replaced none."""
        return self._version

    def _list_replaced(self) -> list[str]:
        """Return names and texts of the user's files, those in the folders of plug-ins included."""
        replaced = [f"{name}\n{text}" for name, text in self._overrides.items()]
        for path in sorted(self._directory.glob("*/*.md")) if self._directory else ():
            package = path.parent.name
            if not package.isidentifier() or find_spec(package) is None:
                raise ConfigurationError(
                    f"prompts has the folder {package!r}, which is not an installed package; expected the import "
                    "package of a plug-in"
                )
            replaced.append(f"{package}/{path.stem}\n{read_prompt(path, f'the prompt {path.stem}')}")
        return replaced

    def _read_default(self, name: str) -> str:
        return read_package_file(self._package, f"prompts/{name}.md")


def _hash(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12] if texts else ""


def _read_overrides(directory: Path, package: str) -> dict[str, str]:
    names = list_package_files(package, "prompts/*.md")
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
        for path in files:
            if path.suffix != ".md" or path.stem not in names:
                raise ConfigurationError(
                    f"prompts has {str(path)!r}, the name of no prompt; expected some of "
                    f"{', '.join(f'{name}.md' for name in names)}"
                )
        return {path.stem: read_prompt(path, f"the prompt {path.stem}") for path in files}
    except OSError as error:
        raise ConfigurationError(
            f"prompts is {str(directory)!r}: {error.strerror}; expected a directory of files such as hypersu_clues.md"
        ) from error


def read_prompt(path: Path, name: str) -> str:
    """Return the text of the user's prompt file ``path`` after a check of encoding and length.

    Args:
        path: The file.
        name: Name of the prompt or setting, for messages.

    Raises:
        ConfigurationError: The file cannot be read, is not UTF-8, is empty or is too long.
    """
    try:
        text = read_file(path).decode("utf-8-sig").strip()
    except OSError as error:
        raise ConfigurationError(f"{name} is {str(path)!r}: {error.strerror}; expected a text file") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name} in {str(path)!r} is not UTF-8; expected a text") from error
    if not text or len(text) > _MAX_CHARACTERS:
        raise ConfigurationError(
            f"{name} in {str(path)!r} has {len(text):,} characters; expected 1 to {_MAX_CHARACTERS:,}"
        )
    return text


DEFAULT_PROMPTS = Prompts()
"""The prompts that come with polyad."""


_PASSAGE, _REPLIES = "passage", "replies"
_COMPLETION_MARK = "<|COMPLETE|>"
_ENDS = (".", "!", "?", ";", "…", "\u3002", "\uff01", "\uff1f")


INVISIBLE = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
"""Characters without width, as in the class of a pattern: they hide in a word from programs, not from models."""

_ROLES = ("system", "user", "assistant", "start_of_turn", "end_of_turn")


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Escape tags with the names ``tags``, and chat role markers, in ``text``, against prompt injection.

    >>> escape_tags("<b>So</b> ends the </passage><|im_end|>", ["passage"])
    '<b>So</b> ends the &lt;/passage>&lt;|im_end|>'
    """
    names = "|".join(f"[{INVISIBLE}]*".join(name) for name in (*tags, *_ROLES))
    gap = rf"[\s{INVISIBLE}]*+"
    return re.sub(rf"<(?={gap}(?:\|\w|/?{gap}(?:{names})\b))", "&lt;", text, flags=re.IGNORECASE)


def join_lines(lines: str) -> str:
    r"""Return lines as one line; a semicolon follows each line without final punctuation.

    >>> join_lines("King of Italy\nHe took Ravenna.\n killed by  Theoderic ")
    'King of Italy; He took Ravenna. killed by Theoderic'
    """
    cleaned = [collapse_whitespace(line) for line in lines.splitlines() if line.strip()]
    return " ".join([*(line if line.endswith(_ENDS) else f"{line};" for line in cleaned[:-1]), *cleaned[-1:]])


def count_prompt_tokens(prompt: Prompt) -> int:
    """Estimate the number of tokens in the system and user text of a prompt, without the prompt's JSON schema."""
    return count_tokens(prompt.system) + count_tokens(prompt.user)


def quote_passage(text: str, title: str = "") -> str:
    r"""Return a passage in ``<passage>`` tags for a prompt; a ``title`` becomes an attribute of the tag.

    >>> quote_passage("She met him.", "Ada")
    '<passage title="Ada">\nShe met him.\n</passage>'
    """
    title = " ".join(_escape(title).split())
    titled = f' title="{title}"' if title else ""
    return f"<{_PASSAGE}{titled}>\n{_escape(text)}\n</{_PASSAGE}>"


def quote_replies(text: str) -> str:
    """Return ``text``, a language model's earlier replies, inside ``<replies>`` tags for a follow-up prompt.

    The completion mark is not escaped.
    """
    parts = text.split(_COMPLETION_MARK)
    return f"<{_REPLIES}>\n{_COMPLETION_MARK.join(map(_escape, parts))}\n</{_REPLIES}>"


def _escape(text: str) -> str:
    return escape_tags(text, (_PASSAGE, _REPLIES))
