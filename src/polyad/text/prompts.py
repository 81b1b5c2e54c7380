"""What a language model is told to do: the prompts that come with polyad, and files that stand in for them.

A file in the user's directory replaces the prompt of its name, whole. What stands in braces in polyad's own, such as
``{max_clues}``, is filled in wherever it occurs; a reply is read as before, so it has to be asked for in the same form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from polyad.errors import ConfigurationError
from polyad.text.files import read_package_file

_FACTS, _ANSWER = "polyad.indexing.facts", "polyad.answering.prompts"
_MEMORY, _EVALUATION = "polyad.retrieval.hypermemory", "polyad.evaluation.prompts"

FILES: Mapping[str, tuple[str, str]] = {
    "facts_compact": (_FACTS, "compact.md"),
    "facts_paper": (_FACTS, "paper.md"),
    "facts_again": (_FACTS, "again.md"),
    "mentions": ("polyad.indexing.mentions", "language_model.md"),
    "question_names": ("polyad.retrieval", "question_names.md"),
    "hypersu_clues": ("polyad.retrieval.hypersu", "clues.md"),
    **{f"hypermemory_{name}": (_MEMORY, f"{name}.md") for name in ("hyperedges", "entities", "sufficiency", "depth")},
    **{
        f"answer_{name}": (_ANSWER, f"{name}.md")
        for name in (
            "evidence",
            "unaided",
            "text",
            "unaided_text",
            "entity",
            "entities",
            "concise",
            "think-answer",
            "sections",
            "shown_facts",
            "shown_entities",
            "shown_passages",
            "quoted",
        )
    },
    "entity_summary": (_ANSWER, "summary.md"),
    **{
        f"judge_{name}": (_EVALUATION, f"judge_{name}.md")
        for name in (
            "gpt_acc",
            "statement_f1",
            "g_e",
            "coverage",
            "faithfulness",
            "context_recall",
            "context_relevance",
            "evidence_recall",
            "pairwise",
        )
    },
    "question": (_EVALUATION, "question.md"),
}
"""Package and file of each prompt, by name. Those of facts have two parts, with a line ``---`` between them: what is
asked first, and how for more (of ``facts_again``: for what could not be read, and for what was cut)."""

_LONGEST = 200_000
"""Characters of a prompt's file: beyond what any model reads."""


class Prompts:
    """The prompts of one engine.

    Args:
        directory: Files ``NAME.md`` in it replace the prompts of these names; None for polyad's own.

    Raises:
        ConfigurationError: there is no such directory, a file in it has the name of no prompt, or cannot be read.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self._replaced = _read(Path(directory)) if directory else {}

    def text(self, name: str, /, **values: object) -> str:
        """The prompt of that name, with what stands in braces filled in."""
        found = self._replaced.get(name) or read_package_file(*FILES[name])
        for key, value in values.items():
            found = found.replace(f"{{{key}}}", str(value))
        return found

    def parts(self, name: str) -> tuple[str, str]:
        """The two parts of a prompt for facts; a file that has but the first goes with polyad's second."""
        first, _, second = self.text(name).partition("\n---\n")
        own = read_package_file(*FILES[name]).partition("\n---\n")[2]
        return first.strip(), (second or own).strip()

    def version(self, *names: str) -> str:
        """What tells replaced prompts apart; empty where all of these are polyad's own."""
        replaced = [f"{name}\n{self._replaced[name]}" for name in names if name in self._replaced]
        return hashlib.sha256("\n".join(replaced).encode()).hexdigest()[:12] if replaced else ""


def _read(directory: Path) -> dict[str, str]:
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
        for path in files:
            if path.suffix != ".md" or path.stem not in FILES:
                raise ConfigurationError(
                    f"prompts has {str(path)!r}, the name of no prompt; expected some of "
                    f"{', '.join(f'{name}.md' for name in FILES)}"
                )
        return {path.stem: _text(path) for path in files}
    except OSError as error:
        raise ConfigurationError(
            f"prompts is {str(directory)!r}: {error.strerror}; expected a directory of files such as hypersu_clues.md"
        ) from error


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the prompt in {str(path)!r} is not UTF-8; expected a text") from error
    if not text or len(text) > _LONGEST:
        raise ConfigurationError(
            f"the prompt in {str(path)!r} has {len(text):,} characters; expected 1 to {_LONGEST:,}"
        )
    return text


DEFAULT_PROMPTS = Prompts()
"""Those that come with polyad."""


_PASSAGE, _REPLIES = "passage", "replies"
_ENDS = (".", "!", "?", ";", "…", "\u3002", "\uff01", "\uff1f")


def defused(text: str, tags: Iterable[str]) -> str:
    """``text`` without what could be taken for one of ``tags``, opening or closing.

    >>> defused("<b>So</b> ends the </passage>", ["passage"])
    '<b>So</b> ends the &lt;/passage>'
    """
    return re.sub(rf"<(?=\s*+(?:/\s*+)?(?:{'|'.join(tags)})\b)", "&lt;", text, flags=re.IGNORECASE)


def in_one_line(lines: str) -> str:
    r"""Lines one after the other, with a semicolon where the end of one does not show.

    >>> in_one_line("King of Italy\nHe took Ravenna.\n killed by  Theoderic ")
    'King of Italy; He took Ravenna. killed by Theoderic'
    """
    kept = [" ".join(line.split()) for line in lines.splitlines() if line.strip()]
    return " ".join([*(line if line.endswith(_ENDS) else f"{line};" for line in kept[:-1]), *kept[-1:]])


def quoted_passage(text: str, title: str = "") -> str:
    r"""A passage in tags of its own, with its title if it has one.

    >>> quoted_passage("She met him.", "Ada")
    '<passage title="Ada">\nShe met him.\n</passage>'
    """
    title = " ".join(_quoted(title).split())
    titled = f' title="{title}"' if title else ""
    return f"<{_PASSAGE}{titled}>\n{_quoted(text)}\n</{_PASSAGE}>"


def quoted_replies(text: str) -> str:
    """What a model said earlier, in tags of its own."""
    return f"<{_REPLIES}>\n{_quoted(text)}\n</{_REPLIES}>"


def _quoted(text: str) -> str:
    return defused(text, (_PASSAGE, _REPLIES))
