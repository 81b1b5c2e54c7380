"""Settings with some values changed, by ``section.key`` as in ``polyad.toml``; and those of a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from polyad.config import Settings
from polyad.engine import registry
from polyad.errors import ConfigurationError, SettingError
from polyad.presets import preset_named

Value = str | int | float | bool


def with_settings(settings: Settings, changes: Mapping[str, Value]) -> Settings:
    """The settings with some values changed.

    Args:
        settings: As they are.
        changes: By ``section.key``.

    Raises:
        ConfigurationError: there is no such setting, or it cannot have that value.
    """
    given = registry.get_settings_by_section(settings)
    get_settings_by_section: dict[str, dict[str, Value]] = {}
    for name, value in changes.items():
        section, _, key = name.partition(".")
        if section not in given:
            raise ConfigurationError(f"{name!r} is no setting; expected section.key, of {', '.join(given)}")
        types = get_type_hints(type(given[section]))
        if key not in types:
            raise ConfigurationError(f"{name!r} is no setting; expected {section}. and one of {', '.join(types)}")
        get_settings_by_section.setdefault(section, {})[key] = _as_type(name, value, types[key])
    try:
        changed = {section: _replaced(given[section], values) for section, values in get_settings_by_section.items()}
    except SettingError as error:
        raise ConfigurationError(f"in {', '.join(changes)}: {error}") from error
    return settings.but(**changed)


def _replaced(section: Any, values: Mapping[str, Value]) -> Any:
    """The section with some values; what does nothing beside these, and is none of them, is at its default again."""
    try:
        return replace(section, **values)
    except SettingError as error:
        if not error.is_idle or error.setting in values:
            raise
        usual = {own.name: own.default for own in fields(section)}
        return _replaced(replace(section, **{error.setting: usual[error.setting]}), values)


def preset_settings(name: str, changes: Mapping[str, Value] | None = None) -> Settings:
    """The settings of a preset, with some changed.

    >>> from polyad.retrieval.hypersu.retriever import HyperSUSettings
    >>> preset_settings("hypersu", {"hypersu.width": 50}).of(HyperSUSettings).width
    50

    Args:
        name: Of the preset.
        changes: By ``section.key``.

    Raises:
        SettingError: there is no such preset.
        ConfigurationError: there is no such setting, or it cannot have that value.
    """
    lines = {line.setting: line.value for line in preset_named(name).lines if line.place[0]}
    return with_settings(Settings(preset=name), lines | dict(changes or {}))


def joined(preset: str, settings: Settings) -> Settings:
    """Settings over those of a preset: what is not at its default there goes before the preset's.

    Raises:
        ConfigurationError: there is no such preset, or the two do not go together.
    """
    changes = {
        f"{section}.{field.name}": getattr(own, field.name)
        for section, own in settings.sections.items()
        for field in fields(own)  # type: ignore[arg-type]  # every section is a dataclass
        if getattr(own, field.name) != field.default
    }
    return preset_settings(preset, changes)


def _as_type(name: str, value: Value, type_: Any) -> Value:
    """The value where it is of the type, a whole number also where any number may stand."""
    is_union = get_origin(type_) in (Union, UnionType)
    options = [kind for kind in (get_args(type_) if is_union else (type_,)) if kind is not NoneType]
    allowed = [str if get_origin(kind) is Literal else kind for kind in options]
    if type(value) is int and float in allowed and int not in allowed:
        return float(value)
    if type(value) not in allowed:
        words = " or ".join(kind.__name__ for kind in allowed)
        raise ConfigurationError(f"{name} is {value!r}; expected a value of type {words}")
    return value
