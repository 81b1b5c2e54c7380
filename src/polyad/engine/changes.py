"""Settings with changed values, given as ``section.key`` as in ``polyad.toml``, and settings of presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

from polyad.engine import registry
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, SettingError
from polyad.presets import Value, get_preset
from polyad.text.json_types import FieldError, parse_value


def change_settings(settings: Settings, changes: Mapping[str, Value]) -> Settings:
    """Return a copy of the settings in which the keys of ``changes`` have new values.

    Args:
        settings: Settings to change.
        changes: New values by ``section.key``.

    Raises:
        ConfigurationError: There is no such setting, or its value is invalid.
    """
    sections = registry.get_settings_by_section(settings)
    return registry.replace_sections(settings, change_sections(sections, changes))


def change_sections(sections: Mapping[str, Any], changes: Mapping[str, Value]) -> dict[str, Any]:
    """Return copies of the settings sections that ``changes`` (values by ``section.key``) modify, with new values.

    Args:
        sections: Settings of each section by its name.
        changes: New values by ``section.key``.

    Raises:
        ConfigurationError: There is no such setting, or its value is invalid.
    """
    values_by_section: dict[str, dict[str, Value]] = {}
    for name, value in changes.items():
        section, _, key = name.partition(".")
        if section not in sections:
            raise ConfigurationError(f"{name!r} is no setting; expected section.key, of {', '.join(sections)}")
        types = get_type_hints(type(sections[section]))
        if key not in types:
            raise ConfigurationError(f"{name!r} is no setting; expected a key of {section}: {', '.join(types)}")
        values_by_section.setdefault(section, {})[key] = check_setting(name, value, types[key])
    try:
        return {section: _replace_values(sections[section], values) for section, values in values_by_section.items()}
    except SettingError as error:
        raise ConfigurationError(f"in {', '.join(changes)}: {error}") from error


def parse_setting(option: str) -> tuple[str, Value]:
    """Parse a command-line option ``section.key=VALUE`` into its name and its value.

    >>> parse_setting("hypersu.decay=0.3")
    ('hypersu.decay', 0.3)

    Raises:
        ConfigurationError: The option does not have this form.
    """
    name, equals, value = option.partition("=")
    if not equals or not value.strip():
        raise ConfigurationError(f"{option!r} sets nothing; expected section.key=VALUE such as hypersu.decay=0.3")
    return name.strip(), parse_toml_value(value.strip())


def parse_toml_value(text: str) -> Value:
    """Parse a value that is written as TOML, or as a word without quotation marks."""
    import tomllib  # takes 6 ms, and most commands read no TOML

    try:
        value = tomllib.loads(f"value = {text}")["value"]
        repr(value)  # fails for hexadecimal numbers that no message could print
    except (ValueError, RecursionError):  # not TOML, a number of too many digits, or nested too deeply
        return text
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    return value if isinstance(value, str | int | float | bool) else text


def _replace_values(section: Any, values: Mapping[str, Value]) -> Any:
    """Return a copy of a settings section with new values; keys that these values make useless get defaults."""
    try:
        return replace(section, **values)
    except SettingError as error:
        if not error.is_idle or error.setting in values:
            raise
        defaults = {each.name: each.default for each in fields(section)}
        return _replace_values(replace(section, **{error.setting: defaults[error.setting]}), values)


def build_preset_settings(name: str, changes: Mapping[str, Value] | None = None) -> Settings:
    """Return the settings of a preset in which the keys of ``changes`` have new values.

    >>> build_preset_settings("hypersu", {"hypersu.width": 50}).hypersu.width
    50

    Args:
        name: Name of the preset.
        changes: New values by ``section.key``.

    Raises:
        SettingError: There is no such preset.
        ConfigurationError: There is no such setting, or its value is invalid.
    """
    lines = {setting.name: setting.value for setting in get_preset(name).settings if setting.place[0]}
    # One after the other, so that a value of the preset which a change makes useless gets its default.
    return change_settings(change_settings(Settings(preset=name), lines), dict(changes or {}))


def apply_preset(preset: str, settings: Settings) -> Settings:
    """Return the settings of a preset, overridden by each value of ``settings`` that is not the default.

    Raises:
        ConfigurationError: There is no such preset, or the values contradict each other.
    """
    changes = {
        f"{name}.{field.name}": getattr(section, field.name)
        for name, section in registry.get_settings_by_section(settings).items()
        for field in fields(section)
        if getattr(section, field.name) != field.default
    }
    return build_preset_settings(preset, changes)


def check_setting(name: str, value: Any, type_: Any) -> Value:
    """Return the value of the setting ``name`` if it has the setting's type; convert an integer to a float if required.

    Args:
        name: Name of the setting, for messages.
        value: The value.
        type_: Type of the setting.

    Raises:
        ConfigurationError: The value has another type.
    """
    try:
        checked: Value = parse_value(value, type_, name)
    except FieldError as error:
        raise ConfigurationError(str(error)) from error
    if isinstance(checked, str) and "\0" in checked:
        raise ConfigurationError(f"{name} is {value!r}; expected a text without null characters")
    if type(checked) is int and float in (type_, *get_args(type_)):
        return float(checked)
    return checked
