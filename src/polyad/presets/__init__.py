"""Presets: construction, retrieval and answering as one paper has them, a file for each."""

from __future__ import annotations

from polyad.errors import SettingError
from polyad.presets import hypergraphrag, hypermemory, hyperretriever, hypersu
from polyad.presets.preset import Line, Part, Preset

PRESETS = {
    preset.name: preset for preset in (hypergraphrag.PRESET, hypersu.PRESET, hyperretriever.PRESET, hypermemory.PRESET)
}
"""By name."""

__all__ = ["PRESETS", "Line", "Part", "Preset", "preset_named"]


def preset_named(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        SettingError: there is none.
    """
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
