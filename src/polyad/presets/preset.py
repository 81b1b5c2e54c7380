"""What a preset is: the settings of one paper, each with the place that it is from."""

from __future__ import annotations

from dataclasses import dataclass

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Line:
    """One setting of a paper.

    Attributes:
        setting: ``section.key`` as in ``polyad.toml``, or a key of its top level.
        value: In the paper.
        source: Section, equation or table that says so; or that it is the public code's, where the paper gives none.
        code: What the paper's public code does, where that is something else.
        why: Why polyad's default is another, where it is.
    """

    setting: str
    value: Value
    source: str
    code: str = ""
    why: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Section (empty for the top level) and key."""
        section, _, key = self.setting.rpartition(".")
        return section, key


@dataclass(frozen=True, slots=True)
class Part:
    """What a paper has and no setting of its preset decides: what is to be given, or is polyad's own.

    Attributes:
        what: The component.
        paper: What the paper does, and where it says so.
        polyad: What polyad does with the preset, or how to have the paper's.
        code: What the paper's public code does, where that is something else.
    """

    what: str
    paper: str
    polyad: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """The settings of one paper.

    Attributes:
        name: As given to ``--preset``.
        paper: Its title and authors.
        code: Where its public code is, which was read for ``Line.code`` and ``Part.code``.
        lines: What is set.
        parts: What is not a setting.
        prompts: polyad's prompts (:data:`polyad.text.prompts.FILES`) that stand for the paper's, and where those are.
            The wording is polyad's own; a file of that name in the directory ``prompts`` puts the paper's in.
    """

    name: str
    paper: str
    code: str
    lines: tuple[Line, ...]
    parts: tuple[Part, ...]
    prompts: tuple[tuple[str, str], ...]

    @property
    def method(self) -> str:
        """How it builds hyperedges."""
        return self._get_value("method")

    @property
    def retriever(self) -> str:
        """How it finds evidence."""
        return self._get_value("retriever")

    def _get_value(self, key: str) -> str:
        return next(str(line.value) for line in self.lines if line.setting == key)
