"""What a preset is: the settings of one paper, each with the place that it is from."""

from __future__ import annotations

from collections.abc import Mapping
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
    """What a paper has and no setting decides: what polyad does in its place, or what is to be given.

    Attributes:
        what: The component.
        paper: What the paper does, and where it says so.
        polyad: What polyad does with the preset.
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
        paper: Its title and where it is published.
        lines: What is set.
        parts: What is not a setting.
        prompts: Names of polyad's files of prompts that stand for those of the paper, by what the paper calls them.
    """

    name: str
    paper: str
    lines: tuple[Line, ...]
    parts: tuple[Part, ...] = ()
    prompts: Mapping[str, str] | None = None

    @property
    def method(self) -> str:
        """How it builds hyperedges."""
        return str(self.by_section()[""]["method"])

    @property
    def retriever(self) -> str:
        """How it finds evidence."""
        return str(self.by_section()[""]["retriever"])

    def by_section(self) -> dict[str, dict[str, Value]]:
        """Values by section, empty for the top level, and key."""
        found: dict[str, dict[str, Value]] = {}
        for line in self.lines:
            section, key = line.place
            found.setdefault(section, {})[key] = line.value
        return found
