"""Presets: construction, retrieval and answering as in one paper, each in a TOML file of this folder.

A file has the keys ``paper``, ``code`` (its public code) and optionally ``mention_extractor``, a table ``[[settings]]``
for each setting, ``[[parts]]`` for what no setting decides, and ``[prompts]``. The
file that it ``extends`` comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from polyad.errors import SettingError

Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaperSetting:
    """A paper's value of one polyad setting, with its source in the paper.

    Attributes:
        name: ``section.key`` as in ``polyad.toml``, or a key of its top level.
        value: The value in the paper.
        source: Section, equation or table of the paper, or the public code if the paper gives no value.
        code: The value or behaviour of the public code, if it differs.
        why: Why polyad's default differs, if it does.
    """

    name: str
    value: Value
    source: str
    code: str = ""
    why: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Section and key, in ``polyad.toml``, of the setting that a paper's value belongs to."""
        section, _, key = self.name.rpartition(".")
        return section, key


@dataclass(frozen=True, slots=True)
class PaperPart:
    """A part of a paper's system that polyad does not offer, with the difference.

    Attributes:
        name: The part.
        paper: What the paper does, and where it says so.
        polyad: What polyad does with the preset, or how to get the paper's part.
        code: What the public code does, if it differs.
    """

    name: str
    paper: str
    polyad: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """The settings that reproduce one paper's system, selected by ``--preset``.

    Attributes:
        name: Name for ``--preset``.
        paper: Title and authors of the paper.
        code: Repository of its public code.
        mention_extractor: Mention extractor of a new index, which needs an optional package; empty for the default.
        settings: Values of settings, in the order of the page.
        parts: Parts that no setting decides.
        prompts: Place in the paper of the prompt that each of polyad's prompts stands for, by name of the prompt.
    """

    name: str
    paper: str
    code: str
    mention_extractor: str
    settings: tuple[PaperSetting, ...]
    parts: tuple[PaperPart, ...]
    prompts: Mapping[str, str]

    @property
    def method(self) -> str:
        """The construction method (how hyperedges are built) of the paper."""
        return self._get_value("method")

    @property
    def retriever(self) -> str:
        """Name of the retriever that implements the paper."""
        return self._get_value("retriever")

    def _get_value(self, name: str) -> str:
        return next(str(setting.value) for setting in self.settings if setting.name == name)


def get_preset(name: str) -> Preset:
    """Return the preset with this name, such as ``hypersu``.

    Raises:
        SettingError: There is no such preset.
    """
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]


@cache
def _read_preset(name: str) -> Preset:
    """Read a preset from its TOML file, and from the file that it extends."""
    content = _read_file(name)
    files = [_read_file(content["extends"]), content] if "extends" in content else [content]
    return Preset(
        name,
        content["paper"],
        content["code"],
        content.get("mention_extractor", ""),
        tuple(PaperSetting(**setting) for file in files for setting in file.get("settings", ())),
        tuple(PaperPart(**part) for file in files for part in file.get("parts", ())),
        {prompt: place for file in files for prompt, place in file.get("prompts", {}).items()},
    )


def _read_file(name: str) -> dict[str, Any]:
    import tomllib  # takes 6 ms

    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


class _Presets(Mapping[str, Preset]):
    """A read-only dictionary of presets by name, each loaded on first access."""

    _NAMES = ("hypergraphrag", "hypersu", "hyperretriever", "hypermemory")

    def __getitem__(self, name: str) -> Preset:
        if name not in self._NAMES:
            raise KeyError(name)
        return _read_preset(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._NAMES)

    def __len__(self) -> int:
        return len(self._NAMES)


PRESETS = _Presets()
"""Presets by name."""
